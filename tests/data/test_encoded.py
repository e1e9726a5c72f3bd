"""Columns of text as columns of 0 and 1, and gaps filled with medians: files and dataframes give the same rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relumine.data.sources import Source, materialise, open_source
from relumine.results import InvalidInput

pd = pytest.importorskip("pandas")

FRAME = pd.DataFrame(
    {
        "size": [1.0, np.nan, 4.0, 100.0],
        "city": ["Rome", "Oslo", "Rome", "Bern"],
        "y": [1.0, 2.0, 3.0, 4.0],
    }
)


def both(path: Path, frame: pd.DataFrame = FRAME, **options) -> list[Source]:
    frame.to_csv(path / "rows.csv", index=False)
    return [open_source(where, target="y", **options) for where in (str(path / "rows.csv"), frame)]


def test_categories_and_medians(tmp_path: Path) -> None:
    for source in both(tmp_path, one_hot=True, impute="median"):
        # the first category in the alphabet, Bern, is where all others are 0; the median of 1, 4 and 100 is 4
        assert source.names == ("size", "city=Oslo", "city=Rome")
        rows = materialise(source)
        np.testing.assert_array_equal(rows.X, [[1, 0, 1], [4, 1, 0], [4, 0, 1], [100, 0, 0]])
        np.testing.assert_array_equal(rows.y, FRAME["y"])
        said = " ".join(source.assumed)
        assert "'Bern': all 0" in said
        assert "1 missing value filled with its median 4" in said


def test_categories_that_are_asked_for(tmp_path: Path) -> None:
    for source in both(tmp_path, one_hot={"city": ["Bern"]}, impute="median"):
        assert source.names == ("size", "city=Bern")
        np.testing.assert_array_equal(materialise(source).X[:, 1], [0, 0, 0, 1])


def test_gaps_and_text_without_a_remedy_are_named(tmp_path: Path) -> None:
    def refused(frame: pd.DataFrame, word: str, **options) -> None:
        frame.to_csv(tmp_path / "rows.csv", index=False)
        for where in (str(tmp_path / "rows.csv"), frame):
            with pytest.raises(InvalidInput, match=word):
                open_source(where, target="y", **options)

    refused(FRAME, "'size' has no value in", one_hot=True)
    refused(FRAME, "'city' is not numeric", impute="median")
    refused(FRAME.assign(size=np.nan), "'size' has no values", one_hot=True, impute="median")
    many = pd.DataFrame({"name": [f"n{k}" for k in range(500)], "y": np.arange(500.0)})
    refused(many, "too many for categories", one_hot=True)
