"""Samples whose outputs are probabilities, or exponentials, mapped back to values of a network."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from relumine.data.sources import Samples, Source, in_memory
from relumine.links import Link, link_of
from relumine.results import InvalidInput, counted


def mapped_back(data: Samples | Source, asked: str, memory: float) -> tuple[Link | None, Samples | Source, str]:
    """The link, the samples with values of the network as outputs, and a note on rows that were left out.

    Rows with a probability too small to have digits say nothing about the network's value there. Which rows those are
    is known after all of them were read, so they have to fit in ``memory``.
    """
    rows = in_memory(data, memory, "link")
    link = link_of(asked, rows.Y, rounded=True)
    if link is None:
        return None, rows, ""
    link = replace(link, grid=0.0)  # for lines, which take noise for constant
    Z = link.values(rows.Y)
    good = np.isfinite(Z).all(axis=1)
    if good.sum() < 2:
        raise InvalidInput("all probabilities are 0 or 1, or rounded to a few decimals", argument="link")
    y = Z[good, 0] if rows.vector or link.form.stacked else Z[good]
    weight = None if rows.weight is None else rows.weight[good]
    left = f"{counted(int((~good).sum()), 'row')} with too few digits left out" if not good.all() else ""
    return link, Samples(rows.X[good], y, weight, rows.names, label=rows.label), left
