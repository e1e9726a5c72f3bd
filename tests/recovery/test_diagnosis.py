"""Why a network was not recovered: each cause on rows made for it, none on rows of a network; hopeless searches end."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from tests.catalogue.base import generic

import relumine as rl
from relumine.activations import RELU
from relumine.data.sources import Samples
from relumine.recovery.diagnosis import _side_by_side, diagnosed, running_numbers
from relumine.recovery.otherwise import classes, otherwise, probabilities, steps
from relumine.results import Cause, RecoveryFailed, RelumineWarning, Status


def normal(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("d", "m"), [(3, 8), (6, 20)])
def test_rows_of_a_network_have_no_better_explanation(d: int, m: int, seed: int) -> None:
    _, X, y = generic(d, m, 6)(seed)
    assert otherwise(Samples(X, y), RELU) is None
    squeezed = (y - y.min()) / np.ptp(y)  # between 0 and 1, and no probabilities
    assert probabilities(squeezed[:, None])
    assert otherwise(Samples(X, squeezed), RELU) is None


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_smoothness_knows_no_units(scale: float) -> None:
    X = normal(700, 3)
    found = otherwise(Samples(X / scale, scale * np.tanh(X @ [1.0, -1.0, 0.5]) * X[:, 1] + 5.0 * scale), RELU)
    assert found is not None
    assert found.cause is Cause.SMOOTH


def test_noise_does_not_hide_that_a_target_is_smooth() -> None:
    """Enough is seen for a diagnosis, and not enough to end a search."""
    X = normal(700, 3)
    y = np.sin(3.0 * X[:, 0]) + X[:, 0] * X[:, 1] + 0.1 * normal(700, 1, 1)[:, 0]
    assert otherwise(Samples(X, y), RELU) is None
    narrow = rl.recover(X, y, width=6, starts=1, rng=0, on_failure="return")
    found = diagnosed(narrow, Samples(X, y), None)  # as if the width had been left open
    assert found.diagnosis is not None
    assert found.diagnosis.cause is Cause.SMOOTH
    assert found.message.startswith("The target looks smooth")
    assert "activation='tanh'" in found.advice


@pytest.mark.parametrize(
    ("values", "count"), [([0.0, 1.0], 2), ([3.0], 0), ([1.0, 2.0, 5.0], 3), (np.linspace(0, 1, 30), 0)]
)
def test_classes(values: list[float], count: int) -> None:
    Y = np.resize(np.asarray(values), (600, 1))
    assert classes(Y) == count


def test_steps_are_told_from_units_that_are_seldom_on_from_rounding_and_from_counts() -> None:
    X = normal(2000, 3)
    stairs = np.sin(np.floor(4.0 * X[:, 0])) + np.exp(np.floor(X[:, 1]) / 3.0)
    assert steps(Samples(X, stairs)) == np.unique(stairs).size
    assert steps(Samples(X[:900], stairs[:900])) == 0, "so few rows do not tell"
    whole = np.floor(20.0 * X)
    for y in (
        np.maximum(X[:, 0] - 2.0, 0.0),  # off at most rows
        np.clip(X[:, 0], -1.0, 1.0),
        np.round(X[:, 0], 1),
        np.floor(9.0 * X[:, 0]),
        X[:, 0],
    ):
        assert steps(Samples(X, y)) == 0
    of_one = np.column_stack([whole[:, 0], X[:, 1:]])
    assert steps(Samples(of_one, np.maximum(whole[:, 0] / 3.0, 0.0))) == 0, "as many values as the input has"
    found = otherwise(Samples(X, stairs), RELU)
    assert found is not None
    assert found.cause is Cause.STEPS


def test_rows_next_to_each_other_are_no_wrong_entries() -> None:
    X = normal(3000, 3)
    anywhere = np.random.default_rng(1).choice(3000, 100, replace=False)
    assert not _side_by_side(X, anywhere)
    assert not _side_by_side(X, anywhere[:3])
    assert _side_by_side(X, np.argsort(np.abs(X[:, 0] - 1.0))[:100]), "all along a step that was missed"


def test_running_numbers() -> None:
    X, ids = normal(100, 2), np.arange(7.0, 107.0)
    assert running_numbers(np.column_stack([X, ids]), None) == (
        "column 2 is a running number",
        "If it only numbers the rows, leave it out.",
    )
    shuffled = np.random.default_rng(0).permutation(ids)
    assert running_numbers(np.column_stack([shuffled, X]), ("id", "u", "v")) is not None
    scattered = 3.0 * shuffled + np.arange(100) % 3
    for name in ("customer_id", "ID", "orderId", "primary key"):
        found = running_numbers(np.column_stack([scattered, X]), (name, "u", "v"))
        assert found is not None
        assert found[0] == f"column {name!r} looks like an id, different in every row"
    for name in ("humid", "load", "rapid"):
        assert running_numbers(np.column_stack([scattered, X]), (name, "u", "v")) is None
    for column in (ids + 0.5, np.floor(ids / 2), np.round(10.0 * X[:, 0])):
        assert running_numbers(np.column_stack([X, column]), None) is None
    assert running_numbers(ids[:, None], None) is None, "the only input is what y depends on"


def test_a_running_number_is_warned_of_even_in_success() -> None:
    truth, X, y = generic(3, 2, 30)(0)
    with pytest.warns(RelumineWarning, match="column 3 is a running number"):
        found = rl.recover(np.column_stack([X, np.arange(len(X))]), y, width=2, rng=0)
    assert found.status is Status.EXACT
    assert found.diagnosis is None
    np.testing.assert_allclose(found.network.W[:, 3], 0.0, atol=1e-9)
    assert truth.m == found.network.m


def test_a_search_without_hope_ends_early_and_says_why() -> None:
    """Ten rounds tell where there are many rows; whoever asks for more starts than usual gets them."""
    X = normal(1500, 2)
    y = np.floor(2.0 * X[:, 0]) * X[:, 1]  # jumps: neither a network nor smooth
    found = rl.recover(X, y, width=6, rng=0, on_failure="return")
    assert not found.ok
    assert found.search.starts + found.search.cycles <= 12
    smooth = rl.recover(X, X[:, 0] * X[:, 1] ** 2, width=6, rng=0, on_failure="return")
    assert smooth.diagnosis is not None
    assert smooth.diagnosis.cause is Cause.SMOOTH
    assert smooth.search.starts == 1
    assert any("ended early: the target is smooth" in note for note in smooth.certificate.notes)
    assert rl.recover(X, X[:, 0] * X[:, 1] ** 2, width=6, starts=21, rng=0, on_failure="return").search.starts > 1


def test_the_error_begins_with_the_diagnosis() -> None:
    X = normal(40, 6)
    with pytest.raises(RecoveryFailed, match=r"^Not recovered: too few rows\. 40 rows cannot show 6 hidden") as e:
        rl.recover(X, np.abs(X).sum(axis=1), width=6, rng=0)
    found = e.value.recovery
    assert "42 parameters, and the linear part 7 more" in found.message
    assert np.isfinite(found.certificate.condition)
    assert "condition" not in str(found), "of a wrong network it says nothing"
    assert found.advice.startswith("Collect about 245 rows")
    assert found.advice in str(e.value)


def test_a_width_that_is_too_small_is_no_matter_of_rows() -> None:
    """Where the unit that is missing is on in a few rows only, those are not wrong entries."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3))
    u = np.array([0.6, 0.0, 0.8])
    y = np.maximum(X @ [1.0, -0.5, 0.3], 0.0) - np.maximum(X @ [0.4, 1.0, 1.0] - 0.2, 0.0) + np.maximum(X @ u - 2.2, 0)
    found = rl.recover(X, y, width=2, rng=0, on_failure="return")
    assert found.diagnosis is not None
    assert found.diagnosis.cause is Cause.TOO_NARROW
    assert found.message.startswith("2 units cannot explain these rows. ")
    assert found.search.wider is not None
    wrong = y + 0.01 * rng.normal(size=1500)
    wrong[[5, 80, 333, 900]] += [3.0, -2.0, 4.0, 5.0]
    found = rl.recover(X, wrong, width=3, rng=0, on_failure="return")
    assert found.diagnosis is not None
    assert found.diagnosis.cause is Cause.OUTLIERS
    assert "rows 5, 80, 333, 900, counted from 0" in found.message


