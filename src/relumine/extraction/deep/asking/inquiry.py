"""What a search carries from layer to layer: the box, the layers that are certain, rows to test against, its story."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array
from relumine.deep import DeepNetwork
from relumine.extraction.deep.asking.box import Asked
from relumine.extraction.deep.asking.witnesses import Witness
from relumine.extraction.deep.known.charts import Known
from relumine.extraction.deep.known.climb import tops
from relumine.extraction.deep.known.moves import Moves, unseen_moves
from relumine.extraction.deep.known.patterns import balanced
from relumine.extraction.deep.known.places import extremes
from relumine.extraction.queries import Unanswered
from relumine.run import Run

Pairs = tuple[Array, Array]
Mask = NDArray[np.bool_]


_MOVES = 25  # pairs of inputs that the known layers cannot tell apart
_KINKS = 40  # kinks next to which they are looked for: a missing unit shows at each of its own
# Draws in which to look for rows with digits, the share that must have some, and how much nearer they are drawn else.
_DRAWS, _SHARE, _NEARER = 24, 0.3, 0.7
_STRETCHES, _HALVES = 4, 6  # stretches on which a missing unit is looked for, and times that they are halved
OUT = 60.0  # distance from the origin over √d up to which rows are used: further out the errors of known layers show
# In the wide search: places of all at most, and over the rows asked so far, half of the rows that it may ask; inputs
# drawn at a time, so many times, and those used of them; times that what differs is asked for once more, at so many
# places; difference of answers over their size that counts: errors of known layers show up to 1e-7.
_PLACES, _SHARE_OF_ROWS = 20_000, 0.05
_MANY, _TIMES, _DRAWN, _AGAIN, _LOOKED, _FAR = 20_000, 100, 2_000, 4, 40, 1e-5
_BEHIND = 3  # units found behind the known layers that make those certain


class Stop(Exception):
    """Why the search ends here."""


class Inquiry:
    """``known``: the layers so far; ``pool``: random inputs and their answers; ``mark``: rows before this layer.

    ``pool`` is in coordinates of x itself, all others in those of the rows.
    ``certain``: the known layers that units behind them have confirmed; ``doubtful``: there were other candidates;
    ``quick``: those wait for their turn, before slow ways are taken; ``unsigned``: the units (V, c) of the next
    layer, of which it is open on which side each is on. ``checked``: for each layer, at how many places a unit that it
    lacks would have shown, if it was on there, and none did.
    """

    def __init__(self, asked: Asked, dim: int, run: Run) -> None:
        self.ask, self._inputs, self.run, self.rng = asked, dim, run, run.rng
        self.known = Known(dim)
        self.certain: tuple[tuple[Array, Array], ...] = ()
        self.doubtful = self.quick = False
        self.unsigned: tuple[Array, Array] | None = None
        self.checked: dict[int, int] = {}
        self.mended = 0  # times that a known layer got a unit that few inputs turn on
        self.beside: Pairs | None = None  # inputs at which the box saw more than known layers, and others at which not
        self._incomplete: tuple[tuple[Array, Array], ...] | None = None
        self.pool: tuple[Array, Array] = (np.zeros((0, dim)), np.zeros((0, 1)))
        self.mark = (0, 0)
        self.open: Mask | None = None  # weights of the head's units (m, d) that no row has shown
        self.draft: tuple[DeepNetwork, Mask | None] | None = None  # a network of x, right at nearly all rows; open
        self.measured: list[tuple[Witness, float]] = []  # kinks of the first layer with slopes, and their error
        self.notes: list[str] = []
        self.trace: list[str] = []

    @property
    def dim(self) -> int:
        """Number of coordinates of a row."""
        return self._inputs if self.ask.basis is None else self.ask.basis.shape[1]

    @contextmanager
    def within(self, basis: Array | None) -> Iterator[None]:
        """In other coordinates u, x = Qu with an orthonormal ``basis`` Q (d, r), or in x itself."""
        before = self.ask.basis
        self._turn(basis)
        try:
            yield
        finally:
            self._turn(before)

    def _turn(self, basis: Array | None) -> None:
        old, self.ask.basis = self.ask.basis, basis
        self.known = Known(self.dim, turned(self.known.layers, old, basis))
        self.certain = turned(self.certain, old, basis)

    def tell(self, text: str) -> None:
        """For whoever reads the trace."""
        self.trace.append(f"{text} [{self.ask.count}]")

    def say(self, text: str) -> None:
        """For the user, too."""
        self.notes.append(text)
        self.tell(text)

    def say_layer(self, k: int, units: int, on: int, open_: int = 0) -> None:
        """What layer k is, the first one 1: units with a kink, those that are always ``on``, and weights still open."""
        more = f", and {on} that no input seems to turn off" if on else ""
        weights = f"; {open_} of their weights are open: few inputs show them" if open_ else ""
        self.say(f"layer {k}: {units} units{more}{weights}")

    def rows(self, n: int) -> tuple[Array, Array]:
        """Random inputs and their answers, the first n of those drawn so far and as many more as needed."""
        missing = n - len(self.pool[0])
        if missing > 0:
            X, Y = self.drawn(missing, lambda n: 2.0 ** self.rng.uniform(-1.0, 1.5, size=(n, 1)))
            self.pool = (np.concatenate([self.pool[0], X]), np.concatenate([self.pool[1].reshape(-1, Y.shape[1]), Y]))
        return self.ask.coordinates(self.pool[0][:n]), self.pool[1][:n]

    def near(self) -> tuple[Array, Array]:
        """The rows asked so far and their answers, but for those far out."""
        X, Y = self.ask.data()
        use = np.linalg.norm(X, axis=1) <= OUT * np.sqrt(self.dim)
        return X[use], Y[use]

    def drawn(self, n: int, scale: Callable[[int], Array | float]) -> tuple[Array, Array]:
        """n normal inputs, so much larger, and their answers; where few have digits, those nearer to the centre.

        In x itself, whatever the coordinates: such rows polish all of the first layer.
        """
        X, Y, nearer = np.zeros((0, self._inputs)), np.zeros((0, 1)), 1.0
        for _ in range(_DRAWS):
            more = nearer * self.rng.normal(size=(n - len(X), self._inputs)) * scale(n - len(X))
            fresh, answers = self.ask.answered(more)
            X, Y = np.concatenate([X, fresh]), np.concatenate([Y.reshape(-1, answers.shape[1]), answers])
            if len(X) == n:
                return X, Y
            nearer *= 1.0 if len(fresh) > _SHARE * len(more) else _NEARER
        raise Unanswered("nearly all rows it needs have probabilities of 0 or 1 to rounding, which say nothing")

    def confirm(self, units: int, seen: list[Witness]) -> None:
        """The known layers are certain once units behind them were found and no kink ``seen`` is one of a missing unit.

        Units behind bend where they should only if most in front is right. A unit that is missing in the last known
        layer has kinks that look like those of a deeper one; but on one side of them the box sees more than is known.
        """
        layers = self.known.layers
        if units < _BEHIND or self.doubtful or len(layers) <= len(self.certain) or layers is self._incomplete:
            return
        self._incomplete = layers
        if self.complete(self.known, [seen[i] for i in self.rng.permutation(len(seen))[:_KINKS]]):
            if len(layers) > 1 and not self.searched(self.known):
                self.doubtful = True
            else:
                self.certain, self._incomplete = layers, None

    def complete(self, known: Known, kinks: Sequence[Witness] = (), also: Sequence[Array] = ()) -> bool:
        """Whether the box depends on nothing but the activations of these layers, as far as moves show.

        Moves start at random inputs, on both sides of ``kinks``, and where one unit in front of the last layer is far
        larger than the others, or all are small: behind one layer, a unit that is on anywhere is on at one of those.
        ``also``: further inputs from which they start.
        """
        self.beside = None
        scale = 2.0 ** self.rng.uniform(-1.0, 1.5, size=(_MOVES, 1))
        starts = list(scale * self.rng.normal(size=(_MOVES, self.dim)))
        starts += [w.point + side * w.gap * w.along for w in kinks for side in (-0.25, 0.25)]
        starts += list(also)
        if len(known.layers) > 1:
            front = Known(self.dim, known.layers[:-1])
            if not self._unmoved(known, [*tops(front, self.rng), *extremes(front)]):
                return False
        return self._unmoved(known, starts)

    def _unmoved(self, known: Known, starts: list[Array]) -> bool:
        """Whether the answers stay the same under moves that the known layers cannot see; else where they do not."""
        moves, same = self.told(known, np.reshape(starts, (-1, self.dim)))
        if not same.all() and same.any():
            self.beside = (moves.starts[~same], moves.starts[same])
        if same.all():
            self.count_checks(len(known.layers), int(moves.telling.sum()))
        return bool(same.all())

    def count_checks(self, layer: int, places: int) -> None:
        """A layer has passed at so many places; the largest number of a single look at it counts."""
        self.checked[layer] = max(self.checked.get(layer, 0), places)

    def told(self, known: Known, starts: Array) -> tuple[Moves, Mask]:
        """Such moves from those of the inputs where there are some, and at which of them the answers stay the same."""
        moves = self._with_digits(unseen_moves(known, starts, self.rng))
        y = self._both(moves)
        return moves, np.asarray(np.abs(y[:, 0] - y[:, 1]) <= 1e-7 * (np.abs(y).max(initial=0.0) + 1e-300))

    def _with_digits(self, moves: Moves) -> Moves:
        return moves.of(self.ask.digits(moves.starts) & self.ask.digits(moves.ends))

    def _both(self, moves: Moves) -> Array:
        """The answers at both ends (n, 2)."""
        return self.ask(np.stack([moves.starts, moves.ends], axis=1).reshape(-1, self.dim)).reshape(-1, 2)

    def lacking(self, X: Array) -> tuple[int, Array] | None:
        """The first known layer that is not all there at some of the rows of X, 1 for the first one, and those rows."""
        for k in range(1, len(self.known.layers) + 1):
            known = Known(self.dim, self.known.layers[:k])
            moves, same = self.told(known, X)
            there = [x for x in moves.starts[~same][:_LOOKED] if self._again(known, x)]
            if there:
                return k, np.array(there)
        return None

    def searched(self, known: Known) -> bool:
        """Whether none of many random inputs, near and far, shows anything of which the last known layer is blind.

        Each of them could show that a unit is missing which is on there. What differs there is asked for once more.
        """
        places, passed = min(int(_SHARE_OF_ROWS * self.ask.count), _PLACES), 0
        for _ in range(_TIMES):
            if passed >= places:
                break
            moves = self._telling(known, places - passed)
            off = self._differs(moves)
            X = moves.starts[off][:_LOOKED]
            lasting = np.array([self._again(known, x) for x in X], dtype=bool)
            if lasting.any():
                good = moves.starts[~off]
                self.beside = (X[lasting], good) if len(good) else None
                return False
            passed += len(off)
        self.count_checks(len(known.layers), passed)
        return True

    def _again(self, known: Known, x: Array) -> bool:
        """Whether most of some more moves from there show something, too."""
        again = self._with_digits(unseen_moves(known, np.tile(x, (_AGAIN, 1)), self.rng))
        return bool(2 * self._differs(again).sum() > _AGAIN)

    def _telling(self, known: Known, most: int) -> Moves:
        """Moves from random inputs, near and far, that tell of the last known layer, of many more.

        Each pattern of its units counts the same: what few inputs turn on is on at many with one rare pattern.
        """
        scale = np.where(self.rng.random((_MANY, 1)) < 0.5, 1.0, 2.0 ** self.rng.uniform(-2.0, 6.0, size=(_MANY, 1)))
        X = scale * self.rng.normal(size=(_MANY, self.dim))
        on = [z > 0.0 for z in known.before(X)]
        counts = [units.sum(axis=1) for units in on]
        # as many units on as in front, or more: as a rule there is no such move
        fewer = np.flatnonzero(counts[-1] < np.min([*counts[:-1], np.full(_MANY, self.dim)], axis=0))
        some = fewer[balanced(on[-1][fewer], min(most, _DRAWN), self.rng)]
        moves = self._with_digits(unseen_moves(known, X[some], self.rng))
        return moves.of(moves.telling)

    def _differs(self, moves: Moves) -> Mask:
        """Whether the answers at the ends of a move are far from equal."""
        y = self._both(moves)
        size = np.abs(y).max(axis=1)
        return np.asarray(np.abs(y[:, 0] - y[:, 1]) > _FAR * (size + (np.median(size) if len(size) else 0.0)))

    def narrowed(self, known: Known) -> Pairs | None:
        """Short stretches, at one end of which the box sees more than is known and not at the other.

        Where it does, a unit that is missing is on; so that one changes sides in between, or all units behind it do.
        """
        if self.beside is None:
            return None
        out, good = self.beside
        out = out[self.rng.permutation(len(out))[:_STRETCHES]]
        good = np.array([good[np.linalg.norm(good - x, axis=1).argmin()] for x in out])
        for _ in range(_HALVES):
            for i, middle in enumerate(0.5 * (out + good)):
                _, same = self.told(known, middle[None])
                if len(same):
                    (good if same[0] else out)[i] = middle
        return out, good

    def between(self, out: Array, good: Array) -> Pairs:
        """Pairs of inputs, one of which shows something that the other does not."""
        return out[self.rng.integers(len(out), size=4)], good[self.rng.integers(len(good), size=4)]


def turned(
    layers: tuple[tuple[Array, Array], ...], old: Array | None, new: Array | None
) -> tuple[tuple[Array, Array], ...]:
    """Layers of coordinates in the basis ``old`` as those in ``new``, none: x itself."""
    if not layers or old is new:
        return layers
    (W, b), *others = layers
    W = W if old is None else W @ old.T
    return ((W if new is None else W @ new, b), *others)
