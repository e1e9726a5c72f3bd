"""Standard errors: how often 95 % intervals cover the truth, where they should and where they are known to be short."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import relumine as rl
from benchmarks.counting import Count
from benchmarks.results import Row
from benchmarks.text import seeds_of, table
from relumine.results import Status

NAME = "noise"
FULL: Row = {
    # d, m, n, signal over noise, degrees between the first two units (None: as they come), activation, fits
    "problems": [
        [10, 5, 2750, 10.0, None, "relu", 40],
        [10, 5, 550, 10.0, None, "relu", 40],
        [10, 5, 550, 3.0, None, "relu", 20],
        [10, 5, 275, 10.0, None, "relu", 40],
        [10, 5, 275, 3.0, None, "relu", 20],
        [2, 5, 1500, 10.0, None, "relu", 40],
        [5, 3, 900, 10.0, None, "sigmoid", 20],
        [3, 3, 300, 3.0, 30.0, "relu", 40],
    ],
    "level": 0.95,
    "first": 66000,
}
QUICK: Row = FULL | {"problems": [[10, 5, 2750, 10.0, None, "relu", 2], [3, 3, 300, 3.0, 30.0, "relu", 2]]}
MINUTES = (12.0, 0.03)
OTHERS, ROUGHLY = "other networks fit about as well", "known only roughly"  # what a certificate says where it is so


def fit(d: int, m: int, n: int, ratio: float, angle: float | None, sigma: str, level: float, seed: int) -> Row:
    """One fit to noisy data: how many of its intervals cover, if it has any."""
    family: Row = {} if angle is None else {"family": "nearly_parallel", "angle": angle}
    truth = rl.planted.network(d, m, rng=seed, activation=sigma, **family)
    X, clean = rl.planted.sample(truth, n, rng=seed + 1)
    y = clean + clean.std() / ratio * np.random.default_rng(seed + 2).normal(size=n)
    found = rl.recover(X, y, width=m, activation=sigma, rng=seed + 3, on_failure="return")
    row: Row = {"d": d, "m": m, "n": n, "ratio": ratio, "angle": angle, "activation": sigma, "seed": seed}
    row["status"] = found.status.value
    if found.status is not Status.NOISY or found.network.m != m:
        return row | {"covered": 0, "intervals": 0, "sure_covered": 0, "sure": 0}
    near = rl.metrics.match(found.network, truth).network
    low, high = found.confidence_interval(level)
    inside = [(getattr(low, key) <= getattr(near, key)) & (getattr(near, key) <= getattr(high, key)) for key in "Wba"]
    hit = np.column_stack([part.reshape(m, -1) for part in inside])
    sure = hit[undoubted(found)]
    counts = {"covered": int(hit.sum()), "intervals": hit.size, "sure_covered": int(sure.sum()), "sure": sure.size}
    return row | counts


def undoubted(found: rl.Recovery) -> list[int]:
    """Units of which the answer names no doubt: none, where their signs or the whole network are in doubt."""
    notes = found.certificate.notes
    if found.units.up_to_sign or any(OTHERS in note for note in notes):
        return []
    listed = [note.rsplit("unit ", 1)[1].split(", ") for note in notes if ROUGHLY in note]
    rough = {int(number) for numbers in listed for number in numbers}
    return [i for i in range(found.network.m) if i not in rough]


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    for *problem, fits in settings["problems"]:
        for seed in range(settings["first"], settings["first"] + fits):
            yield f"{problem} seed {seed}", partial(fit, *problem, settings["level"], seed)


def gather(report: Row) -> dict[str, list[Row]]:
    """Fits by problem, in words."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in report["rows"]:
        near = "" if row["angle"] is None else f", two units {row['angle']:g}° apart"
        units = "" if row["activation"] == "relu" else f", {row['activation']}"
        at = f", n = {row['n']}, signal over noise {row['ratio']:g}"
        found[f"d = {row['d']}, m = {row['m']}{near}{units}{at}"].append(row)
    return found


def covered(rows: list[Row], inside: str = "covered", of: str = "intervals") -> Count:
    """Intervals; those of one fit depend on each other, so this is a share and not a number of trials."""
    return Count(sum(row[inside] for row in rows), sum(row[of] for row in rows))


def elsewhere(report: Row) -> dict[str, str]:
    """A table for docs/guarantees.md."""
    lines = []
    for name, rows in gather(report).items():
        noisy = sum(row["status"] == Status.NOISY.value for row in rows)
        p = rows[0]["m"] * (rows[0]["d"] + 1)
        line = [name.split(", n =")[0], f"{rows[0]['n']}", f"{rows[0]['n'] / p:.0f}", f"{rows[0]['ratio']:g}"]
        line.append(f"{noisy} of {len(rows)}")
        lines.append([*line, _share(covered(rows)), _share(covered(rows, "sure_covered", "sure"))])
    header = [
        "planted network",
        "n",
        "n/p",
        "signal over noise",
        "called `noisy`",
        "95 % intervals that cover",
        "… of units without a doubt",
    ]
    text = (
        "How many of the 95 % intervals cover the true value, over all entries of W, b and a of the fits called "
        "`noisy`; last column: only units without a doubt in the result (not known only roughly, signs determined, "
        f"no other network that fits about as well). {seeds_of(report)}"
    )
    return {"docs/guarantees.md": "\n\n".join([text, table(header, lines)])}


def _share(found: Count) -> str:
    return f"{100.0 * found.rate:.1f} % of {found.runs}" if found.runs else "none"


def comparable(report: Row) -> dict[str, Any]:
    """Fits that are called noisy: intervals of one fit are not independent, so their share is not compared."""
    return {
        f"called noisy, {name}": Count(sum(row["status"] == Status.NOISY.value for row in rows), len(rows))
        for name, rows in gather(report).items()
    }
