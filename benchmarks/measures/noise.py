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
        [10, 5, 2750, 10.0, None, "relu", 80],
        [10, 5, 550, 10.0, None, "relu", 40],
        [10, 5, 550, 3.0, None, "relu", 40],
        [10, 5, 275, 10.0, None, "relu", 40],
        [10, 5, 275, 3.0, None, "relu", 40],
        [2, 5, 1500, 10.0, None, "relu", 40],
        [5, 3, 900, 10.0, None, "sigmoid", 20],
        [3, 3, 300, 3.0, 30.0, "relu", 40],
    ],
    "level": 0.95,
    "first": 60000,
}
QUICK: Row = FULL | {"problems": [[10, 5, 2750, 10.0, None, "relu", 2], [3, 3, 300, 3.0, 30.0, "relu", 2]]}
MINUTES = (12.0, 0.03)
DOUBTS = ("other networks fit about as well", "known only roughly")  # what a certificate says where it is so


def fit(d: int, m: int, n: int, ratio: float, angle: float | None, sigma: str, level: float, seed: int) -> Row:
    """One fit to noisy data: how many of its intervals cover, if it has any."""
    family: Row = {} if angle is None else {"family": "nearly_parallel", "angle": angle}
    truth = rl.planted.network(d, m, rng=seed, activation=sigma, **family)
    X, clean = rl.planted.sample(truth, n, rng=seed + 1)
    y = clean + clean.std() / ratio * np.random.default_rng(seed + 2).normal(size=n)
    found = rl.recover(X, y, width=m, activation=sigma, rng=seed + 3, on_failure="return")
    row: Row = {"d": d, "m": m, "n": n, "ratio": ratio, "angle": angle, "activation": sigma, "seed": seed}
    row["status"] = found.status.value
    row["doubt"] = bool(found.units.up_to_sign) or any(
        doubt in note for note in found.certificate.notes for doubt in DOUBTS
    )
    if found.status is not Status.NOISY or found.network.m != m:
        return row | {"covered": 0, "intervals": 0}
    near = rl.metrics.match(found.network, truth).network
    low, high = found.confidence_interval(level)
    inside = [(getattr(low, key) <= getattr(near, key)) & (getattr(near, key) <= getattr(high, key)) for key in "Wba"]
    return row | {"covered": int(sum(part.sum() for part in inside)), "intervals": sum(part.size for part in inside)}


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


def covered(rows: list[Row]) -> Count:
    """Intervals; those of one fit depend on each other, so this is a share and not a number of trials."""
    return Count(sum(row["covered"] for row in rows), sum(row["intervals"] for row in rows))


def elsewhere(report: Row) -> dict[str, str]:
    """A table for docs/guarantees.md."""
    lines = []
    for name, rows in gather(report).items():
        noisy = sum(row["status"] == Status.NOISY.value for row in rows)
        p = rows[0]["m"] * (rows[0]["d"] + 1)
        line = [name.split(", n =")[0], f"{rows[0]['n']}", f"{rows[0]['n'] / p:.0f}", f"{rows[0]['ratio']:g}"]
        line.append(f"{noisy} of {len(rows)}")
        lines.append([*line, _share(rows), _share([row for row in rows if not row["doubt"]])])
    header = [
        "planted network",
        "n",
        "n/p",
        "signal over noise",
        "called `noisy`",
        "95 % intervals that cover",
        "no doubt",
    ]
    text = (
        "Coverage, over the fits called `noisy` and all entries of W, b and a; the last column is about the fits whose "
        f"answer names no doubt, of signs or of other networks. {seeds_of(report)}"
    )
    return {"docs/guarantees.md": "\n\n".join([text, table(header, lines)])}


def _share(rows: list[Row]) -> str:
    fits = sum(row["intervals"] > 0 for row in rows)
    return f"{100.0 * covered(rows).rate:.0f} % ({fits} fits)" if fits else "no fits"


def comparable(report: Row) -> dict[str, Any]:
    """Fits that are called noisy: intervals of one fit are not independent, so their share is not compared."""
    return {
        f"called noisy, {name}": Count(sum(row["status"] == Status.NOISY.value for row in rows), len(rows))
        for name, rows in gather(report).items()
    }
