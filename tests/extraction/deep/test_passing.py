"""Layers with units that no input turns off."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from relumine.extraction.deep.behind.balls import Point
from relumine.extraction.deep.behind.passing import Chain, _rewritten, kept, mostly_off, passing, seldom
from relumine.extraction.deep.known.charts import Known, passed
from relumine.extraction.deep.surfaces.surface import Lift, Surface

RNG = np.random.default_rng(3)
FRONT = Known(9, ((RNG.normal(size=(6, 9)), RNG.normal(size=6)),))
V, C = RNG.normal(size=(4, 6)), RNG.normal(size=4)
X = RNG.normal(size=(400, 9)) * 4.0
A, B = RNG.normal(size=(5, 4)), np.abs(RNG.normal(size=(2, 6)))  # h ≥ 0: what has positive weights is always on
P = RNG.normal(size=(5, 2))
FLIP = np.array([1.0, -1.0, -1.0, 1.0])


def next_layer(on: int) -> list[Surface]:
    """Units A relu(ξz) + P(Bh) + e of the next layer, each off at half of the inputs X, behind `passing`."""
    d = (1.0 - FLIP) / 2.0
    theta = np.column_stack([A, -(A * d) @ V + P[:, :on] @ B[:on], np.zeros(5)])
    lift = Lift(passing(FRONT, V, C))
    theta[:, -1] = -np.median(lift(X, np.zeros(0)) @ theta.T, axis=0)
    surfaces = []
    for row in theta:
        z = lift(X, np.zeros(0)) @ row
        points = [bisected(lift, row, a, b) for a, b in zip(X[z > 0.0][:60], X[z < 0.0])]
        surfaces.append(Surface(lift, np.zeros(0), row, np.ones(len(row), dtype=bool), points))
    return surfaces


def bisected(lift: Lift, theta: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    for _ in range(60):
        middle = 0.5 * (a + b)
        a, b = (middle, b) if lift(middle[None], np.zeros(0))[0] @ theta > 0.0 else (a, middle)
    return 0.5 * (a + b)


def settled(surfaces: list[Surface]) -> tuple[Chain, list[Surface]] | None:
    return Chain(FRONT, [(V, C)]).settled(surfaces, np.random.default_rng(0))


@pytest.mark.parametrize("on", [0, 1, 2])
def test_signs_and_what_is_always_on_come_from_the_units_behind(on: int) -> None:
    found = settled(next_layer(on))
    assert found is not None
    assert not found[0].layers
    W, b = found[0].front.layers[-1]
    assert len(b) == 4 + on
    np.testing.assert_allclose(W[:4], FLIP[:, None] * V)
    np.testing.assert_allclose(b[:4], FLIP * C)
    if on:  # the same span, and never off
        rest = B[:on] - B[:on] @ np.linalg.pinv(W[4:]) @ W[4:]
        assert np.abs(rest).max() < 1e-9
        assert (FRONT(RNG.normal(size=(2000, 9)) * 5.0) @ W[4:].T + b[4:] > 0.0).all()


def same(old: Surface, new: Surface) -> bool:
    some = X[[new.certain(x) for x in X]]  # its points may not show all of it
    z, other = old.value(some), new.value(some)
    return len(some) > 100 and np.allclose(other * (z @ z) / (z @ other), z, atol=1e-6 * np.abs(z).max())


@pytest.mark.parametrize("on", [0, 2])
def test_units_of_the_next_layer_stay_what_they_are(on: int) -> None:
    surfaces = next_layer(on)
    found = settled(surfaces)
    assert found is not None
    assert len(found[1]) == len(surfaces)
    assert all(same(old, new) for old, new in zip(surfaces, found[1]))


def test_two_units_of_the_next_layer_do_not_tell() -> None:
    assert settled(next_layer(1)[:2]) is None


def test_surfaces_that_hold_in_part_tell_the_signs_and_are_not_kept() -> None:
    """Of the next layer one unit shows; those of units further behind hold where nothing in between changes sides."""
    surfaces = next_layer(2)
    chain = Chain(FRONT, [(V, C)])
    assert chain.settled(surfaces[:1], np.random.default_rng(0)) is None
    found = chain.settled(surfaces[:1], np.random.default_rng(0), surfaces[1:])
    assert found is not None
    W, b = found[0].front.layers[-1]
    np.testing.assert_allclose(W[:4], FLIP[:, None] * V)
    assert len(b) == 4 + 2
    assert len(found[1]) == 1
    surfaces[1].seen[0] = False  # what is known in part says nothing
    surfaces[1].theta = RNG.normal(size=len(surfaces[1].theta))
    again = chain.settled(surfaces[:1], np.random.default_rng(0), surfaces[1:])
    assert again is not None
    np.testing.assert_allclose(again[0].front.layers[-1][0][:4], W[:4])
    assert again[0].front.width == 4 + 2


def test_what_no_unit_behind_gets_anything_from_is_no_unit_of_the_layer() -> None:
    """A surface further behind that was taken for one; most surfaces do not say whether they get something from it."""
    theirs, more = next_layer(2), np.vstack([V[:2], RNG.normal(size=(1, 6)), V[2:]])
    lift = Lift(passing(FRONT, more, np.insert(C, 2, 0.3)))
    surfaces = []
    for i, s in enumerate(theirs):
        seen = np.ones(lift.size, dtype=bool)
        seen[2] = i < 3
        surfaces.append(Surface(lift, np.zeros(0), np.insert(s.theta, 2, 0.0), seen, s.points))
    chain = Chain(FRONT, [(more, np.insert(C, 2, 0.3))])
    assert chain.settled(surfaces[:1], np.random.default_rng(0), surfaces[1:2]) is None  # too few
    found = chain.settled(surfaces[:1], np.random.default_rng(0), surfaces[1:])
    assert found is not None
    assert found.shown == 4
    W, b = found.chain.front.layers[-1]
    np.testing.assert_allclose(W[:4], FLIP[:, None] * V)
    np.testing.assert_allclose(b[:4], FLIP * C)
    assert len(b) == 4 + 2
    assert same(theirs[0], found.surfaces[0])
    surfaces[3].theta = surfaces[3].theta + np.append(np.zeros(5), RNG.normal(size=7))  # contradicts, and counts
    assert chain.settled(surfaces[:1], np.random.default_rng(0), surfaces[1:]) is None


def test_with_a_corrected_layer_the_units_behind_it_are_told_by_their_kinks_again() -> None:
    found = Chain(FRONT, [(V, C)]).settled(next_layer(1), np.random.default_rng(0))
    assert found is not None
    assert found.surfaces
    (W, b), right = found.chain.front.layers[-1], found.surfaces
    rough = [replace(s, theta=s.theta + 1e-3) for s in right]  # what they were by wrong weights in front
    better = found._replace(surfaces=rough).with_layer(W, b)
    assert better.chain.front.layers[-1][0] is W
    assert better.chain.layers == found.chain.layers
    assert len(better.surfaces) == len(right)
    for old, new in zip(right, better.surfaces):
        assert same(old, new)


def test_a_unit_that_is_no_map_of_these_units_is_not_taken() -> None:
    surfaces = next_layer(0)
    surfaces[0].theta = surfaces[0].theta + 0.1 * np.append(np.zeros(4), RNG.normal(size=7))
    found = settled(surfaces)
    assert found is None or found[0].front.width > 4


def test_units_two_layers_behind_tell_where_those_of_the_next_layer_are_too_few() -> None:
    """Of the next layer two units show, with signs of their own, and two units of the first are always on."""
    rng = np.random.default_rng(7)
    some, two = next_layer(2), np.array([1.0, -1.0])
    V2, c2 = np.array([s.theta[:-1] for s in some[:2]]), np.array([s.theta[-1] for s in some[:2]])
    chain = Chain(FRONT, [(V, C), (V2, c2)])
    assert chain.known.width == 2 + 4 + 6
    assert chain.settled([], np.random.default_rng(0)) is None
    # the third layer sees the second one's units, and what the first has through others that are always on
    lift, deeper = Lift(chain.known), []
    through = np.array([s.theta for s in some[2:]])
    for mix in rng.normal(size=(4, 3)):
        a2, theta = rng.normal(size=2), mix @ through
        theta[:-1] -= (a2 * (two < 0.0)) @ V2
        theta = np.append(a2, theta)
        theta[-1] = -np.median(lift(X, np.zeros(0))[:, :-1] @ theta[:-1])
        z = lift(X, np.zeros(0)) @ theta
        points = [bisected(lift, theta, a, b) for a, b in zip(X[z > 0.0][:80], X[z < 0.0])]
        deeper.append(Surface(lift, np.zeros(0), theta, np.ones(len(theta), dtype=bool), points))
    found = chain.settled(deeper, np.random.default_rng(0))
    assert found is not None
    W, b = found[0].front.layers[-1]
    assert len(b) == 4 + 2
    np.testing.assert_allclose(W[:4], FLIP[:, None] * V)
    assert len(found[0].layers) == 1
    assert all(same(old, new) for old, new in zip(deeper, found[1]))
    z = Known(9, found[0].front.layers)(X) @ found[0].layers[0][0].T + found[0].layers[0][1]
    np.testing.assert_allclose(z, np.column_stack([s.value(X) for s in some[:2]]), atol=1e-9 * np.abs(z).max())


def test_what_is_passed_on_changes_where_the_unit_in_front_does() -> None:
    known = passing(FRONT, V, C)
    np.testing.assert_array_equal(passed(*known.layers[-1]), [-1, -1, -1, -1, 0, 1, 2, 3, 4, 5])
    np.testing.assert_array_equal(Lift(known).entry, [4, 5, 6, 7, 8, 9, 0, 1, 2, 3, *[-1] * 6])
    np.testing.assert_array_equal(known(X)[:, 4:], FRONT(X))


def test_what_is_passed_on_twice_changes_where_the_unit_in_front_does() -> None:
    known = passing(passing(FRONT, V, C), RNG.normal(size=(2, 10)), RNG.normal(size=2))
    np.testing.assert_array_equal(Lift(known).entry, [6, 7, 8, 9, 10, 11, 2, 3, 4, 5, *[-1] * 6, 0, 1, *[-1] * 10])


def behind(lift: Lift, theta: np.ndarray, seen: np.ndarray | None = None) -> Surface:
    """A surface with this θ, moved so that half of the inputs X are on each side."""
    theta = theta.copy()
    theta[-1] = -np.median(lift(X, np.zeros(0))[:, :-1] @ theta[:-1])
    z = lift(X, np.zeros(0)) @ theta
    points = [bisected(lift, theta, a, b) for a, b in zip(X[z > 0.0][:60], X[z < 0.0])]
    return Surface(lift, np.zeros(0), theta, np.ones(len(theta), dtype=bool) if seen is None else seen, points)


@pytest.mark.parametrize("on", [1, 2])
def test_a_weight_that_no_kink_shows_comes_from_the_units_behind(on: int) -> None:
    """Unit 0 is on wherever unit 5 in front is: any weight that keeps it so stands in for the right one."""
    rng, d = np.random.default_rng(11), (1.0 - FLIP) / 2.0
    stand_in, hidden = V.copy(), np.zeros(V.shape, dtype=bool)
    stand_in[0, 5], hidden[0, 5] = 10.0, True
    lift, surfaces = Lift(passing(FRONT, stand_in, C)), []
    for a, p in zip(rng.normal(size=(9, 4)), rng.normal(size=(9, on))):
        v = -(a * d) @ stand_in + p @ B[:on]
        v[5] += a[0] * (V[0, 5] - 10.0)
        surfaces.append(behind(lift, np.append(np.append(a, v), 0.0)))
    chain = Chain(FRONT, [(stand_in, C)], hidden)
    found = chain.settled(surfaces[:2], np.random.default_rng(0), surfaces[2:])
    assert found is not None
    W, b = found.chain.front.layers[-1]
    np.testing.assert_allclose(W[:4], FLIP[:, None] * V, atol=1e-9)
    np.testing.assert_allclose(b[:4], FLIP * C)
    assert len(b) == 4 + on
    # without units enough it stays open, and is not made up
    assert chain.settled(surfaces[:2], np.random.default_rng(0)) is None


@pytest.mark.parametrize("mostly_on", [False, True])
def test_of_a_unit_seldom_on_most_surfaces_say_nothing(mostly_on: bool) -> None:
    """It is off as a rule if what is passed on everywhere lacks its row; else all of that is known up to this row."""
    rng = np.random.default_rng(12)
    shift = np.where(np.arange(4) == 3, -200.0, C)  # laid so that it is off at nearly all inputs
    d = np.array([0.0, 1.0, 1.0, float(mostly_on)])
    lift, seen, surfaces = Lift(passing(FRONT, V, shift)), np.ones(4 + 6 + 1, dtype=bool), []
    seen[3] = False
    for a, p in zip(rng.normal(size=(10, 4)), rng.normal(size=(10, 1))):
        surfaces.append(behind(lift, np.append(np.append(a, -(a * d) @ V + p @ B[:1]), 0.0), seen.copy()))
    found = Chain(FRONT, [(V, shift)]).settled([], np.random.default_rng(0), surfaces)
    assert (found is None) == mostly_on
    if found is None:
        return
    W, b = found.chain.front.layers[-1]
    signs = 1.0 - 2.0 * d
    np.testing.assert_allclose(W[:4], signs[:, None] * V, atol=1e-9)
    np.testing.assert_allclose(b[:4], signs * shift)
    assert len(b) == 4 + 1
    np.testing.assert_allclose(np.abs(W[4] / np.linalg.norm(W[4])), np.abs(B[0] / np.linalg.norm(B[0])), atol=1e-9)


def test_a_unit_seldom_off_is_told_by_what_is_passed_on_everywhere_where_nothing_else_is() -> None:
    """Also a weight of it that no kink shows, and that most surfaces do not see."""
    rng = np.random.default_rng(12)
    known = np.ones(V.shape, dtype=bool)
    known[3, 2] = False
    shift, stand_in = np.where(np.arange(4) == 3, -200.0, C), np.where(known, V, -10.0)
    d = np.array([0.0, 1.0, 1.0, 1.0])
    lift, seen, surfaces = Lift(passing(FRONT, stand_in, shift)), np.ones(4 + 6 + 1, dtype=bool), []
    seen[3] = False
    for a in rng.normal(size=(10, 4)):
        surfaces.append(behind(lift, np.append(np.append(a, -(a * d) @ V), 0.0), seen.copy()))
    found = Chain(FRONT, [(stand_in, shift)], ~known).settled([], np.random.default_rng(0), surfaces)
    assert found is not None
    assert found.on == 0
    assert found.right
    W, b = found.chain.front.layers[-1]
    np.testing.assert_allclose(W, (1.0 - 2.0 * d)[:, None] * V, atol=1e-9)
    np.testing.assert_allclose(b, (1.0 - 2.0 * d) * shift)


def test_surfaces_that_each_lack_some_units_tell_all_of_them_together() -> None:
    """No surface sees all units; what one does not see is not even near to right in it."""
    rng, d = np.random.default_rng(21), (1.0 - FLIP) / 2.0
    lift, surfaces = Lift(passing(FRONT, V, C)), []
    for i, (a, p) in enumerate(zip(rng.normal(size=(10, 4)), rng.normal(size=(10, 1)))):
        seen = np.ones(4 + 6 + 1, dtype=bool)
        seen[[i % 4, (i + 1 + i // 5) % 4]] = False
        theta = np.append(np.append(a, -(a * d) @ V + p @ B[:1]), 0.0)
        theta[:4] = np.where(seen[:4], a, 100.0)
        surfaces.append(Surface(lift, np.zeros(0), theta, seen))
    chain = Chain(FRONT, [(V, C)])
    found = chain.settled(surfaces, np.random.default_rng(0))
    assert found is not None
    assert (found.shown, found.on) == (4, 1)
    assert not found.hidden.any()
    assert not found.surfaces  # none is whole
    W, b = found.chain.front.layers[-1]
    np.testing.assert_allclose(W[:4], FLIP[:, None] * V, atol=1e-9)
    np.testing.assert_allclose(b[:4], FLIP * C)
    np.testing.assert_allclose(np.abs(W[4] / np.linalg.norm(W[4])), np.abs(B[0] / np.linalg.norm(B[0])), atol=1e-9)
    # one that contradicts, and too few that see a unit: nothing is told
    wrong = replace(surfaces[0], theta=surfaces[0].theta + np.append(np.zeros(4), RNG.normal(size=7)))
    assert chain.settled([*surfaces[1:], wrong], np.random.default_rng(0)) is None
    assert chain.settled(surfaces[:4], np.random.default_rng(0)) is None


def unseen_in_front(on: int, sees: int) -> tuple[Chain, list[Surface]]:
    """Unit 5 in front is hardly ever on: no kink shows unit 0's weight of it, and few surfaces see it."""
    rng, d = np.random.default_rng(31), (1.0 - FLIP) / 2.0
    stand_in, hidden = V.copy(), np.zeros(V.shape, dtype=bool)
    stand_in[0, 5], hidden[0, 5] = 10.0, True
    lift, surfaces = Lift(passing(FRONT, stand_in, C)), []
    for i, (a, p) in enumerate(zip(rng.normal(size=(9, 4)), rng.normal(size=(9, on)))):
        v = -(a * d) @ stand_in + p @ B[:on]
        seen = np.ones(4 + 6 + 1, dtype=bool)
        seen[9] = i < sees
        v[5] = v[5] + a[0] * (V[0, 5] - 10.0) if seen[9] else 50.0
        surfaces.append(behind(lift, np.append(np.append(a, v), 0.0), seen))
    return Chain(FRONT, [(stand_in, C)], hidden), surfaces


