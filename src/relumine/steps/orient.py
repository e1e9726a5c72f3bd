"""Signs back: which units to flip so that the affine part vanishes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from relumine.network import Network

Array = NDArray[np.float64]

__all__ = ["Orientation", "orient"]


class Orientation(NamedTuple):
    """A network of the same function whose affine part is as small as flips make it.

    ``residual``: largest entry of what is left of (v, c), relative to the largest before the flips were applied.
    ``unique``: the flips follow from a linear system of full rank. ``how``: the route taken, in words.
    """

    network: Network
    residual: float
    unique: bool
    how: str


def orient(net: Network, *, tolerance: float = 1e-6, seconds: float = 20.0) -> Orientation:
    """Choose flips ξ ∈ {0,1}^m with Mξ = −(v, c), where column i of M is what flipping unit i adds to (v, c).

    If the columns are independent (for q outputs there are (d+1)q equations) solve and round; otherwise it is an
    integer feasibility problem, handed to HiGHS. For ReLU, column i is a_i (w_i, b_i) (MATH: signs back).

    Examples
    --------
    >>> net = Network(np.eye(2), [0.3, -0.2], [1.0, -2.0])
    >>> orient(net.flip([1])).network.b
    array([ 0.3, -0.2])
    """
    reflection = net.activation.reflection
    if reflection is None or reflection.scale != 1.0 or not net.m:
        return Orientation(net, _affine_size(net), True, "nothing to flip")
    a = np.atleast_2d(net.a)  # (q, m)
    units = np.column_stack([-reflection.slope * net.W, reflection.constant - reflection.slope * net.b])
    M = np.einsum("qm,md->qdm", a, units).reshape(-1, net.m)
    target = -np.column_stack([np.atleast_2d(net.v), np.atleast_1d(net.c)]).ravel()
    size = max(float(np.abs(M).max()), float(np.abs(target).max()))
    if np.abs(target).max() <= 1e-14 * size:
        return Orientation(net, 0.0, True, "no affine part")
    singular = np.linalg.svd(M, compute_uv=False)
    unique = M.shape[0] >= net.m and singular[-1] > 1e-10 * singular[0]
    if unique:
        flips, how = np.linalg.lstsq(M, target, rcond=None)[0] > 0.5, "a linear system"
    else:
        found = _integer(M / size, target / size, tolerance, seconds)
        if found is None:
            return Orientation(net, 1.0, False, "no sign pattern found in time")
        flips, how = found, "an integer program"
    turned = net.flip(np.flatnonzero(flips))
    return Orientation(turned, _affine_size(turned) / size, unique, how)


def _affine_size(net: Network) -> float:
    return float(max(np.abs(net.v).max(initial=0.0), np.abs(net.c).max(initial=0.0)))


def _integer(M: Array, target: Array, tolerance: float, seconds: float) -> NDArray[np.bool_] | None:
    """Binary ξ with |Mξ − target| ≤ t, t as small as possible but no smaller than the tolerance."""
    m = M.shape[1]
    slack = np.ones((M.shape[0], 1))
    above = LinearConstraint(np.hstack([M, -slack]), ub=target)
    below = LinearConstraint(np.hstack([M, slack]), lb=target)
    answer = milp(
        c=np.append(np.zeros(m), 1.0),
        constraints=[above, below],
        integrality=np.append(np.ones(m), 0.0),
        bounds=Bounds(np.append(np.zeros(m), tolerance), np.append(np.ones(m), np.inf)),
        options={"time_limit": seconds, "mip_rel_gap": 0.5},
    )
    return None if answer.x is None else np.asarray(answer.x[:m] > 0.5)
