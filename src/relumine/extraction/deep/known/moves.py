"""Moves that known layers cannot see: to another input with the same activations behind the last of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array
from relumine.extraction.deep.known.charts import Known

_BATCH = 512  # inputs whose regions are held at a time
_NONE = 1e-6  # of a direction that is left: it is none
_SHARE = 0.9  # of the way to the end of the region
_MOVED = 1e-4  # of the activations in front of a layer, by how much a move must change them to tell anything of it


class Moves(NamedTuple):
    """From each of ``starts`` (n, d) to one of ``ends``; ``telling``: whether what is in front of the last layer moves.

    Where it does not, as the layers in front do not see the move, either, it tells nothing of the last one.
    """

    starts: Array
    ends: Array
    telling: NDArray[np.bool_]

    def of(self, use: NDArray[np.bool_]) -> Moves:
        """Those that are used."""
        return Moves(self.starts[use], self.ends[use], self.telling[use])


def unseen_moves(known: Known, X: Array, rng: np.random.Generator) -> Moves:
    """Moves from the rows of X, but for those from which there is none: inside their regions, the known layers fixed.

    If the layers are complete and their signs right, the box cannot tell the two ends of a move apart.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> known = Known(5, ((rng.normal(size=(3, 5)), np.ones(3)),))
    >>> moves = unseen_moves(known, rng.normal(size=(4, 5)), rng)
    >>> len(moves.starts), bool(np.allclose(known(moves.starts), known(moves.ends), atol=1e-12))
    (4, True)
    """
    parts = [_some(known, X[i : i + _BATCH], rng) for i in range(0, max(len(X), 1), _BATCH)]
    return Moves(*(np.concatenate(each) for each in zip(*parts)))


def _some(known: Known, X: Array, rng: np.random.Generator) -> Moves:
    if not len(X):
        return Moves(X, X, np.zeros(0, dtype=bool))
    at = known.regions(X)
    J = at.rows[:, -known.width :] * at.on[:, -known.width :, None]  # h_k = Jx + shift
    _, s, Vt = np.linalg.svd(J, full_matrices=False)
    Vt = Vt * (s > np.finfo(float).eps * max(J.shape[1:]) * s[:, :1])[:, :, None]
    ways = rng.normal(size=X.shape)
    if len(known.layers) > 1:  # other directions were asked for when the first layer was all there is
        W = known.layers[0][0]
        ways = rng.normal(size=(len(X), len(W))) @ W
    size = np.linalg.norm(ways, axis=1, keepdims=True)
    for _ in range(2):  # once more for the digits
        ways = ways - (np.swapaxes(Vt, 1, 2) @ (Vt @ ways[:, :, None]))[:, :, 0]
    left = np.linalg.norm(ways, axis=1) >= _NONE * size[:, 0]
    ways *= np.sqrt(known.d) / size
    room, _ = at.room(X, ways)
    ends = X + _SHARE * np.minimum(room, 1.0)[:, None] * ways
    front = Known(known.d, known.layers[:-1])
    H, G = front(X), front(ends)
    telling = np.abs(H - G).max(axis=1) > _MOVED * np.maximum(np.abs(H), np.abs(G)).max(axis=1)
    return Moves(X, ends, telling).of(left)
