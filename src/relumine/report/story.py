"""What the report says, as plain values: headline, figures in words, tables. The template only arranges them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array
from relumine.deep import DeepNetwork
from relumine.extraction import Extraction
from relumine.report.axes import label
from relumine.results import InvalidInput, Predictions, Recovery, Status, counted

TONE = {
    Status.EXACT: ("good", "✓"),
    Status.NOISY: ("good", "≈"),
    Status.ESTIMATE: ("fair", "≈"),
    Status.INTERRUPTED: ("fair", "◔"),
    Status.AMBIGUOUS: ("fair", "?"),
    Status.UNDERDETERMINED: ("poor", "✕"),
    Status.NOT_RECOVERED: ("poor", "✕"),
}

_SURE = {
    Status.EXACT: "As sure as arithmetic allows: rows that the fit never saw come out right to the last digits.",
    Status.NOISY: "As sure as the noise allows: what is left over passes for noise, and independent starts agree.",
    Status.ESTIMATE: "A consistent estimate: right in the limit of many samples, with the error of its moments.",
    Status.INTERRUPTED: "Not sure at all: the search was stopped. This is the best network so far.",
    Status.AMBIGUOUS: "The function is right on these data, but other networks may compute it just as well.",
    Status.UNDERDETERMINED: "Not sure at all: there are too few samples for a network of this size.",
    Status.NOT_RECOVERED: "Do not trust these weights: the fit does not explain the data, so this is not the network.",
}


@dataclass(frozen=True)
class Card:
    """One figure with what it means."""

    value: str
    name: str
    remark: str = ""


@dataclass(frozen=True)
class Cut:
    """Which rows or columns are shown, and a sentence if some are not."""

    kept: NDArray[np.intp]
    sentence: str = ""


def tone(found: Recovery) -> tuple[str, str]:
    """The colour of the page, and its sign; neutral where no unit was found, which is neither success nor failure."""
    return ("plain", "–") if found.ok and not found.network.m else TONE[found.status]


def title(found: Recovery) -> str:
    """How it ended, in a clause."""
    return "No hidden unit found" if found.ok and not found.network.m else found.title


def sure(found: Recovery) -> str:
    """One sentence: how sure we are."""
    if found.ok and not found.network.m:
        if found.status is Status.EXACT:
            return "Rows that the fit never saw come out right to the last digits: y is an affine function."
        return "What is left looks like noise. Units may be hidden in it; more samples or less noise would show them."
    return _SURE[found.status]


def advice(found: Recovery) -> tuple[str, ...]:
    """What to do next: in the words of the door that made the result, else the status's."""
    return found.origin.advice or (found.advice,)


def spread(found: Recovery) -> Array | None:
    """Standard deviations of the d inputs, (d,), if the result holds them."""
    values = np.array(found.origin.spread, dtype=np.float64)
    return values if values.shape == (found.network.d,) and ((values >= 0.0) & (values < 1e300)).all() else None


def features(found: Recovery, names: Sequence[str] | None = None) -> list[str]:
    """Names of the d inputs: those given, those the result holds, or x0, x1, …"""
    d = found.network.d
    names = found.origin.features or [f"x{j}" for j in range(d)] if names is None else names
    if isinstance(names, str) or len(names) != d:
        raise InvalidInput(f"features must name the {d} inputs, one each; got {len(names)}", argument="features")
    return [str(name) for name in names]


def cards(found: Recovery) -> list[Card]:
    """The numbers that matter, with a remark each."""
    certificate, net, out = found.certificate, found.network, []
    if np.isfinite(certificate.residual):
        rows = f"as a share of the spread of y, on {_count(certificate.rows, 'row')} kept out of the fit"
        out.append(Card(scientific(certificate.residual), "error on unseen rows", rows))
    if certificate.confirmed:
        out.append(Card(f"{certificate.confirmed:,}", "rows confirm it", certificate.evidence.partition("; ")[2]))
    remark = f"{_count(net.d, 'input')}, {_count(net.parameters, 'parameter')}"
    out.append(Card(str(net.m), "hidden units", remark))
    if certificate.noise > 0.0:
        remark = "standard deviation of what is left, on the scale of y"
        out.append(Card(f"{certificate.noise:.3g}", "noise in y" if found.ok else "left over", remark))
    if found.ok and net.m and np.isfinite(certificate.condition):  # of a wrong network it says nothing
        out.append(Card(scientific(certificate.condition), "condition", _pinned_down(found)))
    if isinstance(found, Extraction):
        remark = f"in {_count(found.calls, 'call')}"
        remark += f", {found.queries / net.parameters:.1f} per parameter" if net.parameters else ""
        remark += f", {_count(found.dropped, 'row')} never answered" if found.dropped else ""
        out.append(Card(f"{found.queries:,}", "rows asked", remark))
    starts = f", {_count(found.search.starts, 'start')}" if found.search.starts else ""
    out.append(Card(duration(found.seconds), "time", f"method {found.method}{starts}"))
    return out