@pytest.mark.parametrize("on", [0, 1])
def test_what_surfaces_do_not_see_of_a_unit_in_front_stays_open_and_the_rest_is_told(on: int) -> None:
    chain, surfaces = unseen_in_front(on, sees=2)
    found = chain.settled(surfaces, np.random.default_rng(0))
    assert found is not None
    W, b = found.chain.front.layers[-1]
    known = np.arange(6) != 5
    np.testing.assert_allclose(W[:4, known], (FLIP[:, None] * V)[:, known], atol=1e-9)
    np.testing.assert_allclose(b[:4], FLIP * C)
    assert W[0, 5] == 0.0  # not the weight that stood in for it
    np.testing.assert_array_equal(found.hidden, [[False] * 5 + [i in (0, 4)] for i in range(4 + on)])
    if on:
        rest = np.append(B[0, :5], 0.0)
        np.testing.assert_allclose(np.abs(W[4]), rest / np.linalg.norm(rest), atol=1e-9)
    assert len(found.kinks) == len(found.hidden) == 4 + on


def test_where_enough_surfaces_see_it_nothing_stays_open() -> None:
    chain, surfaces = unseen_in_front(0, sees=8)
    found = chain.settled(surfaces, np.random.default_rng(0))
    assert found is not None
    np.testing.assert_allclose(found.chain.front.layers[-1][0], FLIP[:, None] * V, atol=1e-9)


