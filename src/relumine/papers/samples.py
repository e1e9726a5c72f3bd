"""What the papers' methods ask of their samples: one output, no weights, several passes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from relumine.activations import Activation
from relumine.arrays import Array
from relumine.data.sources import Chunk, Source
from relumine.data.views import Less, rows_of, seen
from relumine.data.whiten import Summary
from relumine.network import Network
from relumine.papers.capabilities import Capabilities
from relumine.results import InvalidInput

_FLAT = 1e-12  # a deviation of y below this part of its mean is rounding error of a constant


def checked(X: ArrayLike | Source, y: ArrayLike | None, activation: str | Activation, method: Capabilities) -> Source:
    """Arrays or a source as rows that the method can work with; an error says what it cannot."""
    method.check(activation=activation)
    rows = rows_of(X, y)
    if rows.passes is not None:
        raise InvalidInput(
            f"method={method.name!r} passes over the rows several times, and {rows.label} can be read once",
            argument="X",
            remedy="pass a list of chunks, files, or an object whose __iter__ starts afresh",
        )
    method.check(activation=activation, outputs=rows.q, weighted=rows.head(1).weight is not None)
    if not rows.vector:
        shape = f"method={method.name!r} takes one output as a vector, y has shape (n, 1)"
        raise InvalidInput(shape, argument="y", remedy="pass y.ravel()")
    return rows


def check_varies(summary: Summary) -> float:
    """The standard deviation of y; an error where y is constant."""
    deviation = float(np.sqrt(max(summary.y_covariance[0, 0], 0.0)))
    if not deviation > _FLAT * abs(float(summary.y_mean[0])):
        raise InvalidInput(
            "y is constant: there is no network to recover", argument="y", remedy="check that y is the right column"
        )
    return deviation


def rms_error(net: Network, rows: Source) -> float:
    """√(mean (f(x) − y)²), one pass.

    Examples
    --------
    >>> rms_error(Network([[1.0]], [0.0], [1.0]), rows_of([[1.0], [-1.0]], [0.0, 0.0])) ** 2
    0.5...
    """
    return float(np.sqrt(mean_square(seen(rows, Less(net)))))


def mean_square(rows: Source) -> float:
    """mean y², one pass.

    Examples
    --------
    >>> mean_square(rows_of([[0.0], [0.0]], [3.0, 1.0]))
    5.0
    """
    n, squares = rows.reduce(_squares)
    return float(squares) / float(n)


def _squares(chunk: Chunk) -> tuple[Array, ...]:
    return np.array(float(len(chunk.Y))), np.array(float(np.vdot(chunk.Y, chunk.Y)))