def _pinned_down(found: Recovery) -> str:
    """What the condition number says, and what it does not."""
    net, se = found.network, found.standard_errors
    if found.certificate.condition >= 1e8:
        return "some parameters are barely determined"
    if found.units.up_to_sign:
        return f"determined, but for the sign of (w, b) of {_count(len(found.units.up_to_sign), 'unit')}"
    keys = ["W", "b", "a", *(["v"] if np.any(net.v) else []), *(["c"] if np.any(net.c) else [])]
    drowned = 0 if se is None else sum(int(np.sum(getattr(se, k) > np.abs(getattr(net, k)))) for k in keys)
    if drowned:
        total = sum(getattr(net, k).size for k in keys)
        are, its = ("is", "its") if drowned == 1 else ("are", "their")
        return f"{drowned} of {total} weights and biases {are} smaller than {its} standard error"
    return "every parameter is determined"


def choose(importance: Array, most: int, what: str, reason: str) -> Cut:
    """The ``most`` entries of largest importance, in their own order."""
    total = len(importance)
    if total <= most:
        return Cut(np.arange(total))
    kept = np.sort(np.argsort(-importance, kind="stable")[:most])
    return Cut(kept, f"Shown are {most} of {total} {what}: {reason}.")


def trace(found: Recovery) -> list[tuple[str, list[float]]]:
    """The losses stage by stage, those that are finite; the result's own is the last."""
    stages = [(name, [v for v in losses if np.isfinite(v)]) for name, losses in found.search.trace]
    stages = [stage for stage in stages if stage[1]]
    final = found.search.loss  # after signs and polish, which the trace does not have
    if stages and np.isfinite(final) and abs(final - stages[-1][1][-1]) > 0.01 * abs(final):
        stages.append(("signs and polish" if found.network.m else "linear fit", [final]))
    return stages


def shown(found: Recovery) -> Predictions | None:
    """True and predicted outputs of some rows, (k, q) each, if the result holds them and they can be drawn.

    With a link they are what was observed: probabilities.
    """
    pair = found.shown
    if pair is None or not pair.truth.size or not np.isfinite([pair.truth, pair.predicted]).all():
        return None
    if found.mapping is None:
        return pair
    truth, predicted = (found.mapping.answers(Z).reshape(len(Z), -1) for Z in (pair.truth, pair.predicted))
    return Predictions(truth, predicted, pair.unseen)


def observed(found: Recovery) -> str:
    """What stands before the name of the target in the network's formula: the link."""
    return "" if found.mapping is None else found.mapping.form.before


def deep(found: Recovery) -> DeepNetwork | None:
    """The network, if it has several hidden layers."""
    net: Any = found.network
    return net if isinstance(net, DeepNetwork) else None


def parameter_table(
    found: Recovery, rows: NDArray[np.intp], columns: NDArray[np.intp], features: Sequence[str]
) -> dict[str, Any]:
    """Units as table rows: output weights, bias, hidden weights, each (value, standard error or None)."""
    net, se = found.network, found.standard_errors
    A, sA = np.atleast_2d(net.a), None if se is None else np.atleast_2d(se.a)
    outputs = min(len(A), 6)
    names = ["a"] if net.q is None else [f"a for output {k}" for k in range(outputs)]
    up_to_sign, known = set(found.units.up_to_sign), set(found.units.recovered)

    def cell(values: Array, errors: Array | None, *at: int) -> dict[str, Any]:
        error = None if errors is None or not np.isfinite(errors[at]) else float(errors[at])
        value = float(values[at])
        return {"value": value, "text": fixed(value, error), "error": None if error is None else f"{error:.2g}"}

    lines = []
    for i in rows.tolist():
        cells = [cell(A, sA, k, i) for k in range(outputs)]
        cells.append(cell(net.b, None if se is None else se.b, i))
        cells += [cell(net.W, None if se is None else se.W, i, j) for j in columns.tolist()]
        word = "up to a flip" if i in up_to_sign else "entirely" if i in known else "not certain"
        lines.append({"unit": i, "known": word, "cells": cells})
    return {
        "heads": [*names, "b", *(features[j] for j in columns.tolist())],
        "weights_from": len(names) + 1,
        "lines": lines,
        "errors": se is not None,
        "outputs_left": len(A) - outputs,
    }


def fixed(value: float, error: float | None = None) -> str:
    """A number with as many digits as it deserves: two of its standard error, or six."""
    if error is not None and error > 0.0 and value != 0.0:
        digits = int(np.clip(np.floor(np.log10(abs(value))) - np.floor(np.log10(error)) + 2, 1, 8))
        text = f"{value:+.{digits}g}"
    else:
        text = f"{value:+.6g}"
    return text.replace("-", "−")


def scientific(value: float) -> str:
    """2.3e-14 as 2.3·10⁻¹⁴; ordinary sizes as they are."""
    return label(float(f"{value:.2g}"))


def duration(seconds: float) -> str:
    """Seconds for people.

    Examples
    --------
    >>> [duration(seconds) for seconds in (0.034, 12.3, 75.0, 1500.0, 9000.0)]
    ['0.034 s', '12 s', '1 min 15 s', '25 min', '2.5 h']
    """
    if seconds < 59.5:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 180.0:  # so that a clock that is drawn anew is seen to go
        return f"{int(seconds) // 60} min {int(seconds) % 60} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _count(k: int, thing: str) -> str:
    return counted(k, thing).replace(" ", "\N{NO-BREAK SPACE}")
