"""Pictures. Needs matplotlib: ``pip install matplotlib``."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from relumine.deep import DeepNetwork
from relumine.formats.files import write_atomically
from relumine.metrics import match
from relumine.network import Network
from relumine.report import story
from relumine.results import MissingPackage, Recovery

_STYLE: Any = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
_BLUE, _RED = "#1f4e79", "#c44e52"


def _style() -> Any:
    """Fonts and frames for as long as a picture is drawn."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise MissingPackage(f"plots need matplotlib ({error})", "matplotlib") from None
    return mpl.rc_context(_STYLE)


def _figure(width: float, height: float) -> Any:
    """A figure of its own: no window, no global state."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", dpi=150)


def recovery(found: Recovery, features: Sequence[str] | None = None) -> Any:
    """Units as a heat map, the loss on the way, bias against output weight: a matplotlib figure.

    Parameters
    ----------
    found : Recovery
    features : names, optional
        Names of the d inputs; by default those in ``found.origin``, if any.

    Returns
    -------
    matplotlib.figure.Figure
        ``figure.savefig("found.png")`` writes it; a notebook shows it.
    """
    names = story.features(found, features)
    deep = story.deep(found)
    if deep is not None:
        return _layers(found, deep)
    with _style():
        figure = _figure(11, 3.6)
        units, loss, weights = figure.subplots(1, 3, width_ratios=[1.2, 1, 1])
        _heat_map(figure, units, found, names)
        _losses(loss, found)
        _bias_and_output(weights, found)
        figure.suptitle(f"{found.title}. {found.message}", x=0.01, ha="left", fontsize=9, color="0.35")
    return figure


def _layers(found: Recovery, net: DeepNetwork) -> Any:
    """A heat map for each map of a deep network, input side first."""
    with _style():
        figure = _figure(3.6 * len(net.maps), 3.6)
        for k, (axes, (W, _)) in enumerate(zip(figure.subplots(1, len(net.maps)), net.maps)):
            W = np.atleast_2d(W)
            largest = float(np.abs(W).max(initial=0.0)) or 1.0
            axes.imshow(W, cmap="PuOr_r", vmin=-largest, vmax=largest, aspect="auto", interpolation="nearest")
            title = f"layer {k + 1}: {len(W)} units" if k + 1 < len(net.maps) else "output"
            axes.set(xlabel="input" if not k else "unit before", title=title)
        figure.suptitle(f"{found.title}. {found.message}", x=0.01, ha="left", fontsize=9, color="0.35")
    return figure


def _heat_map(figure: Any, axes: Any, found: Recovery, names: Sequence[str]) -> None:
    net, spread = found.network, story.spread(found)
    W = net.W if spread is None else net.W * spread
    largest = float(np.abs(W).max(initial=0.0)) or 1.0
    # purple to orange through white: apart for every common form of colour blindness
    shown = axes.imshow(W, cmap="PuOr_r", vmin=-largest, vmax=largest, aspect="auto", interpolation="nearest")
    per = "w per unit of each input" if spread is None else "w per standard deviation of the input"
    figure.colorbar(shown, ax=axes, shrink=0.8, label=per)
    axes.set(xlabel="input", ylabel="unit", title=f"{net.m} hidden units")
    if net.d <= 20:
        # a dollar sign in a name is not mathematics
        labels = [str(name)[:14].replace("$", r"\$") for name in names]
        axes.set_xticks(range(net.d), labels, rotation=45, ha="right")
        axes.set(xlabel="")


def _losses(axes: Any, found: Recovery) -> None:
    begin, last = 0, list[float]()
    for _, losses in story.trace(found):
        # a stage of one step is seen as the way to it
        steps, values = np.arange(begin - len(last), begin + len(losses)), [*last, *losses]
        axes.semilogy(steps, np.maximum(values, 1e-32), color=_BLUE, lw=1.4)
        axes.axvline(begin, color="0.85", lw=0.8, zorder=0)
        begin, last = begin + len(losses), losses[-1:]
    axes.set(xlabel="iteration", ylabel="loss, relative to the best affine fit", title="loss, stage by stage")


def _bias_and_output(axes: Any, found: Recovery) -> None:
    net, se = found.network, found.standard_errors
    single = np.atleast_2d(net.a).shape[0] == 1
    a = np.atleast_2d(net.a)[0] if single else np.linalg.norm(net.a, axis=0)
    axes.axhline(0.0, color="0.8", lw=0.8, zorder=0)
    if se is not None and single:
        reach = 2.0 * np.nan_to_num(se.b), 2.0 * np.nan_to_num(np.atleast_2d(se.a)[0])
        axes.errorbar(net.b, a, xerr=reach[0], yerr=reach[1], fmt="none", ecolor="0.6", lw=1)
    axes.scatter(net.b, a, c=np.where(a >= 0.0, "#b35806", "#542788"), s=22, zorder=2)
    axes.set(xlabel="bias b", ylabel="output weight a" if single else "‖a‖", title="bias and output weight")


def true_and_found(truth: Network, found: Network, losses: Sequence[float], path: str | os.PathLike[str]) -> None:
    """Save a picture of the units, true against found, and of the loss on the way there."""
    truth, aligned = truth.scaled(), match(truth, found).network
    with _style():
        figure = _figure(11, 3.6)
        units, weights, loss = figure.subplots(1, 3)
        ring = {"facecolors": "none", "edgecolors": _RED, "s": 70, "label": "true"}
        dot = {"color": _BLUE, "s": 12, "label": "found"}
        units.scatter(truth.b, np.atleast_2d(truth.a)[0], **ring)
        units.scatter(aligned.b, np.atleast_2d(aligned.a)[0], **dot)
        units.set(xlabel="bias b", ylabel="output weight a", title=f"{truth.m} hidden units")
        units.legend(frameon=False, loc="best")
        weights.axline((0, 0), slope=1.0, color="#bbbbbb", lw=1, zorder=0)
        weights.scatter(truth.W.ravel(), aligned.W.ravel(), color=_BLUE, s=6)
        weights.set(xlabel="true w", ylabel="found w", title=f"{truth.W.size} hidden weights")
        loss.semilogy(np.maximum(losses, 1e-32), color=_BLUE)
        loss.set(xlabel="step", ylabel="loss (affine fit: 1)", title="slow, slow, then at once")
        picture = io.BytesIO()
        figure.savefig(picture, format="png")
    write_atomically(Path(path), picture.getvalue())
