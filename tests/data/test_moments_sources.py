"""Moments and whitening of sources: the chunks, the order of the rows and the day they came do not matter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from relumine import planted
from relumine.data.moments import MomentSums, estimate_from, estimate_tensors, sums_of
from relumine.data.sources import open_source
from relumine.data.views import Affine, Less, Projected, Whitened, rows_of, seen
from relumine.data.whiten import summary_of, whitening, whitening_of
from relumine.papers.awasthi2021.subspace import estimate_in_subspace
from relumine.results import InvalidInput, ModelFileError
from relumine.tensors.hermite import feature_count

ESTIMATORS = ("plain", "debiased", "regressed")
RNG = np.random.default_rng(0)
N, D = 3000, 4
X = RNG.normal(size=(N, D))
Y = planted.network(D, 3, rng=0)(X)


def assert_close(a: MomentSums, b: MomentSums, tol: float = 1e-12) -> None:
    size = np.sqrt(b.n * b.squares)  # of Σ r h: its terms may cancel (least squares residuals do, entirely)
    for left, right in zip(a.parts(), b.parts()):
        assert np.abs(left - right).max() <= tol * max(np.abs(right).max(), size)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_chunks_of_1_7_1000_and_n_rows_give_the_same_moments(estimator: str, tmp_path: Path) -> None:
    path, n = tmp_path / "s.parquet", 1500
    few, values = X[:n], Y[:n]
    pq.write_table(pa.table(dict(zip("abcd", few.T)) | {"y": values}), path, row_group_size=700)
    baseline = None
    if estimator == "debiased":
        baseline = MomentSums(D, 2, "regressed").add(few, values).coefficients()
    whole = MomentSums(D, 4, estimator, baseline).add(few, values)
    exact = estimate_tensors(few, values, 4, estimator)
    for rows in (1, 7, 1000, n):
        for source in (open_source(few, values, chunk=rows), open_source(str(path), target="y", chunk=rows)):
            assert_close(sums_of(source, 4, estimator, baseline=baseline), whole)
            if rows > 1:
                found = estimate_from(source, 4, estimator)
                for T, E in zip(found.tensors, exact.tensors):
                    np.testing.assert_allclose(T.entries, E.entries, rtol=1e-10, atol=1e-12)


@given(st.permutations(range(6)), st.sampled_from(ESTIMATORS), st.integers(1, 40))
@settings(max_examples=25, deadline=None)
def test_days_in_any_order_add_up_to_the_whole(days: list[int], estimator: str, rows: int) -> None:
    baseline = np.linspace(-1.0, 1.0, feature_count(D, 2)) if estimator == "debiased" else None
    parts = np.array_split(np.arange(120), 6)
    total = MomentSums(D, 3, estimator, baseline)
    for day in days:
        r = parts[day]
        total = total + sums_of(open_source(X[r], Y[r], chunk=rows), 3, estimator, baseline=baseline)
    assert_close(total, MomentSums(D, 3, estimator, baseline).add(X[:120], Y[:120]))


@given(st.permutations(range(60)), st.sampled_from(("plain", "regressed")), st.integers(1, 70))
@settings(max_examples=20, deadline=None)
def test_the_order_of_the_rows_does_not_matter(order: list[int], estimator: str, rows: int) -> None:
    shuffled = open_source(X[order], Y[order], chunk=rows)
    assert_close(sums_of(shuffled, 3, estimator), MomentSums(D, 3, estimator).add(X[:60], Y[:60]))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_sums_saved_on_one_day_go_on_the_next(estimator: str, tmp_path: Path) -> None:
    baseline = np.linspace(-1.0, 1.0, feature_count(D, 2)) if estimator == "debiased" else None
    MomentSums(D, 4, estimator, baseline).add(X[:1700], Y[:1700]).save(tmp_path / "monday")
    later = MomentSums.load(tmp_path / "monday").add(X[1700:], Y[1700:])
    day = MomentSums(D, 4, estimator, baseline).add(X[1700:], Y[1700:])
    whole = MomentSums(D, 4, estimator, baseline).add(X, Y)
    assert later.n == N
    assert_close(later, whole)
    assert_close(MomentSums.load(tmp_path / "monday") + day, whole)
    assert [p.name for p in tmp_path.iterdir()] == ["monday"]


def test_loading_is_exact_and_damaged_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "sums"
    sums = MomentSums(D, 2).add(X, Y)
    sums.save(path)
    for left, right in zip(MomentSums.load(path).parts(), sums.parts()):
        np.testing.assert_array_equal(left, right)
    whole = path.read_bytes()
    meta = {"format": "relumine.moment-sums", "version": "1", "d": "4", "order": "2", "estimator": "regressed"}
    arrays = load_file(path)
    for data in (b"", whole[:50], whole[:-8], b"\xff" * 100):
        path.write_bytes(data)
        with pytest.raises(ModelFileError):
            MomentSums.load(path)
    for changed, word in (
        ({"version": "9"}, "version '9'"),
        ({"format": "x"}, "does not hold moment sums"),
        ({"d": "three"}, "damaged"),
        ({"d": "5"}, "has shape"),
        ({"d": "100000"}, "does not hold valid"),
        ({"d": "-1"}, "does not hold valid"),
        ({"estimator": "magic"}, "estimator must be 'plain'"),
        ({"estimator": "debiased"}, "needs a baseline"),
    ):
        save_file(arrays, path, metadata=meta | changed)
        with pytest.raises(ModelFileError, match=word):
            MomentSums.load(path)
    for changed, word in (
        ({"n": np.array(-1.0)}, "broken"),
        ({"n": np.array(1.5)}, "broken"),
        ({"cross": arrays["cross"] * np.nan}, "cross is not finite"),
        ({"cross": arrays["cross"].astype(np.float32)}, "cross not float64"),
        ({"matrix": arrays["matrix"][:-1]}, "has shape"),
    ):
        save_file({k: np.array(v, order="C") for k, v in (arrays | changed).items()}, path, metadata=meta)
        with pytest.raises(ModelFileError, match=word):
            MomentSums.load(path)
    with pytest.raises(ModelFileError, match="no such"):
        MomentSums.load(tmp_path / "nothing")


def test_a_generator_is_enough_for_one_pass_and_not_for_two() -> None:
    def days():
        for r in np.array_split(np.arange(N), 5):
            yield X[r], Y[r]

    for estimator in ("plain", "regressed"):
        found, exact = estimate_from(open_source(days()), 4, estimator), estimate_tensors(X, Y, 4, estimator)
        np.testing.assert_allclose(found.tensors[4].entries, exact.tensors[4].entries, rtol=1e-10, atol=1e-12)
    with pytest.raises(InvalidInput, match="passes twice over the rows, and a one-pass generator"):
        sums_of(open_source(days()), 4, "debiased")
    assert summary_of(open_source(days())).n == N


def test_moments_in_a_subspace_are_those_of_projected_rows() -> None:
    mix = RNG.normal(size=(D, D)) + 2.0 * np.eye(D)
    inputs = X @ mix.T + 50.0
    source = open_source(inputs, Y, chunk=311)
    white, _ = whitening_of(source)
    Z = white.apply(inputs)
    expected = estimate_in_subspace(rows_of(Z, Y), 4, "regressed", width=2)
    standard = seen(source, Whitened(white))
    T = estimate_from(standard, 2).tensors
    np.testing.assert_allclose(T[2].entries, estimate_tensors(Z, Y, 2).tensors[2].entries, rtol=1e-9, atol=1e-11)
    less = Less(Affine(T[1].entries, float(T[0].entries[0])))
    found = estimate_from(seen(standard, less, Projected(expected.basis)), 4)
    for k in (2, 3, 4):
        np.testing.assert_allclose(found.tensors[k].entries, expected.tensors[k].entries, rtol=1e-8, atol=1e-10)
    # what was taken out of y comes on top in `expected`
    constant = found.tensors[0].entries + T[0].entries
    np.testing.assert_allclose(constant, expected.tensors[0].entries, rtol=1e-9)
    np.testing.assert_allclose(found.errors, expected.errors, rtol=1e-6)
    # without whitening the projection is of x itself
    raw = sums_of(seen(open_source(X, Y), Projected(np.eye(D)[:2])), 3)
    assert_close(raw, MomentSums(2, 3).add(np.ascontiguousarray(X[:, :2]), Y))


def test_what_moments_cannot_use() -> None:
    with pytest.raises(InvalidInput, match="one output"):
        sums_of(open_source(X, np.column_stack([Y, Y])), 2)
    with pytest.raises(InvalidInput, match="do not take weights"):
        sums_of(open_source(X, Y, sample_weight=np.ones(N)), 2)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("chunk", [1, 7, 1000, N])
def test_whitening_of_a_source_is_the_whitening_of_its_rows(chunk: int, weighted: bool) -> None:
    inputs = X @ RNG.normal(size=(D, D)) + np.array([1e6, -3.0, 0.0, 1e4])
    weight = RNG.uniform(0.5, 2.0, size=N) if weighted else None
    source = open_source(inputs, Y, sample_weight=weight, chunk=chunk)
    white, summary = whitening_of(source)
    direct = whitening(inputs, None if weight is None else weight / weight.mean())
    np.testing.assert_allclose(white.mean, direct.mean, rtol=1e-13)
    np.testing.assert_allclose(white.L, direct.L, rtol=1e-9, atol=1e-9)
    assert summary.n == N
    joint = np.cov(np.column_stack([inputs, Y]).T, bias=True, aweights=weight)
    np.testing.assert_allclose(summary.covariance, joint[:D, :D], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(summary.cross[:, 0], joint[:D, D], rtol=1e-8, atol=1e-8)
    assert summary.y_covariance[0, 0] == pytest.approx(joint[D, D], rel=1e-10)
    assert summary.y_mean[0] == pytest.approx(np.average(Y, weights=weight))


def test_first_rows_far_from_the_others_do_not_spoil_the_covariance() -> None:
    """The pivot is a mean of the first rows; here it is 10⁷ standard deviations away from all that count."""
    far = (np.zeros((2000, D)), np.zeros(2000), np.full(2000, 1e-20))
    source = open_source([far, (X + 1e7, Y, np.ones(N))])
    np.testing.assert_allclose(summary_of(source).covariance, np.cov(X.T, bias=True), rtol=1e-5, atol=1e-5)


def test_useless_columns_are_called_by_name(tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    good = {"y": Y, "age": X[:, 0], "size": X[:, 1]}
    pq.write_table(pa.table(good | {"flat": np.full(N, 3.0)}), path)
    with pytest.raises(InvalidInput, match="input column 'flat' is constant"):
        whitening_of(open_source(str(path), target="y"))
    pq.write_table(pa.table(good | {"other": X[:, 2], "sum": X[:, 0] + X[:, 1]}), path)
    with pytest.raises(InvalidInput, match=r"'age', 'size', 'sum' are linearly dependent.*ignore="):
        whitening_of(open_source(str(path), target="y"))
    with pytest.raises(InvalidInput, match="4 samples cannot span 4 inputs"):
        whitening_of(open_source(X[:4], Y[:4]))