def test_the_row_of_the_one_unit_always_on_is_part_of_the_layer_once_it_is_known() -> None:
    row = np.append(B[0], -0.5)
    found = Chain(FRONT, [(V, C)]).settled(next_layer(1), np.random.default_rng(0), row=row)
    assert found is not None
    assert (found.shown, found.on) == (5, 0)
    assert found.right
    W, b = found.chain.front.layers[-1]
    np.testing.assert_allclose(np.append(W[4], b[4]), row)


def seldom_off(by: str) -> tuple[Chain, list[Surface], list[Point]]:
    """Unit 3 is off at next to no input, and surfaces do not see it; beside it one unit is on everywhere."""
    rng, d = np.random.default_rng(12), np.array([0.0, 1.0, 1.0, 1.0])
    shift = np.where(np.arange(4) == 3, -200.0, C)
    lift, surfaces, points = Lift(passing(FRONT, V, shift)), [], []
    for i, (a, p) in enumerate(zip(rng.normal(size=(10, 4)), rng.normal(size=(10, 1)))):
        seen = np.ones(4 + 6 + 1, dtype=bool)
        seen[3] = by == "surfaces" and i < 3
        surfaces.append(Surface(lift, np.zeros(0), np.append(np.append(a, -(a * d) @ V + p @ B[:1]), 0.0), seen))
    H = np.linalg.lstsq(V, np.array([1.0, -1.0, -1.0, 250.0]) - C, rcond=None)[0] + rng.normal(size=(400, 6))
    for h in H:
        on = (V @ h + shift > 0.0) != (d == 1.0)
        if not on[3] and on.sum() < 4:
            g = rng.normal(size=int(on.sum())) @ V[on] + rng.normal() * B[0]
            points.append(Point(np.eye(6), g, h))
    assert len(points) > 10
    return Chain(FRONT, [(V, shift)]), surfaces, points if by == "gradients" else []


