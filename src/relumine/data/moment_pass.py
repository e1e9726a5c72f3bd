"""Moments of a source: one pass for plain and regressed sums, two for debiased; whatever the chunks, the same sums.

The moment formulas want standard normal inputs. A :class:`View` makes them so chunk by chunk, and restricts them to a
subspace if asked: x ↦ V L⁻¹(x − mean), y ↦ y − slope·L⁻¹(x − mean) − constant.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from relumine.data.moments import Estimator, MomentEstimate, MomentSums, rows_for_errors
from relumine.data.sources.chunks import Chunk, Source
from relumine.data.whiten import Whitening
from relumine.results import InvalidInput

Array = NDArray[np.float64]

__all__ = ["View", "estimate_from", "sums_of", "view_of"]


@dataclass(frozen=True)
class View:
    """x ↦ (x − mean)Mᵀ with M (k, d), or x itself (None); y ↦ y − (x − mean)·slope − constant."""

    mean: Array | None = None
    M: Array | None = None
    slope: Array | None = None
    constant: float = 0.0

    def __call__(self, chunk: Chunk) -> tuple[Array, Array]:
        """Inputs (k', k) and targets (k',) of the chunk's rows as the moments want them."""
        y = chunk.Y[:, 0]
        if self.M is None and self.mean is None:
            return np.asarray(chunk.X, dtype=np.float64), y
        X = np.asarray(chunk.X if self.mean is None else chunk.X - self.mean, dtype=np.float64)
        if self.slope is not None:
            y = y - X @ self.slope - self.constant
        return (X if self.M is None else X @ self.M.T), y


def view_of(
    white: Whitening | None = None,
    project: Array | None = None,
    slope: Array | None = None,
    constant: float = 0.0,
) -> View:
    """The view with whitening ``white``, then the rows of ``project`` (k, d) as axes, in white coordinates.

    ``slope`` (d,), in white coordinates too, and ``constant``: an affine part to take out of y.
    """
    if white is None:
        M, mean, back = project, None, slope
    else:
        P = np.eye(len(white.mean)) if project is None else project
        # V L⁻¹ once, instead of a triangular solve for every row
        M, mean = solve_triangular(white.L, P.T, lower=True, trans="T").T, white.mean
        back = None if slope is None else solve_triangular(white.L, slope, lower=True, trans="T")
    return View(mean, None if M is None else np.ascontiguousarray(M), back, constant)


def sums_of(
    source: Source,
    order: int,
    estimator: Estimator = "regressed",
    *,
    view: View | None = None,
    baseline: Array | None = None,
) -> MomentSums:
    """The sums of a source, in one pass (debiased without a ``baseline``: one more, to fit it).

    Examples
    --------
    >>> from relumine.data.sources import open_source
    >>> X = np.random.default_rng(0).normal(size=(2000, 3)); y = X[:, 0] * X[:, 1]
    >>> chunked = sums_of(open_source(X, y, chunk=7), 2)
    >>> np.allclose(chunked.matrix, MomentSums(3, 2).add(X, y).matrix, rtol=1e-12)
    True
    """
    view = View() if view is None else view
    if source.q != 1:
        raise InvalidInput(f"moments are of one output; {source.label} has {source.q}; choose one target column")
    if estimator == "debiased" and baseline is None:
        if source.passes is not None:
            raise InvalidInput(
                f"estimator='debiased' passes twice over the rows, and {source.label} can be read once; "
                "use 'regressed' or 'plain', or data that can be read again"
            )
        baseline = sums_of(source, (order + 1) // 2, "regressed", view=view).coefficients()
    d = source.d if view.M is None else len(view.M)
    empty = MomentSums(d, order, estimator, baseline)
    return empty.with_parts(source.reduce(partial(_part, kind=(d, order, estimator, baseline), view=view)))


def estimate_from(
    source: Source, order: int, estimator: Estimator = "regressed", *, view: View | None = None
) -> MomentEstimate:
    """T₀ … T_K of a source whose inputs, seen through ``view``, are standard normal.

    Examples
    --------
    >>> from relumine.data.sources import open_source
    >>> from relumine.data.whiten import whitening_of
    >>> X = np.random.default_rng(0).normal(size=(4000, 3)) + 7.0
    >>> source = open_source(X, (X[:, 2] - 7.0) ** 2)
    >>> T = estimate_from(source, 2, view=view_of(whitening_of(source)[0], np.eye(3)[2:])).tensors
    >>> bool(abs(T[2].dense()[0, 0] - 2.0) < 0.1)
    True
    """
    view = View() if view is None else view
    sums = sums_of(source, order, estimator, view=view)
    estimate = sums.estimate()
    if estimator != "regressed":
        return estimate
    X, y = view(source.head(rows_for_errors(sums)))  # of a generator, those it kept
    return replace(estimate, errors=sums.robust_errors(X, y))


def _part(chunk: Chunk, kind: tuple[int, int, Estimator, Array | None], view: View) -> tuple[Array, ...]:
    if chunk.weight is not None:
        raise InvalidInput("moments do not take weights; leave sample_weight out")
    return MomentSums(*kind).add(*view(chunk)).parts()
