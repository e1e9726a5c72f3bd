"""Numbers and tables as Markdown."""

from __future__ import annotations

from benchmarks.results import Row


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def duration(seconds: float) -> str:
    if seconds >= 6000.0:
        return f"{seconds / 3600:.1f} h"
    if seconds >= 600.0:
        return f"{seconds / 60:.0f} min"
    return f"{seconds:.0f} s" if seconds >= 10.0 else f"{seconds:.2g} s"


def seeds_of(report: Row) -> str:
    """Which seeds, how long it took, and how to do it again."""
    first = report["settings"].get("first")
    seeds = "" if first is None else f"Seeds from {first}. "
    part = "" if report.get("complete") else " (not all of it has been run)"
    how = f"`python -m benchmarks run --only {report['measure']}`, {duration(report['seconds'])}{part}."
    return f"{seeds}{how}{_places(report)}"


def _places(report: Row) -> str:
    """How many rows were measured on another machine than the last ones."""
    here = report.get("machine", {}).get("cpu")
    others = [row["cpu"] for row in report["rows"] if row.get("cpu", here) != here]
    return "".join(
        f" {others.count(cpu)} of {len(report['rows'])} rows are from {cpu}." for cpu in dict.fromkeys(others)
    )
