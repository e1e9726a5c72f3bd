"""Kinks of a piecewise-linear function along many segments at once, every round one call of the box."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ask = Callable[[Array], Array]

__all__ = ["Ask", "Segment", "segments"]

_STUB = 1e-3  # length of a stub over that of its segment: straddles a kink in one of a thousand
_SHORTEST = 1e-9  # of a stretch over its segment: kinks closer than that cannot be told apart
_ROUNDING = 64.0 * float(np.finfo(float).eps)  # of a value: sums of some hundred products in each of a few layers
_NEAR = 0.01  # distance of the points beside a crossing over that to the ends of its stretch
_ROUNDS = 80


@dataclass
class Segment:
    """x(t) = start + t·direction, t in [0, 1]: where f bends, sorted, and the slopes on both sides of each bend.

    ``unresolved``: stretches (left, right) that were neither straight nor a single bend down to the shortest length;
    ``jump``: the largest step of the value across one of them.
    """

    start: Array
    direction: Array
    t: Array
    left: Array
    right: Array
    unresolved: list[tuple[float, float]]
    jump: float = 0.0

    def at(self, t: Array) -> Array:
        """Points on the segment."""
        return np.asarray(self.start + np.multiply.outer(t, self.direction))


def segments(ask: Ask, starts: Array, ends: Array, most: int = 20_000) -> list[Segment]:
    """All kinks between ``starts`` and ``ends`` (n, d); gives up on a segment after ``most`` stretches."""
    search = _Search(ask, starts, ends - starts)
    return search.run(most)


class _Search:
    """Open stretches as rows of arrays: segment, ends, values and slopes at the ends (from inside)."""

    def __init__(self, ask: Ask, starts: Array, directions: Array) -> None:
        self.ask_rows, self.starts, self.directions = ask, starts, directions
        n = len(starts)
        self.found: list[list[tuple[float, float, float]]] = [[] for _ in range(n)]
        self.open: list[list[tuple[float, float]]] = [[] for _ in range(n)]
        self.jump = np.zeros(n)
        self.work = np.zeros(n, dtype=int)
        self.scale = np.zeros(n)

    def ask(self, seg: Array, t: Array) -> Array:
        """Values at (segment, t), flat."""
        y = self.ask_rows(self.starts[seg] + t[:, None] * self.directions[seg])
        np.maximum.at(self.scale, seg, np.abs(y))
        return y

    def stub(self, seg: Array, t: Array, length: Array) -> tuple[Array, Array, Array, Array]:
        """Three points from t on: (t, value at t, slope, straight). ``length`` may be negative."""
        points = np.concatenate([t, t + 0.45 * length, t + length])
        y0, y1, y2 = np.split(self.ask(np.tile(seg, 3), points), 3)
        slope = (y2 - y0) / length
        straight = np.abs(y0 + 0.45 * length * slope - y1) <= 4.0 * _ROUNDING * self.scale[seg]
        return t, y0, slope, straight

    def run(self, most: int) -> list[Segment]:
        n = len(self.starts)
        seg = np.arange(n)
        zero, one = np.zeros(n), np.ones(n)
        _, yl, sl, okl = self.stub(seg, zero, np.full(n, _STUB))
        _, yr, sr, okr = self.stub(seg, one, np.full(n, -_STUB))
        # columns: left end, right end, values, slopes, lengths over which the slopes are known, whether they are good
        items = np.column_stack([seg, zero, one, yl, yr, sl, sr, np.full(n, _STUB), np.full(n, _STUB), okl, okr])
        for _ in range(_ROUNDS):
            if not len(items):
                break
            items = self.round(items, most)
        for row in items:
            self.open[int(row[0])].append((row[1], row[2]))
        out = []
        for i in range(n):
            kinks = np.array(sorted(self.found[i])).reshape(-1, 3)
            out.append(
                Segment(
                    self.starts[i], self.directions[i], kinks[:, 0], kinks[:, 1], kinks[:, 2], self.open[i], self.jump[i]
                )
            )
        return out

    def round(self, items: Array, most: int) -> Array:
        """One look at every open stretch."""
        seg = items[:, 0].astype(int)
        l, r, yl, yr, sl, sr, el, er = items[:, 1:9].T
        good = (items[:, 9] > 0) & (items[:, 10] > 0)
        length = r - l
        with np.errstate(divide="ignore", invalid="ignore"):
            cross = (yr - yl + sl * l - sr * r) / (sl - sr)
        noise = _ROUNDING * self.scale[seg]
        # what two extrapolated lines may differ by: rounding over the stubs, times the distance
        slack = 4.0 * noise * (1.0 + length / np.minimum(el, er))
        straight = good & (np.abs(yl + sl * length - yr) <= slack) & (np.abs(sl - sr) * length <= 2.0 * slack)
        inside = good & ~straight & (cross > l) & (cross < r) & np.isfinite(cross)
        # three points: for straight stretches anywhere, for crossings the crossing and one on each side
        # close by: further off, two kinks between the crossing and the point would pass for none
        near = _NEAR * np.minimum(cross - l, r - cross)
        a = np.where(inside, cross - near, l + 0.31 * length)
        m = np.where(inside, cross, l + 0.5 * length)
        b = np.where(inside, cross + near, l + 0.73 * length)
        m, a, b = (np.where(good, v, l + 0.5 * length) for v in (m, a, b))
        probe = np.flatnonzero(straight | inside)
        ya = np.zeros_like(l)
        ym, yb = ya.copy(), ya.copy()
        if len(probe):
            s = seg[probe]
            y = self.ask(np.tile(s, 3), np.concatenate([a[probe], m[probe], b[probe]]))
            ya[probe], ym[probe], yb[probe] = np.split(y, 3)
        fits_a = np.abs(yl + sl * (a - l) - ya) <= slack
        fits_b = np.abs(yr + sr * (b - r) - yb) <= slack
        fits_m = np.abs(yl + sl * (m - l) - ym) <= slack
        flat = straight & fits_a & fits_b & fits_m
        kink = inside & fits_a & fits_b & fits_m
        for i in np.flatnonzero(kink):
            left, right = (ya[i] - yl[i]) / (a[i] - l[i]), (yr[i] - yb[i]) / (r[i] - b[i])
            t = (yr[i] - yl[i] + left * l[i] - right * r[i]) / (left - right)
            self.found[seg[i]].append((t, left, right))
        rest = np.flatnonzero(~(flat | kink))
        np.add.at(self.work, seg[rest], 1)
        return self.split(items[rest], np.where(inside, cross, np.nan)[rest], most)

    def split(self, items: Array, cross: Array, most: int) -> Array:
        """Two stretches for each, with a stub on both sides of the cut; ends whose stub was bent get a new one."""
        if not len(items):
            return items
        seg = items[:, 0].astype(int)
        l, r = items[:, 1], items[:, 2]
        tiny = (r - l < _SHORTEST) | (self.work[seg] > most)
        for i in np.flatnonzero(tiny):
            self.open[seg[i]].append((l[i], r[i]))
            if r[i] - l[i] < 10.0 * _SHORTEST:
                self.jump[seg[i]] = max(self.jump[seg[i]], abs(items[i, 4] - items[i, 3]))
        items, cross = items[~tiny], cross[~tiny]
        if not len(items):
            return items
        seg = items[:, 0].astype(int)
        l, r = items[:, 1], items[:, 2]
        length = r - l
        # where two lines cross there is often a kink near by: cut a little off the middle, on random-looking sides
        cut = l + length * (0.5 + 0.11 * np.sin(1e3 * (l + r)))
        e = _STUB * length
        k = len(items)
        _, y1, s1, ok1 = self.stub(np.tile(seg, 2), np.tile(cut, 2), np.concatenate([-e, e]))
        out = np.repeat(items, 2, axis=0)
        first, second = out[0::2], out[1::2]
        first[:, 2], first[:, 4], first[:, 6], first[:, 8], first[:, 10] = cut, y1[:k], s1[:k], e, ok1[:k]
        second[:, 1], second[:, 3], second[:, 5], second[:, 7], second[:, 9] = cut, y1[k:], s1[k:], e, ok1[k:]
        out[0::2], out[1::2] = first, second
        self.renew(out, left=True)
        self.renew(out, left=False)
        return out

    def renew(self, items: Array, left: bool) -> None:
        """New, shorter stubs at ends where the old one was bent or is longer than a tenth of the stretch."""
        end, value, slope, reach, ok = (1, 3, 5, 7, 9) if left else (2, 4, 6, 8, 10)
        length = items[:, 2] - items[:, 1]
        bad = np.flatnonzero((items[:, ok] == 0) | (items[:, reach] > 0.1 * length))
        if not len(bad):
            return
        e = _STUB * length[bad] * (1.0 if left else -1.0)
        _, y, s, good = self.stub(items[bad, 0].astype(int), items[bad, end], e)
        items[bad, value], items[bad, slope], items[bad, reach], items[bad, ok] = y, s, np.abs(e), good
