"""Pictures. Needs matplotlib: ``pip install 'relumine[plot]'``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from relumine.metrics import match
from relumine.network import Network

__all__ = ["true_and_found"]


def true_and_found(truth: Network, found: Network, losses: Sequence[float], path: str | os.PathLike[str]) -> None:
    """Save a picture of the units, true against found, and of the loss on the way there."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    truth, aligned = truth.scaled(), match(truth, found).network
    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(11, 3.6), layout="constrained", dpi=150)
        units, weights, loss = figure.subplots(1, 3)
        ring = {"facecolors": "none", "edgecolors": "#c44e52", "s": 70, "label": "true"}
        dot = {"color": "#1f4e79", "s": 12, "label": "found"}
        units.scatter(truth.b, np.atleast_2d(truth.a)[0], **ring)
        units.scatter(aligned.b, np.atleast_2d(aligned.a)[0], **dot)
        units.set(xlabel="bias b", ylabel="output weight a", title=f"{truth.m} hidden units")
        units.legend(frameon=False, loc="best")
        weights.axline((0, 0), slope=1.0, color="#bbbbbb", lw=1, zorder=0)
        weights.scatter(truth.W.ravel(), aligned.W.ravel(), color="#1f4e79", s=6)
        weights.set(xlabel="true w", ylabel="found w", title=f"{truth.W.size} hidden weights")
        loss.semilogy(np.maximum(losses, 1e-32), color="#1f4e79")
        loss.set(xlabel="step", ylabel="relative loss", title="slow, slow, then at once")
        temporary = Path(path).with_name(f".{Path(path).name}")
        figure.savefig(temporary, format="png")
        temporary.replace(path)
