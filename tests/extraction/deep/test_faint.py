"""A last layer with a unit that is missing and hardly used, or with units that share what is linear at most inputs."""

from __future__ import annotations

import numpy as np

import relumine as rl
from relumine.extraction.deep.asking.box import Asked
from relumine.extraction.deep.asking.inquiry import Inquiry
from relumine.extraction.deep.ending import confirm
from relumine.extraction.deep.ending.last import robust
from relumine.extraction.deep.ending.linear import error
from relumine.network import Network
from relumine.run import Run


def test_rows_that_are_off_a_little_do_not_bend_the_fit() -> None:
    """The columns have eight digits, and one row in ten has something more, a millionth of the answer."""
    rng = np.random.default_rng(0)
    F, B = rng.normal(size=(230, 30)), rng.normal(size=(30, 1))
    more = np.where(rng.random(230) < 0.1, 3e-6 * np.abs(rng.normal(size=230)), 0.0)
    Y = F @ B + more[:, None]
    found, fits = robust(F + 1e-9 * rng.normal(size=F.shape), Y)
    assert np.abs(found - B).max() < 1e-8
    assert (fits == (more < 1e-7)).mean() > 0.97


def test_units_that_share_what_is_linear_at_most_inputs_are_told_apart() -> None:
    """Two of the last layer are on at nearly all rows, where only their sum shows; the others tell."""
    truth = rl.planted.deep((12, 6, 6, 6, 1), rng=2)
    X = np.random.default_rng(0).normal(size=(20_000, 12))
    H = X
    for W, b in truth.layers:
        H = np.maximum(H @ W.T + b, 0.0)
    W, b, a = (np.array(part) for part in (truth.head.W, truth.head.b, truth.head.a))
    for unit in (1, 4):
        b[unit] = -np.quantile(H @ W[unit], 0.01)
    truth = rl.DeepNetwork(truth.layers, Network(W, b, a, c=truth.head.c))
    shift = 1e-4 * np.random.default_rng(1).normal(size=6)
    V = W.copy()
    V[1], V[4] = W[1] + shift / a[1], W[4] - shift / a[4]
    net = rl.DeepNetwork(truth.layers, Network(V, b, a, c=truth.head.c))
    run = Run.of(rng=3)
    at = Inquiry(Asked(truth, run.rng, np.inf, lambda: "", True), 12, run)
    rows = at.rows(4000)
    off = error(net, *rows)
    assert np.median(off) < 1e-12
    assert off.max() > 1e-7
    found = confirm._complete(at, net)
    assert error(found, *rows).max() < 1e-12
    assert error(found, X, truth(X)[:, None]).max() < 1e-10
