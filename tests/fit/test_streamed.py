"""Rows that stay in a source: the same sums as in memory, whatever the chunks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relumine import activations
from relumine.arrays import slices
from relumine.data.sources import Samples, open_source
from relumine.data.views import without
from relumine.data.whiten import whitening
from relumine.fit.projection import Linearisation, Unknowns, project
from relumine.fit.rows import NOTHING, MemoryRows, prepare
from relumine.fit.sign_free import shape_of
from relumine.fit.starts import random_directions
from relumine.fit.streamed import StreamedRows, prepare_source

SHAPE = shape_of(activations.RELU)


def data(seed: int, n: int = 60, d: int = 3, q: int = 2, weighted: bool = False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 5.0
    return X, rng.normal(size=(n, q)) + X[:, :1], rng.uniform(0.2, 2.0, size=n) if weighted else None, rng


@given(
    seed=st.integers(0, 10**6),
    chunk=st.sampled_from([1, 7, 25, 1000]),
    weighted=st.booleans(),
    out=st.lists(st.integers(0, 59), unique=True, max_size=20),
)
@settings(max_examples=12, deadline=None)
def test_streamed_rows_are_the_rows(seed: int, chunk: int, weighted: bool, out: list[int]) -> None:
    X, Y, weight, rng = data(seed, weighted=weighted)
    left_out = np.array(sorted(out), dtype=np.intp)
    kept = np.setdiff1d(np.arange(len(X)), left_out)
    w = None if weight is None else weight[kept] / weight[kept].mean()
    rows, tau = prepare(whitening(X[kept], w).apply(X[kept]), Y[kept], w)
    in_chunks = [(X[s], Y[s], *([] if weight is None else [weight[s]])) for s in slices(len(X), chunk)]
    source = without(open_source(in_chunks), left_out)
    streamed, plain, streamed_tau, _ = prepare_source(source, np.ones(2))
    assert isinstance(streamed, StreamedRows)
    assert (streamed.n, streamed.columns, streamed.outputs, plain.free) == (len(kept), 4, 2, NOTHING)
    np.testing.assert_allclose(streamed_tau, tau, atol=1e-11)
    assert streamed.norm2 == pytest.approx(rows.norm2, rel=1e-11)
    U = random_directions(rng, 5, 4)
    whole = MemoryRows(rows.X, Y[kept], w, NOTHING)
    for one, other in ((rows, streamed), (whole, plain), (whole.centred(tau[-1]), plain.centred(tau[-1]))):
        assert other.norm2 == pytest.approx(one.norm2, rel=1e-9)
        at, elsewhere = project(one, SHAPE, U, 1e-3), project(other, SHAPE, U, 1e-3)
        # sums in another order; where hardly a row sees a unit, its weight has the fewest digits (4e-9 was met)
        np.testing.assert_allclose(elsewhere.A, at.A, atol=1e-7)
        assert elsewhere.loss == pytest.approx(at.loss, rel=1e-9)
        x = Unknowns(rng.normal(size=U.shape), rng.normal(size=(5, 2)), np.zeros((4, 2)))
        x.tau[one.free] = rng.normal(size=x.tau[one.free].shape)
        here, there = Linearisation(one, at, np.float64), Linearisation(other, elsewhere, np.float64)
        np.testing.assert_allclose(there.gradient, here.gradient, atol=1e-9)
        for part in ("U", "A", "tau"):
            np.testing.assert_allclose(getattr(there.product(x), part), getattr(here.product(x), part), atol=1e-8)


def test_outputs_without_a_bend_are_zero() -> None:
    X, Y, _, _ = data(0)
    Y[:, 1] = X @ [1.0, 2.0, 3.0] - 4.0
    for source in (Samples(X, Y), open_source([(X[:20], Y[:20]), (X[20:], Y[20:])])):
        rows, _, tau, _ = prepare_source(source, np.ones(2))
        assert rows.squares()[1] < 1e-24 * rows.squares()[0]
        (squares,) = rows.over(np.array([2.0, np.inf])).sum(lambda B: ((B.Y**2).sum(axis=0),), 1)
        assert squares[0] == pytest.approx(rows.squares()[0] / 4.0)
        assert squares[1] == 0.0
    white = whitening(X)
    np.testing.assert_allclose(white.apply(X) @ tau[:-1, 1] + tau[-1, 1], Y[:, 1], atol=1e-11)


def test_without_leaves_rows_out_of_chunks_and_sums() -> None:
    X = np.arange(20.0).reshape(10, 2)
    source = without(open_source(X, X[:, 0], chunk=4), np.array([0, 5, 9]))
    np.testing.assert_array_equal(np.concatenate([c.X for c in source.chunks()]), np.delete(X, [0, 5, 9], axis=0))
    assert source.n == 7
    np.testing.assert_array_equal(source.head(4).X, X[1:4])
    np.testing.assert_array_equal(without(open_source(X, X[:, 0], chunk=4), np.arange(8)).head(2).X, X[8:])
    assert float(source.reduce(lambda c: (c.Y.sum(),))[0]) == np.delete(X, [0, 5, 9], axis=0)[:, 0].sum()
