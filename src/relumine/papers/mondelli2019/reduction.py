"""Learning a network is at least as hard as decomposing a tensor (Mondelli & Montanari 2019, Theorem 4).

For σ(x) = Σ_k s_k x^k the labels are y(x) = Σ_k s_k ⟨T^{(k)}, x^{⊗k}⟩ with T^{(k)} = Σ_i w_i^{⊗k}. For unit weights a
trace over two indices turns T^{(k)} into T^{(k−2)}, so T^{(ℓ)} alone (σ of degree ≤ ℓ and ℓ's parity), or T^{(ℓ)} and
T^{(ℓ+1)} (any σ of degree ≤ ℓ + 1), give samples of the network for any inputs. Whoever learns the network from those
has decomposed the tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike

from relumine import activations
from relumine.activations import Activation, Polynomial
from relumine.arrays import Array, unit_rows
from relumine.papers.mondelli2019.isotropy import weight_rows
from relumine.results import InvalidInput
from relumine.tensors.symmetric import SymmetricTensor, powers, rank_one_sum

Learner = Callable[[Array, Array], ArrayLike]


def weight_tensor(W: ArrayLike, k: int) -> SymmetricTensor:
    """T^{(k)} = Σ_i w_i^{⊗k}."""
    W = weight_rows(W)
    return rank_one_sum(np.ones(len(W)), W, k)


def trace(T: SymmetricTensor) -> SymmetricTensor:
    """Σ_j T(…, e_j, e_j), an order lower by two: Σ w_i^{⊗k} becomes Σ ‖w_i‖² w_i^{⊗(k−2)}.

    Examples
    --------
    >>> trace(weight_tensor(np.eye(3), 3)).entries          # Σ e_i
    array([1., 1., 1.])
    """
    if T.order < 2:
        raise InvalidInput(f"a trace needs an order of at least 2, got {T.order}")
    identity = SymmetricTensor.from_dense(np.eye(T.d)).entries
    return SymmetricTensor(T.flatten(T.order - 2, 2) @ identity, T.d, T.order - 2)


def lower_orders(*given: SymmetricTensor) -> dict[int, SymmetricTensor]:
    """Every T^{(k)} that follows from those given by traces, if the weights have unit length."""
    known = {T.order: T for T in given}
    for k in range(max(known), 1, -1):
        if k in known and k - 2 not in known:
            known[k - 2] = trace(known[k])
    return known


def labels_from_tensors(
    tensors: Mapping[int, SymmetricTensor], activation: str | Activation, X: ArrayLike, width: int | None = None
) -> Array:
    """y(x) = Σ_k s_k ⟨T^{(k)}, x^{⊗k}⟩ for the rows of X (n, d): the network's labels without its weights.

    Parameters
    ----------
    tensors : mapping from order to tensor
        T^{(k)} for every k ≥ 1 with s_k ≠ 0; :func:`lower_orders` fills it.
    activation : Activation
        A polynomial.
    X : (n, d) array
    width : int, optional
        r = T^{(0)}, needed for a constant term that no trace of the tensors gives.

    Examples
    --------
    >>> W = np.eye(3)
    >>> labels_from_tensors(lower_orders(weight_tensor(W, 3)), "polynomial(0,1,0,1)", [[1.0, 2.0, 0.0]])    # x + x³
    array([12.])
    """
    sigma, X = activations.get(activation), weight_rows(X)
    if not isinstance(sigma, Polynomial):
        raise InvalidInput(f"only polynomial activations show finitely many tensors; {sigma.name} is none")
    y = np.zeros(len(X))
    for k, s in enumerate(sigma.coefficients):
        if not s:
            continue
        if k == 0 and width is not None:
            y += s * width
        elif k in tensors:
            y += s * (powers(X, k) @ tensors[k].entries)
        else:
            what = "the width" if k == 0 else f"the tensor of order {k}"
            raise InvalidInput(f"{sigma.name} has a term of degree {k}: {what} is needed (given: {sorted(tensors)})")
    return y


def decompose_by_learning(
    given: tuple[SymmetricTensor, ...],
    activation: str | Activation,
    learner: Learner,
    n: int,
    rng: int | np.random.Generator | None = None,
    width: int | None = None,
) -> Array:
    """Theorem 4 as an algorithm: from tensors to labels, from labels to weights.

    ``learner`` gets Gaussian inputs (n, d) and labels (n,) and returns estimated weights (R, d), here scaled to unit
    length as the theorem asks.

    Examples
    --------
    >>> W = np.array([[0.6, 0.8], [1.0, 0.0]])
    >>> def learner(X, y):                                # knows the answer: only the labels are of interest here
    ...     assert np.allclose(y, ((X @ W.T) ** 3).sum(axis=1))
    ...     return 2.0 * W
    >>> decompose_by_learning((weight_tensor(W, 3),), "polynomial(0,0,0,1)", learner, n=10, rng=0)
    array([[0.6, 0.8],
           [1. , 0. ]])
    """
    X = np.random.default_rng(rng).normal(size=(n, given[0].d))
    return unit_rows(weight_rows(learner(X, labels_from_tensors(lower_orders(*given), activation, X, width))))