@pytest.mark.parametrize("by", ["surfaces", "gradients"])
def test_what_is_always_on_is_told_from_a_unit_seldom_off_where_that_is_off(by: str) -> None:
    chain, surfaces, points = seldom_off(by)
    found = chain.settled([], np.random.default_rng(0), surfaces, points)
    assert found is not None
    assert (found.shown, found.on) == (4, 1)
    W, b = found.chain.front.layers[-1]
    np.testing.assert_allclose(W[3], -V[3], atol=1e-9)
    np.testing.assert_allclose(b[3], 200.0)
    np.testing.assert_allclose(np.abs(W[4] / np.linalg.norm(W[4])), np.abs(B[0] / np.linalg.norm(B[0])), atol=1e-9)


def test_gradients_that_contradict_do_not_tell_what_is_always_on() -> None:
    chain, surfaces, points = seldom_off("gradients")
    wrong = [replace(p, g=p.g + 0.1 * RNG.normal(size=6)) for p in points]
    assert chain.settled([], np.random.default_rng(0), surfaces, wrong) is None
    assert chain.settled([], np.random.default_rng(0), surfaces, points[:2]) is None


def test_the_surface_of_an_open_unit_is_asked_for_only_where_all_its_weights_are_known() -> None:
    hidden = np.zeros(V.shape, dtype=bool)
    hidden[1, 3] = True
    chain = Chain(FRONT, [(V, C)], hidden)
    (surfaces,) = chain.surfaces(Lift(chain.known))
    assert [int(s.seen.sum()) for s in surfaces] == [11, 10, 11, 11]
    H = FRONT(X)
    np.testing.assert_array_equal([surfaces[1].certain(x) for x in X], H[:, 3] == 0.0)


