"""A result or a network as a small piece of HTML for a notebook: the report's words, nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

import numpy as np
from markupsafe import Markup

from relumine.deep import DeepNetwork
from relumine.network import Network
from relumine.report import story
from relumine.results import Recovery, described

_UNITS, _INPUTS = 8, 6  # shown at most; a notebook wants a glance
_COLOURS = {"good": "#2e7d32", "fair": "#b26a00", "poor": "#b3261e", "plain": "#5f6368"}
_NUMBER = Markup('<td style="text-align:right;padding:1px 8px">{}</td>')
_WORDS = Markup('<td style="text-align:left;padding:1px 8px">{}</td>')


def recovery(found: Recovery) -> str:
    """How it ended, the figures, what to do next, and the first units."""
    tone, sign = story.tone(found)
    head = Markup('<p><b style="color:{}">{} {}</b><br>{}</p>').format(
        _COLOURS[tone], sign, found.headline, found.message
    )
    rows = [(card.value, f"{card.name}: {card.remark}" if card.remark else card.name) for card in story.cards(found)]
    figures = _table([], [(Markup("<b>{}</b>").format(value), what) for value, what in rows], last=_WORDS)
    advice = Markup("").join(Markup("<p><i>{}</i></p>").format(line) for line in story.advice(found))
    return str(head + figures + advice + _units(found.network, story.features(found)))


def network(net: Network | DeepNetwork) -> str:
    """What it is, and its first units."""
    head = Markup("<p><b>{}</b>, {} parameters</p>").format(described(cast("Network", net)), net.parameters)
    return str(head + _units(net, [f"x{j}" for j in range(net.d)]))


def _units(net: Network | DeepNetwork, names: Sequence[str]) -> Markup:
    """The units of largest output weight as a table."""
    if not net.m:
        return Markup("")
    if isinstance(net, DeepNetwork):
        sizes = [(f"layer {k + 1}", len(b), W.shape[1]) for k, (W, b) in enumerate(net.hidden)]
        return _table(["", "units", "inputs"], sizes)
    A = np.atleast_2d(net.a)
    units = story.choose(np.linalg.norm(A, axis=0), _UNITS, "units", "those of largest output weight")
    inputs = story.choose(np.abs(net.W).max(axis=0), _INPUTS, "inputs", "those of largest weight")
    outputs = A[:1] if len(A) == 1 else np.linalg.norm(A, axis=0, keepdims=True)
    heads = ["unit", "a" if len(A) == 1 else "‖a‖", "b", *(f"w {names[j]}" for j in inputs.kept)]
    lines = [
        (i, *(story.fixed(float(v)) for v in (outputs[0, i], net.b[i], *net.W[i, inputs.kept])))
        for i in units.kept.tolist()
    ]
    cut = " ".join(sentence for sentence in (units.sentence, inputs.sentence) if sentence)
    return _table(heads, lines) + (Markup("<p><small>{}</small></p>").format(cut) if cut else Markup(""))


def _table(heads: Sequence[str], lines: Iterable[Sequence[object]], last: Markup = _NUMBER) -> Markup:
    """Rows of cells, every one escaped; ``last``: the kind of the last column."""
    head = Markup("<tr>{}</tr>").format(Markup("").join(Markup("<th>{}</th>").format(name) for name in heads))
    rows = [
        Markup("<tr>{}</tr>").format(Markup("").join([*map(_NUMBER.format, line[:-1]), last.format(line[-1])]))
        for line in lines
    ]
    return Markup("<table>{}{}</table>").format(head if heads else "", Markup("").join(rows))
