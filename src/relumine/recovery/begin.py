"""Where a chain of the search begins: inside the span of the second moment, at random, or at higher moments."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from relumine.arrays import Array
from relumine.fit.starts import (
    looks_gaussian,
    moment_directions,
    random_directions,
    second_moment_span,
    span_directions,
    third_moment_directions,
)
from relumine.recovery.task import MemoryTask
from relumine.results import InvalidInput

# Starts take turns in sevens: those that begin inside the span where there are many more inputs than units; those that
# take directions of the span; the one from the third and fourth moments. The others are random.
_TURNS, _INSIDE, _SPECTRAL, _MOMENTS = 7, (0, 1, 3, 5), (0, 3), 5
_SPANNED = 4  # inputs for each unit from which on the search begins inside the span of the second moment
_MOMENT_DIMENSIONS = 31  # inputs plus one up to which fourth moments are cheap: d⁴/24 = 34 000 numbers


@dataclass
class Starts:
    """The starts of a search, by their number; what it says about the inputs goes to ``notes``."""

    task: MemoryTask
    rng: np.random.Generator
    notes: list[str]
    spans: dict[int, Array] = field(default_factory=dict)

    @cached_property
    def gaussian(self) -> bool:
        """Whether the inputs look Gaussian, as starts from moments need; if not, a note says so."""
        gaussian, excess = looks_gaussian(self.task.rows.X[:, :-1])
        if not gaussian:
            self.notes.append(
                f"the inputs do not look Gaussian (mean excess kurtosis {excess:.2g}), so every start was random; the "
                "answer does not depend on it"
            )
        return gaussian

    def span(self, width: int) -> Array:
        """The span (width, d) that the second moment shows."""
        if width not in self.spans:
            self.spans[width] = second_moment_span(self.task.rows, width)
        return self.spans[width]

    def is_inside(self, start: int, width: int) -> bool:
        """Whether this start is made inside that span: where there are many more inputs than units."""
        many = _SPANNED * width <= self.task.rows.columns - 1
        return start % _TURNS in _INSIDE and many and self.gaussian

    def directions(self, start: int, k: int, width: int) -> tuple[Array, str]:
        """The directions (k, d+1) of a start, and what they are.

        First in the span of the second moment, where it can show one; then anywhere; one in seven from the third and
        fourth moments. Odd units show in the third moment only.
        """
        rows, turn = self.task.rows, start % _TURNS
        reflection = self.task.shape.activation.reflection
        odd = reflection is not None and reflection.scale == -1.0
        if odd and turn == (1 if width < rows.columns - 1 else 0) and self.gaussian:
            return third_moment_directions(self.rng, k, rows), "third moment"
        if turn in _SPECTRAL and width < rows.columns - 1 and self.gaussian:
            return span_directions(self.rng, k, self.span(width)), "spectral"
        if turn == _MOMENTS and 2 < rows.columns <= _MOMENT_DIMENSIONS and self.gaussian:
            try:
                return moment_directions(self.rng, k, rows, width), "higher moments"
            except InvalidInput:  # too few rows for so many moments
                pass
        return random_directions(self.rng, k, rows.columns), "random"
