"""Weights that no kink shows, from made-up gradients and kinks of which all is known."""

import numpy as np
import pytest

from relumine.extraction.deep.behind import hidden
from relumine.extraction.deep.behind.balls import Point

UNITS, WIDTH = 6, 10


@pytest.fixture
def layer():
    """Units V h + b of length one, most of them on; h of unit 9 in front is zero at all kinks of units 0 and 1."""
    rng = np.random.default_rng(3)
    V = rng.normal(size=(UNITS, WIDTH))
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    return V, rng.uniform(-0.2, 0.2, size=UNITS), rng


def gradients(V, b, rng, count=60, strength=None):
    """Points at random h, in random directions: g = Σ c_l V_l B over the units that are on."""
    points = []
    for _ in range(count):
        h = np.abs(rng.normal(size=WIDTH))
        B = np.linalg.qr(rng.normal(size=(WIDTH, WIDTH - 1)))[0]
        c = rng.normal(size=len(b)) * (1.0 if strength is None else strength)
        points.append(Point(B, (c * (V @ h + b > 0.0)) @ V @ B, h))
    return points


def kinks(V, b, rng, count=40, without=(), small=()):
    """h of some kinks of each unit, zero for the units in front ``without``, and next to nothing for ``small`` ones."""
    found = []
    for v, c in zip(V, b):
        H = np.abs(rng.normal(size=(count, WIDTH)))
        H[:, list(without)] = 0.0
        H[:, list(small)] *= 1e-6
        H[:, 0] -= (H @ v + c) / v[0]  # made up: h need not be positive here
        found.append(H)
    return found


def test_they_are_found_with_all_digits(layer):
    V, b, rng = layer
    known = np.ones(V.shape, dtype=bool)
    known[[0, 1], 9] = False
    found, shift, seen = hidden.weights(
        gradients(V, b, rng), np.where(known, V, 0.0), b, np.ones(UNITS), known, kinks(V, b, rng, without=[9])
    )
    assert seen.all()
    scale = np.linalg.norm(V, axis=1) / np.linalg.norm(found, axis=1)  # the length of a row is free
    np.testing.assert_allclose(scale[:, None] * found, V, atol=1e-12)
    np.testing.assert_allclose(scale * shift, b, atol=1e-12)


def test_gradients_mend_weights_that_kinks_hardly_show(layer):
    V, b, rng = layer
    known = np.ones(V.shape, dtype=bool)
    known[[0, 1], 9] = False
    rough = np.where(known, V, 0.0)
    rough[[0, 1], 8] += [3e-5, -2e-5]  # unit 8 in front is hardly on at any of their kinks
    found, shift, seen = hidden.weights(
        gradients(V, b, rng, 200), rough, b, np.ones(UNITS), known, kinks(V, b, rng, without=[9], small=[8])
    )
    assert seen.all()
    scale = np.linalg.norm(V, axis=1) / np.linalg.norm(found, axis=1)
    np.testing.assert_allclose(scale[:, None] * found, V, atol=1e-9)
    np.testing.assert_allclose(scale * shift, b, atol=1e-9)


def test_one_of_a_unit_that_is_nearly_never_on_stays_open_and_hides_no_other(layer):
    """By what is open the unit might be on anywhere: what least squares make of it there is rounding."""
    V, b, rng = layer
    b = np.where(np.arange(UNITS) == 5, -30.0, b)  # never on at the points
    known = np.ones(V.shape, dtype=bool)
    known[[0, 1, 5], 9] = False
    points = [Point(p.B, p.g * (1.0 + 1e-9 * rng.normal(size=len(p.g))), p.h) for p in gradients(V, b, rng)]
    found, _, seen = hidden.weights(points, np.where(known, V, 0.0), b, np.ones(UNITS), known)
    assert seen[[0, 1], 9].all()
    np.testing.assert_allclose(found[[0, 1], 9], V[[0, 1], 9], atol=1e-6)
    assert not seen[5, 9]
    assert found[5, 9] == 0.0


def test_nothing_is_said_where_the_layer_lacks_a_unit(layer):
    V, b, rng = layer
    points = gradients(np.vstack([V, np.eye(WIDTH)[3]]), np.append(b, 1.0), rng)
    known = np.ones(V.shape, dtype=bool)
    known[[0, 1], 9] = False
    found, _, seen = hidden.weights(points, np.where(known, V, 0.0), b, np.ones(UNITS), known)
    np.testing.assert_array_equal(seen, known)
    np.testing.assert_array_equal(found, np.where(known, V, 0.0))


def test_a_unit_without_kinks_gets_its_weight_from_gradients_alone(layer):
    V, b, rng = layer
    b = np.where(np.arange(UNITS) == 0, 50.0, b)  # on everywhere
    known = np.ones(V.shape, dtype=bool)
    known[0, 9] = False
    points = gradients(V, b, rng)
    found, _, seen = hidden.weights(
        points, np.where(known, V, 0.0), b, np.ones(UNITS), known, [np.zeros((0, WIDTH))] * UNITS
    )
    assert seen.all()
    np.testing.assert_allclose(found[0] / np.linalg.norm(found[0]), V[0], atol=1e-9)
