"""What got slower or less exact between two runs: ``python -m benchmarks compare OLD NEW``.

Only what survives a noisy machine is compared: rates by Fisher's exact test, speeds as ratios within a run (to a GEMM,
to a peer), each with the tolerance its measure gives it.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from benchmarks.counting import Count, fewer
from benchmarks.results import load


class Speed(NamedTuple):
    """A ratio within one run, larger is better; ``tolerance``: factor that is still noise."""

    ratio: float
    tolerance: float = 1.25


class Finding(NamedTuple):
    """One line: what, how it changed, and whether that is worse, better or nothing (−1, 1, 0)."""

    name: str
    change: str
    verdict: int


def findings(measure: str, old: dict[str, object], new: dict[str, object]) -> list[Finding]:
    """Every quantity that both runs have."""
    found = []
    for name in old.keys() & new.keys():
        before, after = old[name], new[name]
        if isinstance(before, Count) and isinstance(after, Count):
            verdict = -1 if fewer(after, before) else 1 if fewer(before, after) else 0
            found.append(Finding(f"{measure}: {name}", f"{before} → {after}", verdict))
        elif isinstance(before, Speed) and isinstance(after, Speed):
            factor, noise = after.ratio / before.ratio, max(before.tolerance, after.tolerance)
            verdict = -1 if factor < 1.0 / noise else 1 if factor > noise else 0
            found.append(Finding(f"{measure}: {name}", f"{factor:.2f} × the speed (noise: {noise:g} ×)", verdict))
    return sorted(found)


def compare(old: Path, new: Path) -> list[Finding]:
    """Two result folders, or two files of one measure."""
    from benchmarks.measures import MEASURES

    found = []
    pairs = [(old, new)] if old.is_file() else [(old / f"{name}.json", new / f"{name}.json") for name in MEASURES]
    for before, after in pairs:
        first, second = load(before), load(after)
        if first is None or second is None or first.get("measure") != second.get("measure"):
            continue
        measure = MEASURES[first["measure"]]
        found += findings(measure.NAME, measure.comparable(first), measure.comparable(second))
    return found


def show(found: list[Finding]) -> int:
    """Print what changed; returns the exit code, 1 if something got worse."""
    worse = [f for f in found if f.verdict < 0]
    for word, sign in (("worse", -1), ("better", 1)):
        for finding in found:
            if finding.verdict == sign:
                print(f"{word}: {finding.name}: {finding.change}")
    same = sum(f.verdict == 0 for f in found)
    print(f"{len(found)} quantities compared: {len(worse)} worse, {len(found) - len(worse) - same} better, {same} same")
    if not found:
        print("nothing in common: are these folders of results (docs/results)?")
    return 1 if worse or not found else 0
