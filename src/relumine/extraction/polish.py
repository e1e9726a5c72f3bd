"""From the sum that lines show to a network as people write it: the activation, and signs that leave no affine part.

Lines know every unit up to the sign of (w, b), because relu(z) = z + relu(−z): a flip only moves an affine function.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from relumine.activations import Activation, LeakyReLU
from relumine.network import Network, flip_columns
from relumine.recovery.orient import orient
from relumine.results import InvalidInput
from relumine.tensors.subsets import subsets

Array = NDArray[np.float64]

__all__ = ["Signed", "signed"]

_VANISHES = 1e-7  # of the affine part, relative to the largest unit: what is left of it is error, not a part
_ROUGHLY = 3e-4  # the same for answers in single precision
_DIGITS = 8.0  # to which the affine part is known: with more flips than that many digits, some match by chance


class Signed(NamedTuple):
    """``network`` with its signs; ``word``: how they were found; ``open`` (m,): units whose sign is not determined."""

    network: Network
    word: str
    open: NDArray[np.bool_]


def signed(net: Network, activation: Activation, *, rough: bool = False, seconds: float = 20.0) -> Signed:
    """The network of ``activation`` units (ReLU or leaky ReLU) with no affine part, or an output bias alone, if any is.

    ``net``: ReLU units with (q, m) output weights and an affine part. For ReLU a slope ≠ 0 is looked for where no
    choice of signs fits.
    """
    if not net.m:
        return Signed(net, "", np.zeros(0, dtype=bool))
    limit = _ROUGHLY if rough else _VANISHES
    word = "no choice of signs removes the affine part, or leaves an output bias; it is kept"
    tried = [as_leaky(net, activation.slope) if isinstance(activation, LeakyReLU) else net]
    slope = None if isinstance(activation, LeakyReLU) or rough else _slope(net)
    if slope is not None:
        tried.append(as_leaky(net, slope))
    for form in tried:
        for bias in (False, True):
            if bias and form.m * np.log10(2.0) > _DIGITS * form.d * (form.q or 1) - 3.0:
                continue
            turned = orient(form, exact=not rough, bias=bias, seconds=seconds)
            if turned.residual > limit:
                continue
            found = turned.network
            pure = found.replace(v=np.zeros_like(found.v), c=found.c if bias else np.zeros_like(found.c))
            how = f"unit signs from {turned.how}" + ("; an output bias stays" if bias else "")
            if form is not tried[0]:
                how += f"; the affine part is that of leaky ReLU units of slope {slope:.6g}"
            return Signed(pure, how, _open(pure, bias))
    return Signed(tried[0], word, np.ones(net.m, dtype=bool))


def as_leaky(net: Network, slope: float) -> Network:
    """The same function by leaky units: relu(z) = (leaky(z) − s z)/(1 − s)."""
    a = net.a / (1.0 - slope)
    return Network(net.W, net.b, a, LeakyReLU(slope), net.v - slope * a @ net.W, net.c - slope * a @ net.b)


def _slope(net: Network) -> float | None:
    """The slope s of leaky units that leave no affine part but a constant, if there is one.

    Σ a_i leaky(ξ_i z_i) has the affine part ½ ρ Σ ξ_i J_i z_i with J_i = a_i(1 − s) and ρ = (1 + s)/(1 − s), beside
    ½ Σ J_i |z_i|. Where the J_i w_i are independent, all coefficients ρ ξ_i must have one absolute value.
    """
    if net.m < 2 or net.m > net.d * (net.q or 1):
        return None
    columns = flip_columns(net).reshape(net.q or 1, net.d + 1, net.m)[:, :-1].reshape(-1, net.m)
    affine = (net.v + 0.5 * net.a @ net.W).ravel()
    singular = np.linalg.svd(columns, compute_uv=False)
    if singular[-1] <= 1e-9 * singular[0]:
        return None
    rho = 2.0 * np.linalg.lstsq(columns, affine, rcond=None)[0]
    size = float(np.median(np.abs(rho)))
    left = np.abs(columns @ (0.5 * np.sign(rho) * size) - affine).max()
    if left > _VANISHES * np.abs(columns).max() or abs(size - 1.0) <= 1e-6:
        return None
    return (size - 1.0) / (size + 1.0)


def _open(net: Network, bias: bool) -> NDArray[np.bool_]:
    """Units (m,) in a set that can be flipped together without changing the function (but for the output bias)."""
    blocks = flip_columns(net).reshape(net.q or 1, net.d + 1, net.m)
    M = (blocks[:, :-1] if bias else blocks).reshape(-1, net.m)
    size = np.abs(M).max()
    if M.shape[0] >= net.m and np.linalg.svd(M / size, compute_uv=False)[-1] > 1e-9:
        return np.zeros(net.m, dtype=bool)
    try:
        return np.asarray(subsets(M / size, np.zeros(len(M)), 1e-8).any(axis=0))
    except InvalidInput:  # more than can be listed: by counting, a coincidence to eight digits is not to be expected
        return np.full(net.m, net.m * np.log10(2.0) > _DIGITS * M.shape[0] - 3.0)
