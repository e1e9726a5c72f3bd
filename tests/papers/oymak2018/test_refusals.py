"""`decode` says what it cannot know, and names what is wrong with its input."""

import pickle
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from tests.papers.oymak2018.problems import labels, planted, relative

from relumine.papers.oymak2018.additive import Additive, gauss_newton
from relumine.papers.oymak2018.evidence import evidence
from relumine.papers.oymak2018.judge import _objections, judge
from relumine.papers.oymak2018.method import Decoding, DecodingFailed, decode
from relumine.results import InvalidInput, RecoveryFailed, RelumineWarning, Status


def test_only_rows_outside_the_fit_can_certify():
    """Zero residual on the rows of the fit is not enough: a held-out row that disagrees denies exactness."""
    X, y, w = planted(20, 60, 0)
    out = np.zeros(60, dtype=bool)
    out[[5, 40]] = True
    for wrong in (0.0, 1e-3):
        problem = Additive(X, y + wrong * (np.arange(60) == 40), np.ones(20))
        verdict = judge(problem, replace(problem, out=out), np.ones(20), w, "gauss-newton", 0.1 * w)
        assert (verdict.status is Status.EXACT) == (wrong == 0.0)
        assert verdict.certificate.rows == 2


OBJECTIONS = {
    "predicted worse than noise allows": lambda found, w: (found._replace(held_out=1.5), w),
    "still depends on the probes": lambda found, w: (found._replace(structure=6.5), w),
    "ended away from a minimum": lambda found, w: (found._replace(remaining=3.0 * found.standard_errors), w),
    "known only to": lambda found, w: (found._replace(standard_errors=np.full(6, 0.6)), w),
    "another start ends at a different vector": lambda found, w: (found, w + 5.0 * found.standard_errors),
}


@pytest.mark.parametrize("words", OBJECTIONS)
def test_each_reason_not_to_take_what_is_left_for_noise_is_enough(words):
    X, y, _ = planted(6, 200, 0, noise=0.1)
    out = np.zeros(200, dtype=bool)
    out[:4] = True
    part, theta = Additive(X, y, np.ones(6), out=out), np.ones(6)
    w = decode(X, y, 1.0).w
    *_, last = islice(gauss_newton(part, w, theta), 9)  # on the rows that are not held out
    w = last.w
    found, elsewhere = evidence(part, w), np.full(6, 0.3)
    assert _objections(part, theta, w, found, elsewhere) == []
    (said,) = _objections(part, theta, *reversed(OBJECTIONS[words](found, w)), elsewhere)
    assert words in said


def failed(X, y, bound=1.0, **options):
    with pytest.raises(RecoveryFailed) as caught:
        decode(X, y, bound, **options)
    assert isinstance(caught.value, DecodingFailed)
    assert caught.value.decoding is caught.value.recovery
    returned = decode(X, y, bound, on_failure="return", **options)
    assert returned.status is caught.value.decoding.status
    assert not returned.ok
    assert returned.message in str(caught.value)
    assert "network" not in str(caught.value)
    return returned


@pytest.mark.parametrize("n", [5, 20, 21])
def test_too_few_rows(n):
    X, y, _ = planted(20, n, 0)
    assert failed(X, y).status is Status.UNDERDETERMINED


def test_the_bound_is_too_small():
    X, y, _ = planted(20, 100, 0, reach=2.0)
    found = failed(X, y, starts=2)
    assert found.status is Status.NOT_RECOVERED
    assert "bound" in found.message


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_a_constant_column_is_exact_or_said_to_be_free(noise):
    """Off, it leaves no trace at all; on, it is a constant that only one coordinate may explain."""
    statuses = set()
    for seed in range(6):
        X, _, w = planted(20, 100, seed)
        X[:, 3] = 0.0
        y = labels(X, w) + noise * np.random.default_rng(seed).standard_normal(100)
        with pytest.warns(RelumineWarning, match="hardly see the bound"):
            found = decode(X, y, 1.5, on_failure="return")
        statuses.add(found.status)
        if found.ok:
            np.testing.assert_allclose(found.w, w, atol=1e-9 + 20 * noise / np.sqrt(100))
        else:
            assert found.status is Status.UNDERDETERMINED
            assert "(3)" in found.message
    assert Status.UNDERDETERMINED in statuses


def test_probes_that_never_leave_the_bound():
    X, y, _ = planted(20, 200, 0, scale=0.1)
    with pytest.warns(RelumineWarning, match="T\\(bound\\)"):
        found = decode(X, y, 1.0, on_failure="return")
    assert found.status is Status.UNDERDETERMINED
    with pytest.raises(InvalidInput, match="theorem"), pytest.warns(RelumineWarning):
        decode(X, y, 1.0, "centered", step="theorem")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda X, y, w, rng: labels(X, w, slope=0.1),
        lambda X, y, w, rng: 1.1 * y,
        lambda X, y, w, rng: y + 1.0,
        lambda X, y, w, rng: labels(X, w, weights=rng.uniform(0.7, 1.3, len(w))),
        lambda X, y, w, rng: rng.permutation(y),
        lambda X, y, w, rng: np.full_like(y, y.mean()),
        lambda X, y, w, rng: (np.maximum(X + w, 0.0) ** 1.2).sum(axis=1),
    ],
)
def test_another_model_is_never_called_noise(spoil):
    for seed in range(3):
        X, y, w = planted(20, 300, seed)
        found = failed(X, spoil(X, y, w, np.random.default_rng(seed)), starts=1)
        assert found.status is Status.NOT_RECOVERED


