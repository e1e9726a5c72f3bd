"""Parquet, csv and arrow files: the numbers to the last bit, and every defect named by file, column and place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from relumine.data.sources import Source, count, materialise, open_source, take
from relumine.results import InvalidInput

RNG = np.random.default_rng(0)
N = 250
# numbers of all magnitudes: a reader that rounds shows
X = RNG.normal(size=(N, 3)) * 10.0 ** RNG.integers(-30, 30, size=(N, 3))
Y = RNG.normal(size=(N, 2))
NAMES = ("x.1", "b", "c")


def table(**changed: object) -> pa.Table:
    columns: dict[str, object] = dict(zip(NAMES, X.T)) | {"y": Y[:, 0], "z": Y[:, 1]}
    return pa.table(columns | changed)


def write(path: Path, kind: str, data: pa.Table | None = None) -> str:
    data = table() if data is None else data
    file = path / f"data.{kind}"
    if kind == "parquet":
        pq.write_table(data, file, row_group_size=100)
    elif kind == "feather":
        feather.write_feather(data, str(file), chunksize=100)
    elif kind == "arrow":
        with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, data.schema) as stream:
            stream.write_table(data, max_chunksize=100)
    else:
        rows = [",".join(data.column_names)]
        rows += [",".join("" if v is None else repr(v) for v in row.values()) for row in data.to_pylist()]
        file.write_text("\n".join(rows) + "\n")
    return str(file)


KINDS = ("parquet", "feather", "arrow", "csv")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chunk", [None, 1, 7, 1000])
def test_numbers_to_the_last_bit(kind: str, chunk: int | None, tmp_path: Path) -> None:
    source = open_source(write(tmp_path, kind), target=["z", "y"], features=["c", "b"], chunk=chunk)
    assert isinstance(source, Source)
    found = materialise(source)
    np.testing.assert_array_equal(found.X, X[:, [2, 1]])
    np.testing.assert_array_equal(found.y, Y[:, ::-1])
    assert source.names == ("c", "b")
    assert count(source) == N
    few, numbers = take(source, 20, np.random.default_rng(0))
    np.testing.assert_array_equal(few.X, found.X[numbers])


@pytest.mark.parametrize("kind", KINDS)
def test_all_other_columns_are_features(kind: str, tmp_path: Path) -> None:
    source = open_source(write(tmp_path, kind), target="y")
    assert source.names == (*NAMES, "z")
    assert source.vector
    assert materialise(source).y.shape == (N,)


@pytest.mark.parametrize("kind", KINDS)
def test_a_weight_column(kind: str, tmp_path: Path) -> None:
    weight = RNG.uniform(0.5, 1.0, size=N)
    weight[3] = 0.0
    source = open_source(write(tmp_path, kind, table(w=weight)), target="y", sample_weight="w")
    found = materialise(source)
    np.testing.assert_allclose(found.weight, weight[weight > 0] / weight[weight > 0].mean())
    assert source.names == (*NAMES, "z")


def test_globs_directories_and_lists_in_sorted_order(tmp_path: Path) -> None:
    deep = tmp_path / "k"
    deep.mkdir()
    for number, folder in ((2, tmp_path), (1, tmp_path), (3, deep)):
        part = table().slice(50 * number, 50)
        pq.write_table(part, folder / f"part-{number}.parquet")
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / "readme.txt").write_text("not data")
    in_glob = open_source(str(tmp_path / "part-*.parquet"), target="y", features=["b"])
    np.testing.assert_array_equal(materialise(in_glob).X[:, 0], X[50:150, 1])
    assert "(2 files)" in in_glob.label
    assert in_glob.n == 100
    everything = open_source(tmp_path, target="y", features=["b"])
    assert everything.n == 150
    listed = open_source([tmp_path / "part-2.parquet", deep / "part-3.parquet"], target="y", features=["b"])
    np.testing.assert_array_equal(materialise(listed).X[:, 0], X[100:200, 1])


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_columns_are_named(kind: str, tmp_path: Path) -> None:
    path = write(tmp_path, kind, table(name=["ann"] * N))
    for arguments, word in (
        ({}, "name the target= column of .*x.1, b, c, y, z"),
        ({"target": "t"}, "has no column 't'; it has"),
        ({"target": "y", "features": ["b", "d"]}, "has no column 'd'"),
        ({"target": "y", "sample_weight": "w"}, "has no column 'w'"),
        ({"target": "y", "features": ["b", "y"]}, "'y' is named twice"),
        ({"target": "y"}, "column 'name' is not numeric"),
        ({"target": "y", "features": []}, "at least one feature"),
    ):
        with pytest.raises(InvalidInput, match=word):
            open_source(path, **arguments)
    assert open_source(path, target="y", features=["b"]).d == 1


def test_the_file_that_differs_is_named(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "1.parquet")
    pq.write_table(table().drop_columns(["b"]), tmp_path / "2.parquet")
    with pytest.raises(InvalidInput, match=r"2\.parquet has no column 'b'"):
        open_source(tmp_path, target="y")
    with pytest.raises(InvalidInput, match="different kinds"):
        open_source([tmp_path / "1.parquet", write(tmp_path, "csv")], target="y")
    (tmp_path / "x.bin").write_text("?")
    with pytest.raises(InvalidInput, match="unknown kind of file"):
        open_source(tmp_path / "x.bin", target="y")


PLACES = {"parquet": "row group 1, row 30", "feather": "record batch 1, row 30", "arrow": "record batch 1, row 30"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_bad_values_are_named_or_skipped(kind: str, value: float | None, tmp_path: Path) -> None:
    column = [*X[:130, 1], value, *X[131:, 1]]
    path = write(tmp_path, kind, table(b=column))
    where = PLACES.get(kind, "row 132")  # csv: the header is row 1
    with pytest.raises(InvalidInput, match=rf"input column 'b' (has no value|is inf) in .*data\.{kind}(, )?.*{where};"):
        list(open_source(path, target="y", chunk=11).chunks())
    with pytest.raises(InvalidInput, match=r"target column 'b' (has no value|is inf)"):
        list(open_source(path, target=["y", "b"]).chunks())
    source = open_source(path, target="y", bad_rows="skip", chunk=11)
    np.testing.assert_array_equal(materialise(source).X[:, 1], np.delete(X[:, 1], 130))
    assert source.skipped == 1


@pytest.mark.parametrize("kind", ["parquet", "feather", "arrow"])
def test_truncated_and_damaged_files_are_named(kind: str, tmp_path: Path) -> None:
    path = Path(write(tmp_path, kind))
    whole = path.read_bytes()
    for data in (whole[:-60], whole[: len(whole) // 2], b"", b"hello"):
        path.write_bytes(data)
        with pytest.raises(InvalidInput, match=rf"data\.{kind}.* cannot be read as"):
            list(open_source(str(path), target="y").chunks())


def test_a_damaged_row_group_is_named(tmp_path: Path) -> None:
    path = Path(write(tmp_path, "parquet"))
    data = bytearray(path.read_bytes())
    start = pq.read_metadata(path).row_group(1).column(1).dictionary_page_offset
    data[start : start + 200] = b"\xff" * 200
    path.write_bytes(bytes(data))
    with pytest.raises(InvalidInput, match="row group 1 cannot be read"):
        list(open_source(str(path), target="y").chunks())


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("1,2,3", r"row 201, has 3 fields instead of 5 \('1,2,3'\)"),
        ("1,2,3,4,5,6", "has 6 fields instead of 5"),
        ("1,foo,3,4,5", r"column 'b' is .*row 201 has 'foo'"),
    ],
)
def test_bad_csv_lines_are_named_or_skipped(line: str, word: str, tmp_path: Path) -> None:
    path = Path(write(tmp_path, "csv"))
    lines = path.read_text().splitlines()
    lines[200] = line
    path.write_text("\n".join(lines))
    with pytest.raises(InvalidInput, match=word):
        list(open_source(str(path), target="y").chunks())
    source = open_source(str(path), target="y", bad_rows="skip")
    found = materialise(source)
    np.testing.assert_array_equal(found.X[:, :3], np.delete(X, 199, axis=0))
    assert source.skipped == 1


def test_text_far_down_a_csv_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    lines = ["b,y", *(f"{i}.{'5' * 150},{i}" for i in range(120_000))]  # beyond the block that is looked at first
    lines[110_000] = "1,oops"
    path.write_text("\n".join(lines))
    with pytest.raises(InvalidInput, match=r"column 'y' is 'oops' in row 110001"):
        list(open_source(str(path), target="y").chunks())
    source = open_source(str(path), target="y", bad_rows="skip")
    assert count(source) == 119_999


def test_empty_csv_files(tmp_path: Path) -> None:
    path = tmp_path / "empty.csv"
    for text, word in (("", "cannot be read as csv"), ("b,y\n", "no rows"), ("b,b,y\n1,2,3\n", "same name")):
        path.write_text(text)
        with pytest.raises(InvalidInput, match=word):
            open_source(str(path), target="y")


def test_integers_booleans_and_float32_are_numbers(tmp_path: Path) -> None:
    n = np.arange(10)
    data = pa.table({"i": n, "b": n % 2 == 0, "f": n.astype(np.float32), "y": n})
    for kind in ("parquet", "feather"):
        found = materialise(open_source(write(tmp_path, kind, data), target="y"))
        np.testing.assert_array_equal(found.X, np.column_stack([n, n % 2 == 0, n]))
