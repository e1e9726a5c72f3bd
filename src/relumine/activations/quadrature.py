"""Expectations under z ~ N(0, 1), by Gauss–Legendre panels split where the integrand is not smooth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import eval_hermitenorm

from relumine.arrays import Array

_REACH = 13.0  # φ(13) = 1e-37: nothing of at most polynomial growth is left beyond
_STEPS = np.arange(-_REACH, _REACH + 0.5, 2.0)  # ends of panels, of length 2
# a function of r z + b may turn sharply around 0 when r is large: panels at its own scale, too
_OWN = np.array([-32.0, -16.0, -8.0, -4.0, -2.0, 0.0, 2.0, 4.0, 8.0, 16.0, 32.0])
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)  # exact to degree 63 on panels of length 2


def normal_pdf(x: ArrayLike) -> Array:
    """φ(x), the standard normal density."""
    t = np.asarray(x, dtype=np.float64)
    return np.asarray(np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi))


def broadcast(b: ArrayLike, r: ArrayLike) -> tuple[Array, Array]:
    """Biases b and scales r as float64 arrays of one shape."""
    b, r = np.broadcast_arrays(np.asarray(b, dtype=np.float64), np.asarray(r, dtype=np.float64))
    return b, r


def gaussian_mean(
    function: Callable[[Array, Array], Array], kinks: tuple[float, ...], b: ArrayLike, r: ArrayLike
) -> Array:
    """E[g(z, r z + b)] for z ~ N(0, 1), elementwise in b and r ≥ 0; g is smooth but where r z + b is a kink.

    Accurate to about 1e-14 of E|g| for functions that turn on the scale 1 of their second argument.

    Examples
    --------
    >>> gaussian_mean(lambda z, u: np.maximum(u, 0.0) * z, (0.0,), b=0.0, r=[1.0, 2.0]).round(14)
    array([0.5, 1. ])
    """
    b, r = broadcast(b, r)
    flat_b, flat_r = b.reshape(-1, 1), r.reshape(-1, 1)
    marks = np.concatenate([_OWN, np.asarray(kinks, dtype=np.float64)])
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        own = np.nan_to_num((marks - flat_b) / flat_r, nan=0.0, posinf=_REACH, neginf=-_REACH)
    steps = np.broadcast_to(_STEPS, (flat_b.shape[0], _STEPS.size))
    edges = np.sort(np.clip(np.concatenate([own, steps], axis=1), -_REACH, _REACH), axis=1)
    total = np.zeros(flat_b.shape[0])
    for left, right in zip(edges.T[:-1], edges.T[1:]):
        half = 0.5 * (right - left)[:, None]
        z = 0.5 * (left + right)[:, None] + half * _NODES
        total += (half * _WEIGHTS * normal_pdf(z) * function(z, flat_r * z + flat_b)).sum(axis=1)
    return total.reshape(b.shape)


def hermite_coefficient(
    sigma: Callable[[Array], Array], kinks: tuple[float, ...], k: int, b: ArrayLike, r: ArrayLike = 1.0
) -> Array:
    """c_k(r, b) = E[σ(r z + b) He_k(z)] by quadrature, split at the kinks."""
    return gaussian_mean(lambda z, u: sigma(u) * eval_hermitenorm(k, z), kinks, b, r)
