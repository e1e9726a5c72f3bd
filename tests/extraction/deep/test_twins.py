"""A unit of the last layer that came back as two that share a weight from a unit seldom on in front."""

import numpy as np
import pytest

import relumine as rl
from relumine.extraction.deep.asking.box import Asked
from relumine.extraction.deep.asking.inquiry import Inquiry
from relumine.extraction.deep.ending.confirm import _once
from relumine.extraction.deep.ending.twins import as_one
from relumine.run import Run

TRUTH = rl.planted.deep((9, 7, 6, 1), rng=5)
UNIT, FRONT = 2, 4


def head_of(outputs):
    """The head of TRUTH, with other outputs if they are given."""
    head = TRUTH.head
    return head if outputs is None else rl.Network(head.W, head.b, outputs)


def split(outputs=None):
    """TRUTH with one unit as two, whose weights from one unit in front differ; their sum is what it was."""
    head = head_of(outputs)
    W, b = np.vstack([head.W, 1.7 * head.W[UNIT]]), np.append(head.b, 1.7 * head.b[UNIT])
    W[UNIT, FRONT] += 0.3
    W[-1, FRONT] -= 0.2
    # a₁(w + 0.3) + a₂(1.7w − 0.2) = (a₁ + 1.7a₂)w
    share = 0.3 / 0.2
    whole = head.a[..., UNIT] / (1.0 + 1.7 * share)
    a = np.concatenate([head.a, (share * whole)[..., None]], axis=-1)
    a[..., UNIT] = whole
    return rl.DeepNetwork(TRUTH.layers, head.replace(W=W, b=b, a=a))


def rows(net, both):
    """Inputs at which the two are on, or off, together; ``both`` False: at a few only one of them is."""
    X = np.random.default_rng(0).normal(size=(6000, 9)) * 2.0
    H = X
    for W, b in net.layers:
        H = np.maximum(H @ W.T + b, 0.0)
    on = H @ net.head.W.T + net.head.b > 0.0
    same = (on[:, UNIT] == on[:, -1]) & ((H[:, FRONT] == 0.0) | on[:, UNIT])
    apart = np.flatnonzero(on[:, UNIT] != on[:, -1])
    return X[same] if both else np.vstack([X[same], X[apart[:20]]])


@pytest.mark.parametrize("outputs", [None, np.random.default_rng(1).normal(size=(3, 6))])
def test_they_are_one_again(outputs):
    net = split(outputs)
    whole = [head for head in as_one(net.head) if head.m == 6]
    assert len(whole) == 1
    truth = rl.DeepNetwork(TRUTH.layers, head_of(outputs))
    assert rl.metrics.parameter_error(truth, rl.DeepNetwork(TRUTH.layers, whole[0])) < 1e-12


def test_units_that_differ_in_many_weights_are_never_one():
    assert not list(as_one(TRUTH.head))


@pytest.mark.parametrize("both", [True, False])
def test_rows_decide(both):
    net = split()
    run = Run.of(0)
    at = Inquiry(Asked(net if not both else TRUTH, run.rng, np.inf, lambda: ""), 9, run)
    at.ask(rows(net, both))
    found = _once(at, net)
    assert found.head.m == (6 if both else 7)
    if both:
        assert rl.metrics.parameter_error(TRUTH, found) < 1e-9


def test_a_unit_that_does_nothing_is_left_out():
    """relu(−h_j) has a large weight, and is zero at every input."""
    W, b = np.vstack([TRUTH.head.W, -np.eye(7)[FRONT]]), np.append(TRUTH.head.b, 1e-15)
    net = rl.DeepNetwork(TRUTH.layers, TRUTH.head.replace(W=W, b=b, a=np.append(TRUTH.head.a, 3.0)))
    run = Run.of(0)
    at = Inquiry(Asked(TRUTH, run.rng, np.inf, lambda: ""), 9, run)
    at.ask(at.rng.normal(size=(2000, 9)))
    assert rl.metrics.parameter_error(TRUTH, _once(at, net)) < 1e-9


def test_a_unit_that_one_row_turns_on_stays():
    X = np.random.default_rng(0).normal(size=(2000, 9))
    W, b = TRUTH.layers[0]
    front = np.sort(np.maximum(X @ W.T + b, 0.0)[:, FRONT])
    head = TRUTH.head
    head = rl.Network(
        np.vstack([head.W, np.eye(7)[FRONT]]), np.append(head.b, -front[-2:].mean()), np.append(head.a, 3.0)
    )
    truth = rl.DeepNetwork(TRUTH.layers, head)
    run = Run.of(0)
    at = Inquiry(Asked(truth, run.rng, np.inf, lambda: ""), 9, run)
    at.ask(X)
    assert _once(at, truth).head.m == 7
