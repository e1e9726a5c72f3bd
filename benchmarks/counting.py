"""Rates are counts: k of n, with the interval that goes with so few runs."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from scipy.stats import fisher_exact


class Count(NamedTuple):
    """``hits`` of ``runs``."""

    hits: int
    runs: int

    @property
    def rate(self) -> float:
        return self.hits / self.runs if self.runs else float("nan")

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval."""
        return wilson(self.hits, self.runs)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.hits}/{self.runs} ({low:.0%}–{high:.0%})".replace("%–", "–")


def wilson(hits: int, runs: int, z: float = 1.959964) -> tuple[float, float]:
    """The rates that ``hits`` of ``runs`` are compatible with (Wilson's score interval, 95 %)."""
    if runs == 0:
        return 0.0, 1.0
    share, scale = hits / runs, 1.0 + z * z / runs
    middle = (share + z * z / (2 * runs)) / scale
    half = z * sqrt(share * (1.0 - share) / runs + z * z / (4.0 * runs * runs)) / scale
    return (0.0 if hits == 0 else middle - half), (1.0 if hits == runs else middle + half)


def fewer(new: Count, old: Count, level: float = 0.01) -> bool:
    """Whether the new rate is lower than chance allows (Fisher's exact test, one-sided)."""
    if not (new.runs and old.runs) or new.rate >= old.rate:
        return False
    table = [[new.hits, new.runs - new.hits], [old.hits, old.runs - old.hits]]
    return bool(fisher_exact(table, alternative="less").pvalue < level)
