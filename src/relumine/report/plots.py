"""Pictures. Needs matplotlib: ``pip install 'relumine[plot]'``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from relumine.metrics import match
from relumine.network import Network
from relumine.results import InvalidInput, Recovery

__all__ = ["recovery", "true_and_found"]

_STYLE: Any = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
_BLUE, _RED = "#1f4e79", "#c44e52"


def _figure(width: float, height: float) -> Any:
    """A figure of its own: no window, no global state."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(f"plots need matplotlib ({error}): pip install 'relumine[plot]'") from None
    return Figure(figsize=(width, height), layout="constrained", dpi=150)


def recovery(found: Recovery, features: Sequence[str] | None = None) -> Any:
    """Units as a heat map, the loss on the way, bias against output weight: a matplotlib figure.

    Parameters
    ----------
    found : Recovery
    features : names, optional
        Names of the d inputs; by default those in ``found.details["features"]``, if any.

    Returns
    -------
    matplotlib.figure.Figure
        ``figure.savefig("found.png")`` writes it; a notebook shows it.
    """
    import matplotlib as mpl

    net, names = found.network, features if features is not None else found.details.get("features")
    if names is not None and len(names) != net.d:
        raise InvalidInput(f"features must name the {net.d} inputs, one each; got {len(names)}")
    with mpl.rc_context(_STYLE):
        figure = _figure(11, 3.6)
        units, loss, weights = figure.subplots(1, 3, width_ratios=[1.2, 1, 1])
        _heat_map(figure, units, found, names)
        _losses(loss, found)
        _bias_and_output(weights, found)
        figure.suptitle(f"{found.status.title}. {found.message}", x=0.01, ha="left", fontsize=9, color="0.35")
    return figure


def _heat_map(figure: Any, axes: Any, found: Recovery, names: Sequence[str] | None) -> None:
    net, spread = found.network, found.details.get("spread")
    known = spread is not None and np.shape(spread) == (net.d,)
    W = net.W * np.asarray(spread, dtype=np.float64) if known else net.W
    largest = float(np.abs(W).max(initial=0.0)) or 1.0
    # purple to orange through white: apart for every common form of colour blindness
    shown = axes.imshow(W, cmap="PuOr_r", vmin=-largest, vmax=largest, aspect="auto", interpolation="nearest")
    per = "w per standard deviation of the input" if known else "w per unit of each input"
    figure.colorbar(shown, ax=axes, shrink=0.8, label=per)
    axes.set(xlabel="input", ylabel="unit", title=f"{net.m} hidden units")
    if names is not None and net.d <= 20:
        # a dollar sign in a name is not mathematics
        labels = [str(name)[:14].replace("$", r"\$") for name in names]
        axes.set_xticks(range(net.d), labels, rotation=45, ha="right")
        axes.set(xlabel="")


def _losses(axes: Any, found: Recovery) -> None:
    trace = found.details.get("trace") or [("", found.details.get("history") or ())]
    begin = 0
    for _, losses in trace:
        steps = np.arange(begin, begin + len(losses))
        if len(losses):
            axes.semilogy(steps, np.maximum(losses, 1e-32), color=_BLUE, lw=1.4)
            axes.axvline(begin, color="0.85", lw=0.8, zorder=0)
        begin += len(losses)
    _end(axes, found, begin, trace[-1][1][-1:])
    several = len(trace) > 1
    axes.set(
        xlabel="iteration", ylabel="relative loss", title="loss, stage by stage" if several else "loss of the last fit"
    )


def _end(axes: Any, found: Recovery, begin: int, last: Sequence[float]) -> None:
    """The loss of the result itself, where signs and polish went on after the last step."""
    final = found.details.get("relative_loss")
    if len(last) and isinstance(final, float) and np.isfinite(final) and abs(final - last[0]) > 0.01 * abs(final):
        axes.semilogy([begin - 1, begin], np.maximum([last[0], final], 1e-32), color=_BLUE, lw=1.4, marker=".")


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
    import matplotlib as mpl

    truth, aligned = truth.scaled(), match(truth, found).network
    with mpl.rc_context(_STYLE):
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
        loss.set(xlabel="step", ylabel="relative loss", title="slow, slow, then at once")
        temporary = Path(path).with_name(f".{Path(path).name}")
        figure.savefig(temporary, format="png")
        temporary.replace(path)
