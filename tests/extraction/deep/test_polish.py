"""Large networks: the first layer from gradients and kinks, the last from rows that show its units."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import relumine as rl
from relumine.extraction.deep.asking.box import Asked
from relumine.extraction.deep.asking.inquiry import Inquiry
from relumine.extraction.deep.ending.large import first_layer, measured_shift, rare, swept, with_slopes
from relumine.extraction.deep.first.units import Layer
from relumine.extraction.deep.known.charts import Known
from relumine.extraction.deep.known.places import chords
from relumine.run import Run

TRUTH = rl.planted.deep((30, 8, 6, 1), rng=3).scaled()


def gradients(n: int) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Gradients (n, d) at random inputs, which units are on there, and A."""
    ((W, b),), head = TRUTH.layers, TRUTH.head
    X = np.random.default_rng(0).normal(size=(n, 30))
    Z = X @ W.T + b
    on = Z > 0.0, np.maximum(Z, 0.0) @ head.W.T + head.b > 0.0
    A = head.a[:, None] * head.W
    return (on[0] * (on[1] @ A)) @ W, on, A


def test_the_first_layer_comes_from_gradients_although_the_second_is_off_too() -> None:
    ((W, _),), rng = TRUTH.layers, np.random.default_rng(1)
    F, on, A = gradients(60)
    V, B = W + 1e-8 * rng.normal(size=W.shape), A + 1e-8 * rng.normal(size=A.shape)
    found = first_layer(V, B, on, F, np.full(60, 1e-14))
    turn = np.sum(found * W, axis=1) / np.sum(W * W, axis=1)  # of each unit the length is free
    assert np.abs(turn - 1.0).max() < 1e-6
    np.testing.assert_allclose(found, turn[:, None] * W, atol=1e-12)


def test_what_no_gradient_shows_stays_as_it_is() -> None:
    ((W, _),), rng = TRUTH.layers, np.random.default_rng(1)
    F, on, A = gradients(60)
    on[0][:, 2] = False  # never on
    F = (on[0] * (on[1] @ A)) @ W
    V = W + 1e-8 * rng.normal(size=W.shape)
    found = first_layer(V, A, on, F, np.full(60, 1e-14))
    np.testing.assert_allclose(found[2], V[2], atol=1e-15)
    np.testing.assert_allclose(found[3], W[3] * (found[3] @ W[3]) / (W[3] @ W[3]), atol=1e-12)


def inquiry() -> Inquiry:
    run = Run.of(rng=0)
    at = Inquiry(Asked(TRUTH, run.rng, np.inf, lambda: "", True), 30, run)
    at.rows(10)
    return at


def test_biases_come_from_kinks_of_usual_size() -> None:
    ((W, b),), at = TRUTH.layers, inquiry()
    net = rl.DeepNetwork([(W, b + 1e-8 * np.arange(8))], TRUTH.head)
    np.testing.assert_allclose(measured_shift(at, net), -1e-8 * np.arange(8), atol=1e-12)
    assert at.ask.count <= 10 + 8 * 4 * 5  # two on each side of a kink, and one that confirms it


def test_the_network_gets_both_where_enough_was_measured() -> None:
    ((W, b),), at, rng = TRUTH.layers, inquiry(), np.random.default_rng(4)
    net = rl.DeepNetwork([(W + 1e-8 * rng.normal(size=W.shape), b)], TRUTH.head)
    assert with_slopes(at, net) is net  # nothing was
    layer = Layer(at.ask, Known(30), at.rng)
    for _ in range(4):
        layer.look(*chords(layer.known, 3, at.rng))
    for w in layer.witnesses[:40]:
        layer._measured(w)
    at.measured = layer.measured
    ((better, shift),) = with_slopes(at, net).layers
    size = np.linalg.norm(better, axis=1)
    np.testing.assert_allclose(better / size[:, None], W / np.linalg.norm(W, axis=1)[:, None], atol=1e-10)
    np.testing.assert_allclose(shift / size, b / np.linalg.norm(W, axis=1), atol=1e-10)


def test_rows_for_units_that_are_seldom_on() -> None:
    ((W, b),), at = TRUTH.layers, inquiry()
    head = replace(TRUTH.head, b=np.where(np.arange(6) == 2, -8.0, TRUTH.head.b))
    net, X = rl.DeepNetwork([(W, b)], head), np.random.default_rng(5).normal(size=(4000, 30))
    front = Known(30, net.layers)
    assert (front(X) @ head.W[2] + head.b[2] > 0.0).sum() < 10
    rows = rare(at, net, X)
    z = front(rows) @ head.W[2] + head.b[2]
    assert (z > 0.0).sum() >= 40
    assert z.max() > 5.0 * z[z > 0.0].min()  # not all next to its kink


@pytest.mark.parametrize("outputs", [1, 3])
def test_a_unit_that_hardly_counts_is_solved_for_alone(outputs: int) -> None:
    rng = np.random.default_rng(6)
    truth = rl.planted.deep((30, 8, 6, outputs), rng=3).scaled().head
    a = np.where(np.arange(6) == 4, 1e-5, 1.0) * truth.a
    truth = replace(truth, a=a)
    H = np.maximum(rng.normal(size=(3000, 8)), 0.0)
    W = truth.W + np.where(np.arange(6)[:, None] == 4, 1e-4, 0.0) * rng.normal(size=(6, 8))
    found = swept(replace(truth, W=W), H, np.reshape(truth(H), (3000, -1)), np.ones(3000))
    np.testing.assert_allclose(found.W, truth.W, atol=1e-8)
    np.testing.assert_allclose(found.b, truth.b, atol=1e-8)
