"""Oymak & Asif 2018: how many rows suffice (Figure 2), how many iterations (Figure 3), how long the steps are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scipy import stats

from benchmarks.results import Row, load
from benchmarks.text import table
from relumine.papers.oymak2018.probes import tails

PAGE = "docs/decode.md"
EXACT = 1e-16  # of ‖ŵ − w‖²/‖w‖²
METHODS = {"centred": "centred gradient", "gauss-newton": "Gauss–Newton"}


def blocks(folder: Path) -> dict[str, str]:
    found = {name: load(folder / f"figure{name}.json") for name in ("2a", "2b", "3a", "3b")}
    rows, curves = ([f for name in names if (f := found[name])] for names in (("2a", "2b"), ("3a", "3b")))
    texts = {"oymak2018 figure 2": figure2(rows)} if rows else {}
    return texts | ({"oymak2018 figure 3": figure3(curves), "oymak2018 steps": steps(curves)} if curves else {})


def figure2(figures: list[Row]) -> str:
    """Exact runs at every n/d, all d together."""
    ratios = sorted({cell["ratio"] for figure in figures for cell in figure["cells"].values()})
    columns = [(figure, name) for figure in figures for name in METHODS]
    lines = [[f"{ratio:g}", *(_exact(figure, name, ratio) for figure, name in columns)] for ratio in ratios]
    header = ["n/d", *(f"σ = {figure['sigma']:g}, {METHODS[name]}" for figure, name in columns)]
    sizes = sorted({cell["d"] for cell in figures[0]["cells"].values()})
    return (
        f"Exact runs (relative error ‖ŵ − w‖²/‖w‖² ≤ {EXACT:g} within 1000 iterations of the gradient or 20 of "
        f"Gauss–Newton), those of d = {', '.join(map(str, sizes))} together; in brackets the most that "
        f"one of them took:\n\n{table(header, lines)}"
    )


def _exact(figure: Row, name: str, ratio: float) -> str:
    runs = [
        (error, steps)
        for cell in figure["cells"].values()
        if cell["ratio"] == ratio
        for error, steps in zip(cell[name]["errors"], cell[name]["steps"], strict=True)
    ]
    taken = [steps for error, steps in runs if error <= EXACT]
    return f"{len(taken)}/{len(runs)}" + (f" ({max(taken)})" if taken else "")


def figure3(figures: list[Row]) -> str:
    """Iterations to a relative error of 1e-8, and what centring saves."""
    lines: list[list[str]] = []
    for figure in figures:
        trials = list(figure["cells"].values())
        reached = {name: [trial[name]["reached"] for trial in trials] for name in (*METHODS, "plain")}
        pairs = zip(reached["plain"], reached["centred"], strict=True)
        saved = [plain / centred for plain, centred in pairs if plain is not None and centred is not None]
        size = [str(trials[0]["d"]), f"{trials[0]['n']:,}", str(len(trials))]
        lines.append([*size, *(_range(reached[name]) for name in ("plain", "centred", "gauss-newton")), _range(saved)])
    header = ["d", "n", "trials", "plain gradient", "centred gradient", "Gauss–Newton", "plain over centred"]
    return f"Iterations to a relative error of 1e-8, smallest to largest:\n\n{table(header, lines)}"


def _range(values: list[Any]) -> str:
    known = [value for value in values if value is not None]
    ends = dict.fromkeys(f"{value:,.0f}" for value in (min(known), max(known))) if known else ["never"]
    missing = f" ({len(values) - len(known)} of {len(values)} never)" if 0 < len(known) < len(values) else ""
    return "–".join(ends) + missing


def steps(figures: list[Row]) -> str:
    """The curvature at w = 0 depends on the signs of the probes alone, so the automatic step serves every σ."""
    automatic = [trial["centred"]["step"] for figure in figures for trial in figure["cells"].values()]
    words = []
    for sigma in (1.0, 5.0):
        theorem = tails(stats.norm(scale=sigma), figures[0]["bound"]).step
        factors = [step / theorem for step in automatic]
        words.append(f"{min(factors):.1f} to {max(factors):.1f} times at σ = {sigma:g}")
    return (
        "The theorem's step is safe but slow. The automatic one, 1.5/λ_max of the centred curvature at the start, was "
        f"{min(automatic):.2f} to {max(automatic):.2f} in the {len(automatic)} runs of Figure 3 below (n/d = 2), "
        f"whatever the σ of the probes: {' and '.join(words)} what the theorem asks for. It is halved should the loss "
        "ever rise."
    )
