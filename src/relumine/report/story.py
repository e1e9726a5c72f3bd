"""What the report says, as plain values: headline, figures in words, tables. The template only arranges them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relumine.results import Recovery, Status

Array = NDArray[np.float64]

__all__ = [
    "Card",
    "Cut",
    "advice",
    "cards",
    "choose",
    "headline",
    "held_out",
    "parameter_table",
    "spread",
    "sure",
    "title",
    "tone",
    "trace",
]

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
    Status.NOT_RECOVERED: "Do not trust these weights: the fit leaves structure behind, so this is not the network.",
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
    """The colour of the page, and its sign; where no unit was found there is nothing to be glad or sorry about."""
    return ("plain", "–") if found.ok and not found.network.m else TONE[found.status]


def title(found: Recovery) -> str:
    """How it ended, in a clause."""
    return "No hidden unit found" if found.ok and not found.network.m else found.status.title


def headline(found: Recovery) -> str:
    """One sentence: what was recovered."""
    net = found.network
    if found.ok and not net.m:
        share, target = _explained(found), str(found.details.get("target") or "y")
        words = f" explains {100.0 * share:.3g} % of {target}" if np.isfinite(share) else " is all there is"
        return f"{title(found)}: a linear fit{words}."
    units = _count(net.m, f"{_spoken(net.activation.name)} unit")
    behind = f"{units} behind {_count(net.d, 'input')}"
    if net.q is not None:
        behind += f" and {_count(net.q, 'output')}"
    if not net.m:
        behind = f"no hidden units: an affine function of {_count(net.d, 'input')}"
    if net.m and (np.any(net.v) or np.any(net.c)):
        behind += ", with an affine part" if np.any(net.v) else ", with an output bias"
    return f"{found.status.title}: {behind}." if found.ok else f"{found.status.title}. Best found: {behind}."


def _explained(found: Recovery) -> float:
    """The share of the variance of y: by the noise where the spread of y is known, else by the rows kept out."""
    spread, noise = found.details.get("target_spread"), found.certificate.noise
    known = isinstance(spread, float) and spread > 0.0 and noise > 0.0
    left = noise / spread if known else found.certificate.residual  # type: ignore[operator]
    return max(1.0 - left**2, 0.0)


def sure(found: Recovery) -> str:
    """One sentence: how sure we are."""
    if found.ok and not found.network.m:
        if found.status is Status.EXACT:
            return "Rows that the fit never saw come out right to the last digits: y is an affine function."
        return "What is left looks like noise. Units may be hidden in it; more samples or less noise would show them."
    return _SURE[found.status]


def advice(found: Recovery) -> list[str]:
    """What to do next: ``details["advice"]`` if it is there (the command line has its own words), else the status's."""
    lines = found.details.get("advice") or found.status.advice
    return [str(line) for line in ([lines] if isinstance(lines, str) else list(lines))]


def spread(found: Recovery) -> Array | None:
    """Standard deviations of the d inputs, if the result holds them."""
    stored = found.details.get("spread")
    if not isinstance(stored, Sequence | np.ndarray) or isinstance(stored, str):
        return None
    values = [v if isinstance(v, int | float) else -1.0 for v in stored]
    right = len(values) == found.network.d and all(0.0 <= v < 1e300 for v in values)
    return np.array(values, dtype=np.float64) if right else None


