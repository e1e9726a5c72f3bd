"""Networks with known answers, and samples from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import roots_hermitenorm

from relumine.activations import Activation
from relumine.arguments import is_whole, one_of
from relumine.arrays import Array, unit_rows
from relumine.deep import DeepNetwork
from relumine.network import Network
from relumine.results import InvalidInput

Rng = int | np.random.Generator | None
Family = Literal[
    "generic", "orthonormal", "conditioned", "smoothed", "hermite_roots", "large_bias", "nearly_parallel", "dependent"
]

WeightFamily = Literal["random", "identity", "centred_identity", "simplex", "haar", "centred_haar"]

# what a family asks of d, m and the number of outputs, in words and as a test
_NEEDS: dict[str, tuple[str, Callable[[int, int, int | None], bool]]] = {
    "orthonormal": ("m ≤ d", lambda d, m, outputs: m <= d),
    "conditioned": ("m ≤ d", lambda d, m, outputs: m <= d),
    "large_bias": ("m ≥ 2", lambda d, m, outputs: m >= 2),
    "nearly_parallel": ("m ≥ 2 and d ≥ 2", lambda d, m, outputs: m >= 2 and d >= 2),
    "dependent": ("m ≥ 2 and one output", lambda d, m, outputs: m >= 2 and outputs is None),
}

__all__ = ["Family", "WeightFamily", "deep", "network", "sample", "weights"]


def network(
    d: int,
    m: int,
    rng: Rng = None,
    *,
    family: Family = "generic",
    outputs: int | None = None,
    activation: str | Activation = "relu",
    bias: float = 1.0,
    condition: float = 2.0,
    tau: float = 0.1,
    angle: float = 5.0,
) -> Network:
    """Draw a network with known parameters.

    Every family starts from unit directions uniform on the sphere, biases uniform in [−bias, bias] and
    output weights of random sign with |a| uniform in [½, 2], and then:

    - ``generic``: nothing more.
    - ``orthonormal``: orthonormal rows, b = 0, a = 1 (m ≤ d): the second moment carries no information.
    - ``conditioned``: W = U diag(linspace(1, κ, m)) Vᵀ with κ = ``condition``, b = 0, a = ±1 (m ≤ d; Zhong 2017).
    - ``smoothed``: an adversarial W (all rows equal) plus N(0, τ²/d) noise (Awasthi 2021, Appendix E).
    - ``hermite_roots``: biases cycle through 0, ±1 and the other roots of He_1 … He_4, where moments vanish.
    - ``large_bias``: the last two units have b = ±4: almost always on, almost always off.
    - ``nearly_parallel``: the second unit is ``angle`` degrees from the first.
    - ``dependent``: b = 0 and Σ a_i w_i = 0, so all signs may be flipped together (Claim 4.8; m ≥ 2).

    Examples
    --------
    >>> network(d=10, m=20, rng=0)
    Network(d=10, m=20, relu)
    """
    if d < 1 or m < 0:
        raise InvalidInput(f"a network needs d ≥ 1 inputs and m ≥ 0 units, got d={d}, m={m}")
    one_of("family", family, get_args(Family))
    if family in _NEEDS and not _NEEDS[family][1](d, m, outputs):
        raise InvalidInput(f"family {family!r} needs {_NEEDS[family][0]}, got d={d}, m={m}, outputs={outputs}")
    rng = np.random.default_rng(rng)
    W = unit_rows(rng.normal(size=(m, d)))
    b = rng.uniform(-bias, bias, size=m)
    shape = (m,) if outputs is None else (outputs, m)
    a = rng.uniform(0.5, 2.0, size=shape) * rng.choice([-1.0, 1.0], size=shape)
    if family in ("orthonormal", "conditioned"):
        left, right = _orthonormal(rng, m, m), _orthonormal(rng, d, m)
        one = family == "orthonormal"
        W = right.T if one else (left * np.linspace(1.0, condition, m)) @ right.T
        b, a = np.zeros(m), np.ones(shape) if one else np.sign(a)
    elif family == "smoothed" and m:
        W = unit_rows(W[:1] + rng.normal(size=(m, d)) * tau / np.sqrt(d))
    elif family == "hermite_roots":
        roots = np.concatenate([roots_hermitenorm(k)[0] for k in (1, 2, 3, 4)])
        b = np.resize(np.concatenate([[0.0, 1.0, -1.0, np.sqrt(3.0)], roots]), m)
    elif family == "large_bias":
        b[-2:] = (4.0, -4.0)
    elif family == "nearly_parallel":
        other = W[1] - (W[1] @ W[0]) * W[0]
        t = np.deg2rad(angle)
        W[1] = np.cos(t) * W[0] + np.sin(t) * other / np.linalg.norm(other)
    elif family == "dependent":
        b = np.zeros(m)
        # a_m w_m = −Σ_{i<m} a_i w_i, with w_m of length one
        last = a[:-1] @ W[:-1]
        a[-1] = -np.linalg.norm(last)
        W[-1] = last / np.linalg.norm(last)
    return Network(W, b, a, activation)


def deep(
    sizes: Sequence[int], rng: Rng = None, *, activation: str | Activation = "relu", bias: float = 0.5
) -> DeepNetwork:
    """Draw a deep network: ``sizes`` are the inputs, the hidden layers and the outputs.

    Rows are uniform on the sphere of radius √2, which keeps the size of the activations from layer to layer
    (E relu(z)² = E z²/2); biases are uniform in [−bias, bias]; output weights as in :func:`network`. One output is a
    plain number.

    Examples
    --------
    >>> deep(sizes=(784, 32, 32, 1), rng=0)
    DeepNetwork(784-32-32-1, relu)
    """
    if len(sizes) < 3 or not all(is_whole(k, 1) for k in sizes):
        raise InvalidInput(
            f"sizes are whole numbers ≥ 1: inputs, one or more hidden layers, outputs; got {sizes!r}", argument="sizes"
        )
    rng = np.random.default_rng(rng)
    layers = []
    for d, m in pairwise(sizes[:-1]):
        layers.append((np.sqrt(2.0) * unit_rows(rng.normal(size=(m, d))), rng.uniform(-bias, bias, size=m)))
    shape = (sizes[-2],) if sizes[-1] == 1 else (sizes[-1], sizes[-2])
    a = rng.uniform(0.5, 2.0, size=shape) * rng.choice([-1.0, 1.0], size=shape)
    return DeepNetwork.of([*layers, (a, rng.uniform(-bias, bias, size=shape[:-1]))], activation)


def weights(d: int, r: int, rng: Rng = None, *, family: WeightFamily = "random") -> Array:
    """Rows w_1 … w_r that are nearly isotropic: the teachers of Mondelli & Montanari 2019.

    - ``random``: g_i − mean(g), each scaled to length one, g_i ~ N(0, I/d) (Eq. 2 and 11).
    - ``identity``: the rows of I (r = d).
    - ``centred_identity``: I minus the mean of its rows, times √(d/(d−1)): unit rows whose sum is 0 (r = d).
    - ``simplex``: randomly turned vertices of the regular simplex in R^d; r a multiple of d + 1.
    - ``haar``: r/d independent Haar-distributed orthogonal matrices, one below the other.
    - ``centred_haar``: those minus their mean, as in Figure 1 there (the rows are then shorter than one by O(1/r)).

    Examples
    --------
    >>> W = weights(4, 10, rng=0, family="simplex")
    >>> W.shape, bool(abs(W.sum(axis=0)).max() < 1e-12)
    ((10, 4), True)
    """
    one_of("family", family, get_args(WeightFamily))
    if d < 2 or r < 2:
        raise InvalidInput(f"these weights need d ≥ 2 and r ≥ 2, got d={d}, r={r}")
    block = {"identity": d, "centred_identity": d, "simplex": d + 1, "haar": d, "centred_haar": d}.get(family, 1)
    if r % block or (family in ("identity", "centred_identity") and r != d):
        wanted = f"r = d = {d}" if family.endswith("identity") else f"r a multiple of {block}"
        raise InvalidInput(f"family {family!r} with d = {d} needs {wanted}, got r = {r}")
    rng = np.random.default_rng(rng)
    if family == "random":
        g = rng.normal(size=(r, d))
        return unit_rows(g - g.mean(axis=0))
    if family == "simplex":
        return np.concatenate([_vertices(d) @ _orthonormal(rng, d, d) for _ in range(r // block)])
    if family in ("identity", "centred_identity"):
        centred = family == "centred_identity"
        return (np.eye(d) - 1.0 / d) * np.sqrt(d / (d - 1.0)) if centred else np.eye(d)
    W = np.concatenate([_orthonormal(rng, d, d) for _ in range(r // block)])
    return np.asarray(W - W.mean(axis=0)) if family == "centred_haar" else W


def sample(
    net: Network,
    n: int,
    noise: float = 0.0,
    rng: Rng = None,
    *,
    mean: ArrayLike | None = None,
    cov: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """n Gaussian inputs (standard unless ``mean`` and ``cov`` are given) and labels f(x) + noise·N(0, 1).

    Examples
    --------
    >>> X, y = sample(network(3, 2, rng=0), n=5, rng=1)
    >>> X.shape, y.shape
    ((5, 3), (5,))
    """
    if n < 1:
        raise InvalidInput(f"n must be at least 1, got {n}")
    if not noise >= 0.0:
        raise InvalidInput(f"noise is a standard deviation and must be ≥ 0, got {noise}")
    rng = np.random.default_rng(rng)
    X = rng.normal(size=(n, net.d))
    if cov is not None:
        X = X @ np.linalg.cholesky(np.asarray(cov, dtype=np.float64)).T
    if mean is not None:
        X = X + np.asarray(mean, dtype=np.float64)
    y = net(X)
    return X, y + noise * rng.normal(size=y.shape) if noise else y


def _vertices(d: int) -> Array:
    """(d+1, d): the vertices of the regular simplex on the unit sphere."""
    centred = np.eye(d + 1) - 1.0 / (d + 1.0)
    basis = np.linalg.svd(centred)[2][:d]  # of the complement of (1, …, 1)
    return np.asarray(np.sqrt((d + 1.0) / d) * (centred @ basis.T))


def _orthonormal(rng: np.random.Generator, rows: int, columns: int) -> Array:
    # the signs of diag R make Q unique, and so distributed evenly (Haar) for Gaussian matrices
    Q, R = np.linalg.qr(rng.normal(size=(rows, columns)))
    return np.asarray(Q * np.sign(np.diag(R)))
