"""Signs back: which units to flip so that the affine part vanishes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array
from relumine.network import Network, flip_columns
from relumine.results import InvalidInput
from relumine.tensors.subsets import nearest_subset, some_subset, subsets

LINEAR = "unit signs determined uniquely"  # the route that gives one answer
_FITS = "unit signs found: with these no affine part is needed"
_NONE = "this activation leaves no unit signs to choose"

_ALL_FLIPS = 16  # units up to which every set of flips is looked at; beyond, those of one and two


class Orientation(NamedTuple):
    """A network of the same function whose affine part is as small as flips make it.

    ``residual``: largest entry of what is left of (v, c), relative to that of the largest a_i(w_i, b_i). ``how``: the
    route taken, in words.
    """

    network: Network
    residual: float
    how: str


def orient(net: Network, *, exact: bool = True, bias: bool = False, seconds: float = 20.0) -> Orientation:
    """Flip units so that the affine part vanishes: ξ ∈ {0,1}^m with Mξ = −(v, c), M = ``flip_columns``.

    If the columns of M are independent, solve and round (this contains Awasthi's FixSigns); otherwise look for a
    subset of the columns with the given sum. ``exact=False``: (v, c) carries noise, take the nearest subset.
    ``bias``: the network may have an output bias, so v is to vanish and c may stay.

    Examples
    --------
    >>> net = Network(np.eye(2), [0.3, -0.2], [1.0, -2.0])
    >>> orient(net.flip([1])).network.b
    array([ 0.3, -0.2])
    """
    reflection = net.activation.reflection
    affine, M = _system(net, bias)
    size = largest_unit(net)  # M itself vanishes for even and odd activations
    if reflection is None or reflection.scale != 1.0 or not M.any():
        return Orientation(net, float(np.abs(affine).max()) / size, _NONE)
    singular = np.linalg.svd(M, compute_uv=False)
    flips: NDArray[np.bool_] | None
    if M.shape[0] >= net.m and singular[-1] > 1e-9 * singular[0]:
        flips, how = np.linalg.lstsq(M, -affine, rcond=None)[0] > 0.5, LINEAR
    elif np.abs(affine).max() <= 1e-14 * size:  # as it is
        flips, how = np.zeros(net.m, dtype=bool), _FITS
    elif exact:
        flips, how = some_subset(M / size, -affine / size, 1e-8, seconds=seconds), _FITS
    else:
        flips, how = nearest_subset(M / size, -affine / size, seconds=seconds), _FITS
    if flips is None:
        return Orientation(net, float(np.abs(affine).max()) / size, "no sign pattern was found")
    turned = net.flip(np.flatnonzero(flips))
    left = max(float(np.abs(turned.v).max()), 0.0 if bias else float(np.abs(turned.c).max()))
    return Orientation(turned, left / size, how)


def open_signs(net: Network, limit: float, *, bias: bool = False) -> NDArray[np.bool_]:
    """Units (m,) in some set of flips after which no entry of the affine part exceeds ``limit``: their signs are open.

    For the network of an orientation whose (v, c), or v alone with a ``bias``, is known up to an error of that size.

    Examples
    --------
    >>> net = Network(np.eye(2), [0.3, -0.2], [1.0, -0.01])
    >>> open_signs(net, 0.1)
    array([False,  True])
    """
    affine, M = _system(net, bias)
    if net.m <= _ALL_FLIPS:
        sets = (np.arange(1, 1 << net.m)[:, None] >> np.arange(net.m) & 1).astype(bool)
    else:
        pairs = np.column_stack(np.tril_indices(net.m))
        sets = np.zeros((len(pairs), net.m), dtype=bool)
        sets[np.arange(len(pairs))[:, None], pairs] = True
    left = np.abs(affine + sets @ M.T).max(axis=1, initial=0.0)
    return np.asarray(sets[left <= limit].any(axis=0))


def flippable(net: Network, *, bias: bool = False) -> NDArray[np.bool_] | None:
    """Units (m,) in some set that can be flipped together without changing the function; None: too many sets to list.

    With a ``bias`` such a flip may change the constant.

    Examples
    --------
    >>> flippable(Network([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0.0, 0.0, 0.0], [1.0, 1.0, -1.0]))
    array([ True,  True,  True])
    """
    _, M = _system(net, bias)
    size = max(float(np.abs(M).max(initial=0.0)), np.finfo(float).tiny)
    try:
        return np.asarray(subsets(M / size, np.zeros(len(M)), 1e-8).any(axis=0))
    except InvalidInput:
        return None


def largest_unit(net: Network) -> float:
    """The largest entry of a_i(w_i, b_i) in size, above 0."""
    units = np.abs(np.atleast_2d(net.a)) * np.abs(np.column_stack([net.W, net.b])).max(axis=1)
    return max(float(units.max(initial=0.0)), np.finfo(float).tiny)


def _system(net: Network, bias: bool) -> tuple[Array, Array]:
    """What is to vanish, (v, c) or with a ``bias`` v alone, outputs one after the other; what each flip adds to it."""
    wanted = np.ones(((net.q or 1), net.d + 1), dtype=bool)
    wanted[:, -1] = not bias
    affine = np.column_stack([np.atleast_2d(net.v), np.atleast_1d(net.c)])
    return affine[wanted], flip_columns(net)[wanted.ravel()]