def cards(found: Recovery) -> list[Card]:
    """The numbers that matter, with a remark each."""
    certificate, net, out = found.certificate, found.network, []
    if np.isfinite(certificate.residual):
        out.append(
            Card(
                scientific(certificate.residual),
                "error on unseen rows",
                f"relative to the spread of y, on {certificate.rows} rows kept out of the fit",
            )
        )
    affine = (net.v.size if np.any(net.v) else 0) + (net.c.size if np.any(net.v) or np.any(net.c) else 0)
    parameters = net.W.size + net.m * (net.q or 1) + affine
    out.append(Card(str(net.m), "hidden units", f"{net.d} inputs, {parameters + net.m} numbers in all"))
    if certificate.noise > 0.0:
        out.append(Card(f"{certificate.noise:.3g}", "noise in y", "standard deviation, estimated from the residual"))
    if found.ok and net.m and np.isfinite(certificate.condition):  # of a wrong network it says nothing
        out.append(Card(scientific(certificate.condition), "condition", _pinned_down(found)))
    queries = found.details.get("queries")
    if isinstance(queries, int):
        remark = f"{queries / max(parameters, 1):.1f} per parameter" if parameters else ""
        out.append(Card(f"{queries:,}", "questions asked", remark))
    starts = found.details.get("starts")
    remark = f"method {found.method}" + (f", {_count(int(starts), 'start')}" if isinstance(starts, int) else "")
    out.append(Card(duration(found.seconds), "time", remark))
    return out


def _pinned_down(found: Recovery) -> str:
    """What the condition number says, and what it does not."""
    net, se = found.network, found.standard_errors
    if found.certificate.condition >= 1e8:
        return "some parameters are barely seen"
    if found.units.up_to_sign:
        return f"pinned down but for the flip of {_count(len(found.units.up_to_sign), 'unit')}"
    keys = ["W", "b", "a", *(["v"] if np.any(net.v) else []), *(["c"] if np.any(net.c) else [])]
    drowned = 0 if se is None else sum(int(np.sum(getattr(se, k) > np.abs(getattr(net, k)))) for k in keys)
    if drowned:
        total = sum(getattr(net, k).size for k in keys)
        return f"{drowned} of {total} numbers {'is' if drowned == 1 else 'are'} smaller than the standard error"
    return "every parameter is pinned down"


def choose(importance: Array, most: int, what: str, reason: str) -> Cut:
    """The ``most`` entries of largest importance, in their own order."""
    total = len(importance)
    if total <= most:
        return Cut(np.arange(total))
    kept = np.sort(np.argsort(-importance, kind="stable")[:most])
    return Cut(kept, f"Shown are {most} of {total} {what}: {reason}.")


def trace(found: Recovery) -> list[tuple[str, list[float]]]:
    """The losses stage by stage, as recorded on the way, or of the last fit alone; the result's own is the last."""
    recorded = found.details.get("trace")
    if isinstance(recorded, Sequence) and recorded:
        stages = [(str(name), _finite(losses)) for name, losses in recorded]
    else:
        stages = [("last fit", _finite(found.details.get("history") or ()))]
    stages = [stage for stage in stages if stage[1]]
    final = _finite([found.details.get("relative_loss")])
    if stages and final and abs(final[0] - stages[-1][1][-1]) > 0.01 * abs(final[0]):
        stages.append(("signs and polish" if found.network.m else "linear fit", final))
    return stages


def held_out(found: Recovery) -> Mapping[str, Array] | None:
    """True and predicted outputs of rows kept out of the fit, (r, q) each, if the result holds them."""
    pair = found.details.get("held_out")
    if not isinstance(pair, Mapping):
        return None
    truth, predicted = (np.asarray(pair.get(key, ()), dtype=np.float64) for key in ("truth", "predicted"))
    if truth.shape != predicted.shape or not truth.size or not (np.isfinite(truth) & np.isfinite(predicted)).all():
        return None
    return {"truth": truth.reshape(len(truth), -1), "predicted": predicted.reshape(len(truth), -1)}


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
    from relumine.report.axes import label

    return label(float(f"{value:.2g}"))


def duration(seconds: float) -> str:
    """Seconds for people."""
    if seconds < 60.0:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _finite(losses: Any) -> list[float]:
    return [float(v) for v in losses if isinstance(v, int | float) and np.isfinite(v)]


def _spoken(activation: str) -> str:
    return {"relu": "ReLU", "leaky_relu": "leaky ReLU", "squared_relu": "squared ReLU"}.get(activation, activation)


def _count(k: int, thing: str) -> str:
    return f"{k}\N{NO-BREAK SPACE}{thing}{'' if k == 1 else 's'}"