def test_constant_columns_are_left_out_and_come_back_with_weight_zero() -> None:
    truth, X, y = generic(3, 3, 30)(1)
    wide = np.insert(X, 1, 4.0, axis=1)
    found = rl.recover(wide, y + 0.01 * normal(len(y), 1)[:, 0], width=3, rng=0)
    assert found.network.d == 4
    assert not found.network.W[:, 1].any()
    assert not found.network.v[1]
    assert found.standard_errors is not None
    assert np.isnan(found.standard_errors.W[:, 1]).all()
    assert np.isfinite(np.delete(found.standard_errors.W, 1, axis=1)).all()
    assert any("never changes: column 1" in note for note in found.certificate.notes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exact = rl.recover(wide, y, width=3, rng=0)
    assert (
        rl.metrics.parameter_error(
            truth, exact.network.replace(W=np.delete(exact.network.W, 1, axis=1), v=np.delete(exact.network.v, 1))
        )
        < 1e-9
    )


def test_a_result_from_a_file_has_the_names_of_its_columns(tmp_path: Path) -> None:
    X, y = rl.planted.sample(rl.planted.network(2, 1, rng=0), 60, rng=1)
    path = tmp_path / "a.csv"
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", header="speed,load,power", comments="", fmt="%.17g")
    found = rl.recover(path, target="power", width=1, rng=0)
    assert (found.origin.features, found.origin.target) == (("speed", "load"), "power")
    assert "speed" in found._repr_html_()
    assert rl.recover(X, y, width=1, rng=0).origin.features == ()


def test_without_units_the_advice_is_not_that_nothing_is_left_to_do() -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    assert "choose another column" in rl.recover(X, np.ones(60), rng=0).advice
    assert "no hidden unit to find" in rl.recover(X, X.sum(axis=1), rng=0).advice
    assert "No hidden unit shows above the noise" in rl.recover(X, normal(60, 1, 1)[:, 0], width=0, rng=0).advice


def test_counts_are_told_from_classes_in_the_advice() -> None:
    X = normal(400, 2)
    counts = np.random.default_rng(1).poisson(np.exp(0.5 * X[:, 0]))
    found = rl.recover(X, counts, width=1, starts=1, rng=0, on_failure="return")
    assert found.diagnosis is not None
    assert found.diagnosis.cause is Cause.CLASSES
    assert "counts or ratings" in found.advice
    two = rl.recover(X, np.minimum(counts, 1), width=1, starts=1, rng=0, on_failure="return")
    assert "counts" not in two.advice


def test_columns_are_numbered_as_the_user_numbers_them() -> None:
    """A column that never changes stands before the one with wrong entries, and is left out of the fit."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.abs(X[:, 0]) + 0.1 * rng.normal(size=300)
    X[7, 1] = 1e6
    found = rl.recover(np.column_stack([np.ones(300), X]), y, width=1, rng=0, on_failure="return")
    assert "column 2 is 1e+06" in found.message
