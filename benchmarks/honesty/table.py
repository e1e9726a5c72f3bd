"""Claims and truths as a table for docs/guarantees.md."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks.text import duration, table

Row = dict[str, Any]
PAGE = Path(__file__).parents[2] / "docs" / "guarantees.md"
FULL, SINCE = "honesty", "honesty since"  # places of the page: ten thousand problems; a shorter run of later code
STATUSES = ("exact", "noisy", "ambiguous", "under-determined", "not recovered", "interrupted", "refused", "crashed")


def wrong(row: Row, times: float = 1.0) -> bool:
    """Called exact, and different on more of the inputs than it says may differ."""
    return bool(row["status"] == "exact" and row["wrong"] > times * row["unseen"])


def short(row: Row) -> bool:
    """Called noisy, and fresh rows are more than three times as far off as it says."""
    return bool(row["status"] == "noisy" and row["ratio"] > 3.0)


def unforeseen(row: Row) -> bool:
    """Such a claim, and more of the inputs are to blame than it says may differ."""
    return bool(short(row) and row["beyond"] > row["unseen"])


def claims(rows: list[Row]) -> str:
    """What was claimed, and what was true."""
    exact = [row for row in rows if row["status"] == "exact"]
    noisy = [row for row in rows if row["status"] == "noisy"]
    seeds, limit = [row["seed"] for row in rows] or [0], max((row["limit"] for row in rows), default=0.0)
    text = (
        f"{len(rows)} problems of {len({row['family'] for row in rows})} families, seeds {min(seeds)} to {max(seeds)}, "
        f"{duration(sum(row['seconds'] for row in rows))} of processor time, at most {limit:g} s for a problem: "
        "what takes longer is ended and makes no claim. `make honesty` goes on until 10 000 are on record."
    )
    lines = [
        ["called exact", _of(len(exact), len(rows))],
        ["… different on more than `certificate.unseen` of fresh inputs", _of(sum(map(wrong, exact)), len(exact))],
        ["… on more than three times that", _of(sum(wrong(row, 3.0) for row in exact), len(exact))],
        [
            "… with a unit that a handful of rows alone determine",
            _of(sum(row["saturated"] for row in exact), len(exact)),
        ],
        ["called noisy", _of(len(noisy), len(rows))],
        ["… fresh error more than three times the noise claimed", _of(sum(map(short, noisy)), len(noisy))],
        ["… … caused by more than `certificate.unseen` of the inputs", _of(sum(map(unforeseen, noisy)), len(noisy))],
    ]
    return "\n\n".join([text, table(["claim", "problems"], lines)])


def summary(rows: list[Row]) -> str:
    """The same, and family by family."""
    families: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        families[row["family"]].append(row)
    lines = []
    for name, part in sorted(families.items()):
        counts = [str(sum(row["status"] == status for row in part) or "") for status in STATUSES]
        lines.append(
            [
                name.replace("_", " "),
                *counts[:1],
                str(sum(map(wrong, part)) or ""),
                *counts[1:2],
                str(sum(map(short, part)) or ""),
                *counts[2:],
            ]
        )
    header = ["family", "exact", "wrong", "noisy", "wrong", *STATUSES[2:]]
    return "\n\n".join([claims(rows), table(header, lines)])


def _of(part: int, whole: int) -> str:
    return f"{part} of {whole} ({100.0 * part / whole:.3g} %)" if whole else "none"
