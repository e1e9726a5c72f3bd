"""Mondelli & Montanari 2019: the nine runs of Figure 1, and what ``recover`` does with the same teachers."""

from __future__ import annotations

from pathlib import Path

from benchmarks.results import Row, load
from benchmarks.text import duration, table

PAGE = "docs/hardness.md"
LEARNED = 1e-3  # weight error


def blocks(folder: Path) -> dict[str, str]:
    runs, found = load(folder / "figure1.json"), load(folder / "figurerecover.json")
    texts = {"mondelli2019 runs": figure1(runs), "mondelli2019 reading": reading(runs)} if runs else {}
    return texts | ({"mondelli2019 recover": recovered(found)} if found else {})


def _cells(figure: Row) -> list[Row]:
    return sorted(figure["cells"].values(), key=lambda cell: (cell["r"], -cell["c"]))


def figure1(figure: Row) -> str:
    """One line a run."""
    lines = [
        [
            f"{cell['r']:,}",
            f"{cell['c']:g}",
            f"{cell['error'][0]:.2f}",
            f"{cell['error'][-1]:.2f}",
            f"{cell['start']:.2f}",
            f"{cell['weights'][-1]:.2g}",
            f"{cell['weights_last'][-1]:.2g}",
            duration(cell["cpu_seconds"]),
        ]
        for cell in _cells(figure)
    ]
    total = sum(cell["cpu_seconds"] for cell in _cells(figure))
    header = ["r", "c", "error, first window", "error, end", "weight error, start", "weight error, end"]
    return (
        f"The {len(lines)} runs (seed {figure['seed']}, {figure['n']:,} samples each) took {duration(total)} of CPU "
        "time. Errors of the averaged weights, and the weight error of the last ones, not averaged:\n\n"
        + table([*header, "not averaged", "CPU time"], lines)
    )


def reading(figure: Row) -> str:
    """Which runs ended at the teacher, and how far the widest got with the largest step."""
    learned = [cell for cell in _cells(figure) if cell["weights_last"][-1] <= LEARNED]
    names = [f"r = {cell['r']:,} with c = {cell['c']:g} ({cell['weights_last'][-1]:.0e})" for cell in learned]
    where = f"{' and '.join(names)}, and in no other run" if names else "none of the runs"
    r = max(cell["r"] for cell in _cells(figure))
    widest = max((cell for cell in _cells(figure) if cell["r"] == r), key=lambda cell: float(cell["c"]))
    return (
        f"The last weights are the teacher's (weight error ≤ {LEARNED:g}, a squared distance) for {where}. At "
        f"r = {r:,} and c = {widest['c']:g} the weight error went from {widest['start']:.2f} to "
        f"{widest['weights'][-1]:.2f}, and the error of the prediction from {widest['error'][0]:.2f} to "
        f"{widest['error'][-1]:.2f} times that of the norm alone."
    )


def recovered(figure: Row) -> str:
    """One line a teacher; a refused one has no errors."""
    lines = []
    for cell in figure["cells"].values():
        ratio = cell["n"] / (cell["r"] * (cell["d"] + 2))
        row = [f"{cell['r']:,}", f"{cell['n']:,} ({ratio:g} for each parameter)", _days(cell["estimate"])]
        if cell["status"] == "refused":
            lines.append([*row, f"not begun: {cell['message']}", "", "", ""])
            continue
        exact = cell["parameter_error"]
        outcome = cell["status"] + (
            f" by its limit of {cell['limit']:.0f} s on the clock" * (cell["status"] == "interrupted")
        )
        errors = [f"{cell['error']:.2g}", "" if exact is None else f"{exact:.0e}"]
        lines.append([*row, outcome, *errors, duration(cell["cpu_seconds"])])
    header = ["r", "samples", "`advise` expected", "outcome", "error, fresh samples", "parameter error"]
    return table([*header, "CPU time"], lines)


def _days(seconds: float) -> str:
    return f"{seconds / 86400:.0f} days" if seconds >= 2 * 86400 else duration(seconds)