def test_lines_are_looked_for_on_which_a_unit_is_on_that_seldom_is() -> None:
    rng = np.random.default_rng(0)
    shift = C - 100.0 * (np.arange(4) == 1)
    np.testing.assert_array_equal(seldom(FRONT, V, shift, rng), [1])
    pairs = Chain(FRONT, [(V, shift)]).rare(6, rng)
    assert pairs is not None
    for ends in pairs:
        assert (FRONT(ends) @ V[1] + shift[1] > 0.0).mean() > 0.8
    assert Chain(FRONT, [(V, C)]).rare(6, rng) is None


def test_rows_on_what_is_passed_on_become_rows_on_the_layer() -> None:
    """The same numbers at all h at which unit 0 is on with the weight that stood in, and with the right one."""
    rng, d = np.random.default_rng(13), (1.0 - FLIP) / 2.0
    stand_in, more = V.copy(), np.zeros(V.shape)
    stand_in[0, 5] = 10.0
    more[0, 5] = V[0, 5] - 10.0
    a, p, shift = rng.normal(size=(3, 4)), rng.normal(size=(3, 2)), np.array([0.5, 1.5])
    block = np.column_stack([a, -(a * d) @ stand_in + a @ more + p @ B, rng.normal(size=3)])
    found = _rewritten(block, stand_in, C, d, more, B, shift)
    H = np.abs(rng.normal(size=(20_000, 6)))
    H = H[(H @ V[0] + C[0] > 0.0) & (H @ stand_in[0] + C[0] > 0.0)]
    assert len(H) > 50
    one = np.ones((len(H), 1))
    before = np.hstack([np.maximum(H @ stand_in.T + C, 0.0), H, one]) @ block.T
    W = FLIP[:, None] * V
    W[1:] = (FLIP[:, None] * stand_in)[1:]
    after = np.hstack([np.maximum(H @ W.T + FLIP * C, 0.0), H @ B.T + shift, one]) @ found.T
    np.testing.assert_allclose(after, before, atol=1e-10)


