"""What the figures of Zhong et al. 2017 show: counts, the smallest n and its line, errors of the start, descents."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import numpy as np

from benchmarks.results import Row, load
from benchmarks.text import table
from relumine.papers.zhong2017.figure import LINE_STEP, LINE_TOP, RECOVERED, K, line

PAGE = "docs/zhong.md"
SMALL = 1e-8  # a loss that has been reached; an error that is exact
HALF = 0.5  # an error of the start that is halfway


def blocks(folder: Path) -> dict[str, str]:
    """One paragraph a figure, for the figures that have been computed."""
    words = {
        "1a": ("figure 1a", rates),
        "line": ("smallest n", smallest),
        "1b": ("figure 1b", starts),
        "1c": ("figure 1c", descents),
        "auto": ("auto", auto),
    }
    contents = {name: load(folder / f"figure{name}.json") for name in words}
    return {
        mark: say(list(content["cells"].values()))
        for name, (mark, say) in words.items()
        if (content := contents[name]) is not None
    }


def threshold(cells: list[Row]) -> dict[int, int]:
    """For each d the smallest n from which on every trial of the grid recovers."""
    least = {}
    for d in sorted({c["d"] for c in cells}):
        column = sorted((c["n"], c["rate"]) for c in cells if c["d"] == d)
        below = [n for n, rate in column if rate < 1.0]
        above = [n for n, _ in column if not below or n > max(below)]
        if above:
            least[d] = above[0]
    return least


def rates(cells: list[Row]) -> str:
    trials = [(cell["n"], *end) for cell in cells for end in zip(cell["errors"], cell["v"], cell["steps"], strict=True)]
    good = [n for n, error, v, _ in trials if error <= RECOVERED and v]
    failed = [(n, error, v, steps) for n, error, v, steps in trials if error > RECOVERED or not v]
    least = threshold(cells)
    sure = min(
        (n for n in {cell["n"] for cell in cells} if all(c["rate"] == 1.0 for c in cells if c["n"] >= n)), default=0
    )
    signs = sum(not v for *_, v, _ in failed)
    longest = max(steps for *_, steps in trials)
    diverged = sum(v and steps < longest for *_, v, steps in failed)
    late = [f"{error:.2g}" for _, error, v, steps in sorted(failed, key=lambda end: end[1]) if v and steps == longest]
    return (
        f"{len(cells[0]['errors'])} trials a cell, seeds from 0: {len(good)} of {len(trials)} trials recover"
        f"{f', and all {sum(n >= sure for n in good)} with n ≥ {sure}' if sure else ''}. The smallest n from which "
        f"every trial recovers is {_runs(least)}; a line through these has R² = {line(least)[2]:.2f}. Of the "
        f"{len(failed)} failures {signs} have wrong signs; of the other {len(failed) - signs}, {diverged} diverged "
        f"and {len(late)} had not arrived after {longest} steps{f' (error {_list(late)})' if late else ''}."
    )


def smallest(cells: list[Row]) -> str:
    least = {cell["d"]: cell["least"] for cell in cells if cell["least"] is not None}
    slope, intercept, fit = line(least)
    trials = max(recovered for cell in cells for _, recovered in cell["tried"])
    parts = [
        f"Every one of {trials} trials (seeds from 0), on the grid n = {LINE_STEP}, {2 * LINE_STEP}, …, {LINE_TOP}, "
        "going down from the top:",
        table(["d", *map(str, least)], [["smallest n", *map(str, least.values())]]),
        f"The line through them is n = {slope:.1f} d + {intercept:.0f}, with R² = {fit:.3f}."
        + (f" ({LINE_STEP} is the bottom of the grid.)" if LINE_STEP in least.values() else ""),
    ]
    return "\n\n".join(parts)


def starts(cells: list[Row]) -> str:
    half, right = {}, {}
    for name in ("debiased", "plain"):
        right[name] = sum(all(cell[name]["sums"]) for cell in cells)
        medians = [{"d": c["d"], "n": c["n"], "rate": float(np.median(c[name]["errors"]) <= HALF)} for c in cells]
        half[name] = threshold(medians)
    sizes, grid = sorted({cell["d"] for cell in cells}), sorted({cell["n"] for cell in cells})
    rows = [[f"{name} moments", *(str(half[name].get(d, f"> {grid[-1]}")) for d in sizes)] for name in half]
    trials = len(cells[0]["debiased"]["errors"])
    return "\n\n".join(
        [
            f"The smallest n of the grid ({grid[0]}, {grid[1]}, …, {grid[-1]}) from which the median error of the "
            f"tensor start is at most {HALF:g} ({trials} trials, seeds from 0):",
            table(["d", *map(str, sizes)], rows),
            f"The signs add up in every trial in {right['debiased']} of {len(cells)} cells with debiased and in "
            f"{right['plain']} with plain moments.",
        ]
    )


def descents(cells: list[Row]) -> str:
    reached = {name: [_reached(cell["curves"][name]) for cell in cells] for name in cells[0]["curves"]}
    tensor, known = ([t for t in reached[name] if t is not None] for name in ("tensor", "random W, v known"))
    first = sum(
        cell["tensor"] is not None and all(t is None or cell["tensor"] < t for k, t in cell.items() if k != "tensor")
        for cell in ({name: times[i] for name, times in reached.items()} for i in range(len(cells)))
    )
    ends = [cell["curves"]["random W and v"]["loss"][-1] for cell in cells]
    arrived = sum(t is not None for t in reached["random W and v"])
    away = sum(end > 1.0e9 for end in ends)
    stays = [end for end in ends if SMALL <= end <= 1.0e9]
    small = sum(t is not None for t in reached["small random W and v"])
    total = len(cells)
    return (
        f"{total} trials, seeds from 0. The tensor start reaches a loss of 1e-8 in {len(tensor)} of {total}, after "
        f"{min(tensor)} to {max(tensor)} steps, and is first in {first}; random W with the true v reaches it in "
        f"{len(known)}, after {min(known)} to {max(known)}. Random W and v, standard normal, reaches it in {arrived}: "
        f"{away} diverged{f' and {len(stays)} ended at a loss of {max(stays):.2g}' if stays else ''}. With w divided "
        f"by √d it arrives in {small} of {total}."
    )


def auto(cells: list[Row]) -> str:
    errors = [error for cell in cells for error in cell["errors"]]
    exact, few = sum(error <= SMALL for error in errors), [c for c in cells if c["n"] == 3 * K * c["d"]]
    return (
        f"{len(cells[0]['errors'])} trials (seeds from 0) for each d and n = 3kd, 4kd and the paper's n above that: "
        f"{exact} of {len(errors)} exact to 1e-8, {sum(e <= SMALL for c in few for e in c['errors'])} of "
        f"{sum(len(c['errors']) for c in few)} at n = 3kd. The largest error of all is {max(errors):.0e}."
    )


def _reached(curve: Row) -> int | None:
    """The first of the stored steps at which the loss is small."""
    return next((t for t, loss in zip(curve["iteration"], curve["loss"], strict=True) if loss < SMALL), None)


def _runs(least: dict[int, int]) -> str:
    """1000 up to d = 50, 2000 up to d = 90, 3000 at d = 100."""
    words = []
    for n, group in groupby(least, key=lambda d: least[d]):
        ds = list(group)
        words.append(f"{n} {'up to' if len(ds) > 1 else 'at'} d = {ds[-1]}")
    return _list(words)


def _list(words: list[str]) -> str:
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else "".join(words)