def test_never_a_confident_wrong_vector_near_the_limit():
    """At n/d from 1.05 to 1.3 and σ = 1 many fits are stuck: none may pass for an answer."""
    seen = set()
    for seed in range(12):
        for n in (32, 34, 36, 39):
            X, y, w = planted(30, n, seed, 1.0)
            found = decode(X, y, 1.0, starts=1, on_failure="return")
            seen.add(found.status)
            assert relative(found.w, w) < 1e-16 if found.status is Status.EXACT else not found.ok
    assert len(seen) > 1


def test_a_gradient_cut_short_is_not_an_answer():
    X, y, _ = planted(30, 60, 0)
    found = failed(X, y, method="centered", max_iter=20)
    assert found.status is Status.NOT_RECOVERED
    assert "max_iter" in found.message


@pytest.mark.parametrize("method", ["gauss-newton", "centered", "plain"])
@pytest.mark.parametrize("value", [0.0, 2.0, -2.0])
def test_probes_that_never_move(method, value):
    X = np.full((120, 4), value)
    with pytest.warns(RelumineWarning):
        found = decode(X, labels(X, np.full(4, 0.5)), 1.0, method, on_failure="return")
    assert found.status is Status.UNDERDETERMINED


@pytest.mark.parametrize("method", ["gauss-newton", "centered"])
@pytest.mark.parametrize("d", [1, 2])
def test_one_and_two_coordinates(method, d):
    X, y, w = planted(d, 30, 0)
    found = decode(X, y, 1.0, method)
    assert found.status is Status.EXACT
    np.testing.assert_allclose(found.w, w, atol=1e-9)


def test_twin_columns_are_noted():
    X, _, w = planted(10, 60, 0)
    X[:, 7] = X[:, 2]
    found = decode(X, labels(X, w), 1.0)
    assert any("columns 2 and 7" in note for note in found.certificate.notes)
    np.testing.assert_allclose(sorted(found.w[[2, 7]]), sorted(w[[2, 7]]), atol=1e-9)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"X": np.full((30, 5), np.nan)}, "X column 0 is nan in row 0"),
        ({"y": np.full(30, np.inf)}, "y is inf in row 0"),
        ({"y": np.zeros(29)}, "rows"),
        ({"y": np.zeros((30, 2))}, "one label"),
        ({"bound": 0.0}, "positive"),
        ({"bound": np.nan}, "bound"),
        ({"bound": [1.0, 2.0]}, "bound"),
        ({"weights": np.zeros(5)}, "non-zero"),
        ({"weights": np.ones(4)}, "weights"),
        ({"slope": 1.0}, "linear"),
        ({"method": "newton"}, "method"),
        ({"step": "fast"}, "step"),
        ({"step": -1.0}, "step"),
        ({"step": None}, "step"),
        ({"slope": "steep"}, "slope"),
        ({"rng": "seven"}, "rng"),
        ({"batches": 0}, "batches"),
        ({"method": "centered", "batches": 4}, "batches"),
        ({"X": np.full((30, 5), 1e200)}, "rescale"),
        ({"max_iter": 0}, "max_iter"),
        ({"starts": 0}, "starts"),
        ({"max_iter": 1.5}, "max_iter"),
        ({"on_failure": "ignore"}, "on_failure"),
        ({"start": np.ones(3)}, "start"),
    ],
)
def test_bad_input_is_named(change, word):
    X, y, _ = planted(5, 30, 0)
    with pytest.raises(InvalidInput, match=word):
        decode(**({"X": X, "y": y, "bound": 1.0} | change))


@pytest.mark.parametrize("change", [{"method": "newton"}, {"step": "fast"}, {"slope": 2.0}, {"rng": -1}])
def test_options_are_refused_before_the_rows_are_looked_at(change):
    with pytest.raises(InvalidInput) as refused:
        decode("no rows at all", None, 1.0, **change)
    assert refused.value.argument == next(iter(change))


def test_nan_in_a_single_precision_memory_map(tmp_path):
    X, y, _ = planted(5, 30, 0)
    X[17, 2] = np.nan
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    with pytest.raises(InvalidInput, match="NaN"):
        decode(np.load(tmp_path / "X.npy", mmap_mode="r"), y, 1.0)


def test_the_result_speaks_and_the_error_travels():
    X, y, _ = planted(10, 40, 0)
    steps = []
    found = decode(X, y, 1.0, progress=steps.append)
    assert isinstance(found, Decoding)
    assert "Recovered exactly" in str(found)
    assert "advice" in str(found)
    assert [s.iteration for s in steps] == list(range(len(found.history)))
    assert found.seconds > 0.0
    again = pickle.loads(pickle.dumps(DecodingFailed(found)))  # noqa: S301
    np.testing.assert_array_equal(again.decoding.w, found.w)


def test_few_rows_do_not_cry_wolf_but_narrow_probes_do():
    X, y, _ = planted(30, 40, 0, 1.0)
    decode(X, y, 1.0, on_failure="return")  # a warning would be an error here
    X, y, _ = planted(30, 40, 0, 0.1)
    with pytest.warns(RelumineWarning, match="30 of 30"):
        decode(X, y, 1.0, on_failure="return")


def test_the_answer_depends_on_the_seed_only():
    X, y, _ = planted(30, 34, 2, 1.0)
    one, two = (decode(X, y, 1.0, rng=5, on_failure="return") for _ in range(2))
    np.testing.assert_array_equal(one.w, two.w)
    assert one.status is two.status