def test_a_weight_of_a_unit_that_is_never_on_is_left_alone() -> None:
    W, b = FRONT.layers[0]
    front = Known(9, ((W, np.where(np.arange(6) == 3, -1e6, b)),))
    known = np.ones(V.shape, dtype=bool)
    known[1, 3] = False
    rng = np.random.default_rng(0)
    laid, _ = mostly_off(front, kept(front, np.where(known, V, 0.0), C, known, rng), C, rng)
    assert laid[1, 3] == 0.0


def test_units_are_laid_so_that_they_are_off_as_a_rule() -> None:
    known = np.ones(V.shape, dtype=bool)
    known[1, 3] = False
    rough = np.where(known, V, 0.0)
    rng = np.random.default_rng(0)
    laid, shift = mostly_off(FRONT, kept(FRONT, rough, C, known, rng), C, rng)
    H = FRONT(np.random.default_rng(1).normal(size=(4000, 9)) * 3.0)
    assert ((H @ laid.T + shift > 0.0).mean(axis=0) < 0.6).all()
    sign = np.sign(laid[:, 0] * V[:, 0])
    np.testing.assert_allclose(sign[:, None] * laid * known, rough)
    np.testing.assert_allclose(sign * shift, C)
    # where unit 3 in front has just come on, unit 1 stays where it was
    near = H[(H[:, 3] > 0.0) & (H[:, 3] < 0.05)]
    before = near * (np.arange(6) != 3) @ rough[1] + C[1] > 0.0
    on = H[H[:, 3] > 1.0]
    after = on @ (sign[1] * laid[1]) + C[1] > 0.0
    assert abs(after.mean() - float(before.mean() > 0.5)) < 0.02
