"""What the benchmarks are meant to show, and whether they do; from the results, like everything else."""

from __future__ import annotations

from collections.abc import Iterator
from math import log2

from benchmarks.measures import frontier, rates
from benchmarks.measures.fair import gather
from benchmarks.methods import ALTERNATIVES, OURS
from benchmarks.results import Row
from benchmarks.text import table

SIZES = ("(10,20) n/p=6", "(40,20) n/p=6", "(30,30) n/p=6")
LOOPS = {
    "products [50, 50, 15000]": ("CG product at (50, 50, 15 000), in single precision both", 0.6),
    "products [784, 32, 100000]": ("CG product at (784, 32, 100 000), in single precision both", 0.6),
    "moments [50, 4, 15000]": ("moments of order 4 at d = 50, n = 15 000", 0.5),
    "moments [32, 4, 100000]": ("moments of order 4 in the span of 32, n = 100 000", 0.5),
    "moments [784, 2, 100000]": ("second moment at d = 784, n = 100 000", 0.5),
}
Bar = tuple[str, str, bool]


def bars(reports: dict[str, Row]) -> Iterator[Bar]:
    """What, what was measured, and whether that is enough."""
    if "rates" in reports:
        found = gather(reports["rates"], "methods")
        for size in (size for size in SIZES if size in found):
            ours = rates.count(found[size][OURS])
            yield f"{size}: exact in at least 95 %", str(ours), ours.rate >= 0.95
            others = {name: rates.count(found[size][name]) for name in ALTERNATIVES if name in found[size]}
            if others:
                best = max(others, key=lambda name: others[name].rate)
                label = f"{size}: best alternative, 5 × the time, below 30 %"
                yield label, f"{others[best]}" + (f" ({best})" if others[best].hits else ""), others[best].rate < 0.3
    if "frontier" in reports:
        for size, methods in frontier.curves(reports["frontier"]).items():
            ratio = frontier.smallest(methods.get(OURS, {}))
            yield f"{size}: 95 % exact at n/p ≤ 5", "never" if ratio is None else str(ratio), (ratio or 99) <= 5
    for row in reports.get("extraction", {"rows": []})["rows"]:
        if (row["d"], row["m"]) == (784, 32):
            error, bits = row["error"], log2(row["queries"])
            measured = f"{'not recovered' if error is None else f'{error:.0e}'}, 2^{bits:.2f}"
            good = error is not None and error <= 1e-8 and bits <= 17.5
            yield "784-32-1 to 1e-8 from at most 2^17.5 samples", measured, good
    for row in reports.get("hot", {"rows": []})["rows"]:
        if row["key"] in LOOPS:
            name, least = LOOPS[row["key"]]
            yield f"{name}: at least {least:.0%} of GEMM", f"{row['gemm_share']:.0%}", row["gemm_share"] >= least


def section(reports: dict[str, Row]) -> str:
    """As a table, or nothing where nothing was measured."""
    rows = [[name, measured, "yes" if good else "**no**"] for name, measured, good in bars(reports)]
    return "\n\n".join(["## In short", table(["aim", "measured", "reached"], rows)]) if rows else ""
