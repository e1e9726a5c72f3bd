"""Measures, in the order of a full run. Each file has

- ``NAME``, ``FULL`` and ``QUICK``: settings (sizes, seeds); ``MINUTES``: what they take, full and quick;
- ``cells(settings, rows)``: pairs (key, work); ``work()`` gives the row to store, rows already stored are at hand;
- ``section(report)``: its part of docs/benchmarks.md, or ``elsewhere(report)``: its part of other pages, by their path,
  put between the marks ``<!-- NAME: begin -->`` and ``<!-- NAME: end -->`` there; or both;
- ``figures(report, folder)``, if it has any;
- ``comparable(report)``: what :mod:`benchmarks.compare` looks at, a :class:`~benchmarks.counting.Count` or a
  :class:`~benchmarks.compare.Speed` by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Protocol, cast

from benchmarks.results import Row

__all__ = ["MEASURES", "TOGETHER", "Measure"]

_NAMES = (
    "hot",
    "rates",
    "frontier",
    "beside",
    "trace",
    "ablation",
    "decomposition",
    "scaling",
    "memory",
    "decoding",
    "sgd",
    "catalogue",
    "evidence",
    "width_unknown",
    "tensors",
    "tensor_method",
    "regressor",
    "out_of_core",
    "zhong",
    "noise",
    "deep",
    "deep_layers",
    "layers",
    "first_steps",
    "smooth",
    "hard",
    "advice",
    "newcomer",
    "extraction",
    "extraction_random",
    "boxes",
    "classifiers",
    "slow_boxes",
)
# Rates, and CPU seconds compared within the measure: these can share a machine. The others have it to themselves.
TOGETHER = ("rates", "frontier", "beside", "trace", "ablation", "catalogue", "width_unknown", "regressor")
TOGETHER += ("tensors", "tensor_method")
TOGETHER += ("zhong", "noise", "evidence", "first_steps", "smooth", "hard", "advice")


class Measure(Protocol):
    """A module of this folder."""

    NAME: str
    FULL: Row
    QUICK: Row
    MINUTES: tuple[float, float]

    def cells(self, settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
        """What to measure."""

    def comparable(self, report: Row) -> dict[str, Any]:
        """Counts and speeds."""


MEASURES: dict[str, Measure] = {
    measure.NAME: measure for measure in (cast(Measure, import_module(f"{__name__}.{name}")) for name in _NAMES)
}
