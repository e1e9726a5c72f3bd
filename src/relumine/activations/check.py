"""Is an activation what it declares to be? Every claim is tested numerically, and every wrong one is named."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from relumine.activations.base import Activation
from relumine.activations.quadrature import hermite_coefficient
from relumine.arrays import Array
from relumine.results import InvalidInput

_STEP = 1e-5  # near the cube root of rounding error, where a central difference loses least
# orders that the methods use and two more; biases on both sides; norms around 1, and 0, where only c_0 is left
_ORDERS, _BIASES, _NORMS = range(7), (-1.3, 0.0, 0.4), (0.0, 0.5, 1.0, 3.0)


def check_activation(sigma: Any) -> None:
    """Verify an activation of your own; an error lists everything that is wrong with it.

    Checked: the members of :class:`Activation`; values and derivatives are finite arrays of the shape of z; the
    derivative against differences; kinks that are not declared; homogeneity; the reflection σ(−z) = sσ(z) + pz + q;
    and c_k(r, b) for k ≤ 6 against quadrature.

    Raises
    ------
    InvalidInput
        With one line per broken promise.

    Examples
    --------
    >>> from relumine.activations import RELU
    >>> check_activation(RELU)
    """
    members = ("name", "homogeneity", "reflection", "kinks", "derivative", "hermite", "__call__")
    missing = [member for member in members if not hasattr(sigma, member)]
    problems = [f"it has no {', '.join(missing)}"] if missing else list(_problems(sigma))
    if problems:
        lines = "\n- ".join(problems)
        raise InvalidInput(f"{getattr(sigma, 'name', type(sigma).__name__)} is not a valid activation:\n- {lines}")


def _problems(sigma: Activation) -> Iterator[str]:
    if not isinstance(sigma.name, str) or not sigma.name:
        yield "name must be a non-empty string"
    z = _points(sigma.kinks)
    shape = list(_shape_problems(sigma, z))
    if shape:  # nothing else can be computed
        yield from shape
        return
    yield from _slope_problems(sigma, z)
    yield from _symmetry_problems(sigma, z)
    yield from _hermite_problems(sigma)


def _points(kinks: tuple[float, ...]) -> Array:
    """Points in [−8, 8], none within reach of a declared kink."""
    z = np.linspace(-8.0, 8.0, 4001) + 0.00037
    for kink in kinks:
        z = z[np.abs(z - kink) > 10.0 * _STEP]
    return z


def _shape_problems(sigma: Activation, z: Array) -> Iterator[str]:
    grid = z[:12].reshape(3, 4)
    for what, function in (("the value σ(z)", sigma.__call__), ("the derivative", sigma.derivative)):
        out = function(grid)
        if not isinstance(out, np.ndarray) or out.shape != grid.shape or out.dtype != np.float64:
            yield f"{what} must be a float64 array of the shape of z, here {grid.shape}; got {_describe(out)}"
        elif not np.isfinite(function(np.concatenate([z, [-60.0, 60.0]]))).all():
            yield f"{what} is not finite everywhere on [−60, 60]"


def _slope_problems(sigma: Activation, z: Array) -> Iterator[str]:
    slope = sigma.derivative(z)
    size = 1.0 + np.abs(slope) + np.abs(sigma(z))
    difference = (sigma(z + _STEP) - sigma(z - _STEP)) / (2.0 * _STEP)
    wrong = np.abs(difference - slope) / size
    if wrong.max() > 1e-5:  # differences are good to 1e-9; a wrong formula is off by far more
        at = int(wrong.argmax())
        yield f"derivative({z[at]:.4g}) = {slope[at]:.6g}, but differences of σ give {difference[at]:.6g}"
    jump = np.abs(np.diff(slope)) / size[1:]
    for kink in sigma.kinks:
        jump[(z[:-1] < kink) & (kink < z[1:])] = 0.0
    # points are 0.004 apart: a smooth slope moves that much only if it is steep everywhere, and then the median is, too
    if jump.max() > 0.02 and jump.max() > 30.0 * float(np.median(jump)):
        at = int(jump.argmax())
        yield f"the derivative jumps between {z[at]:.4g} and {z[at + 1]:.4g}: declare that point in kinks"


def _symmetry_problems(sigma: Activation, z: Array) -> Iterator[str]:
    scale = 1.0 + np.abs(sigma(z))
    if sigma.homogeneity is not None:
        for t in (0.3, 2.5):
            wrong = np.abs(sigma(t * z) - t**sigma.homogeneity * sigma(z)) / scale
            if wrong.max() > 1e-10 * 2.5 ** abs(sigma.homogeneity):
                at = float(z[wrong.argmax()])
                yield f"homogeneity = {sigma.homogeneity}, but σ({t}·{at:.4g}) ≠ {t}^{sigma.homogeneity} σ({at:.4g})"
                break
    if sigma.reflection is not None:
        s, p, q = sigma.reflection
        wrong = np.abs(sigma(-z) - (s * sigma(z) + p * z + q)) / scale
        if wrong.max() > 1e-10:
            at = float(z[wrong.argmax()])
            yield f"reflection = ({s:g}, {p:g}, {q:g}), but σ(−z) ≠ {s:g}σ(z) + {p:g}z + {q:g} at z = {at:.4g}"


def _hermite_problems(sigma: Activation) -> Iterator[str]:
    b, r = np.meshgrid(_BIASES, _NORMS)
    for k in _ORDERS:
        c = sigma.hermite(k, b, r)
        if not isinstance(c, np.ndarray) or c.shape != b.shape:
            yield f"hermite({k}, b, r) must have the shape of b and r together, {b.shape}; got {_describe(c)}"
            return
        reference = hermite_coefficient(sigma, sigma.kinks, k, b, r)
        size = np.sqrt(float(np.prod(np.arange(1, k + 1)))) * (1.0 + np.abs(reference).max())
        wrong = np.abs(c - reference) / size
        if not wrong.max() < 1e-8:
            at = np.unravel_index(np.nan_to_num(wrong, nan=np.inf).argmax(), b.shape)
            yield f"hermite({k}, b={b[at]:g}, r={r[at]:g}) = {c[at]:.8g}, but quadrature gives {reference[at]:.8g}"


def _describe(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    return type(value).__name__
