"""The figures of docs/benchmarks.md, from plain numbers; without matplotlib there are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.counting import Count
from benchmarks.methods import METHODS

COLOURS = ("#0b6e4f", "#7fb685", "#c5d86d", "#c1440e", "#e08e45", "#5f5f5f", "#3a6ea5", "#a9a9a9", "#8e4585")


def colour(name: str) -> str:
    return COLOURS[list(METHODS).index(name) % len(COLOURS)]


def _figure(width: float, height: float, columns: int = 1) -> tuple[Any, Any]:
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "relumine", "font.size": 9, "axes.spines.top": False})
    matplotlib.rcParams["axes.spines.right"] = False
    from matplotlib import pyplot

    return pyplot.subplots(1, columns, figsize=(width, height), squeeze=False, layout="constrained")


def _save(figure: Any, path: Path) -> None:
    from matplotlib import pyplot

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})  # the same numbers give the same file
    pyplot.close(figure)


def bars(data: dict[str, dict[str, Count]], path: Path) -> None:
    """Rates by problem and method, with their intervals."""
    figure, axes = _figure(9.0, 3.2)
    axis, names = axes[0][0], [n for n in METHODS if any(n in methods for methods in data.values())]
    width = 0.85 / max(len(names), 1)
    for k, name in enumerate(names):
        found = [(i, methods[name]) for i, methods in enumerate(data.values()) if name in methods]
        x = [i + (k - (len(names) - 1) / 2) * width for i, _ in found]
        rates = [c.rate for _, c in found]
        spans = [[r - c.interval[0] for r, (_, c) in zip(rates, found)], [c.interval[1] - c.rate for _, c in found]]
        axis.bar(x, rates, width * 0.9, color=colour(name), label=name)
        axis.errorbar(x, rates, yerr=spans, fmt="none", ecolor="#444444", elinewidth=0.7)
    axis.set_xticks(range(len(data)), [problem.replace(" n/p", "\nn/p") for problem in data])
    axis.set_ylabel("exact recovery")
    axis.set_ylim(0.0, 1.05)
    figure.legend(loc="outside upper center", ncols=min(len(names), 6), frameon=False)
    _save(figure, path)


def lines(panels: dict[str, dict[str, tuple[list[float], list[float]]]], path: Path, x: str, y: str) -> None:
    """A panel each with one line a method; the vertical axis is logarithmic."""
    figure, axes = _figure(4.5 * max(len(panels), 1), 3.4, max(len(panels), 1))
    for axis, (title, curves) in zip(axes[0], panels.items()):
        for name, (xs, ys) in curves.items():
            axis.plot(xs, ys, "o-", color=colour(name), label=name, markersize=3)
        axis.set(title=title, xlabel=x, ylabel=y, xscale="log", yscale="log")
        ticks = [min(values) for values in zip(*(curve[0] for curve in curves.values()))]
        axis.set_xticks(ticks, [f"{value:.2g}" for value in ticks])
        axis.minorticks_off()
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=min(2 * len(panels), 6), frameon=False)
    _save(figure, path)


def rates_against(panels: dict[str, dict[str, tuple[list[float], list[Count]]]], path: Path, x: str) -> None:
    """A panel each with a rate against a number, with its intervals."""
    figure, axes = _figure(3.2 * max(len(panels), 1), 3.2, max(len(panels), 1))
    for axis, (title, curves) in zip(axes[0], panels.items()):
        for name, (xs, counts) in curves.items():
            axis.plot(xs, [c.rate for c in counts], "o-", color=colour(name), label=name, markersize=3)
            low, high = zip(*(c.interval for c in counts))
            axis.fill_between(xs, low, high, color=colour(name), alpha=0.12, linewidth=0)
        axis.axhline(0.95, color="#999999", linewidth=0.7, linestyle=":")
        axis.set(title=title, xlabel=x, ylabel="exact recovery", ylim=(-0.03, 1.03))
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=min(2 * len(panels), 6), frameon=False)
    _save(figure, path)
