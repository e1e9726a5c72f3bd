"""The verdict on a decoded w: exact, noise, or neither, decided on rows that its fit never saw."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np

from relumine.arrays import Array
from relumine.papers.oymak2018.additive import DENSE, Additive, gauss_newton
from relumine.papers.oymak2018.evidence import Evidence, conditioning, determined, evidence, held_out
from relumine.papers.oymak2018.result import Decoding
from relumine.results import Certificate, Status

# Held-out residual over the size of the sum Σ|a||w + x|: rounding, amplified by the conditioning of the fit.
EXACT = 1e-10


def judge(problem: Additive, part: Additive, theta: Array, w: Array, method: str, elsewhere: Array) -> Decoding:
    """Exact, noise, or neither: decided on the rows that the fit of w left out (``part.out``)."""
    test = held_out(part)
    errors, unit = np.abs(test.residual(w)), size(test, w)
    # exact: the rows held out and the rows of the fit alike, to rounding error of the sum
    exact = bool(errors.max() <= EXACT * unit and part.gradient(w, centred=False)[2] <= EXACT * unit)
    centred, dense = method == "centered", problem.d <= DENSE
    found = evidence(part, w, centred) if dense and not exact else None
    condition = conditioning(part, w) if dense and exact else found.condition if found else float("nan")
    certificate = Certificate(
        residual=float(np.sqrt(np.mean(errors**2)) / (np.std(problem.y) or 1.0)),
        rows=len(errors),
        noise=0.0 if found is None else found.noise,
        condition=condition,
        does_not_prove="that the labels follow this model on probes unlike these rows",
        notes=_twins(problem) + _at_bound(w, theta),
    )
    notes = "".join(f" {note}." for note in certificate.notes)
    # w may sit on a kink of some row: how far it is moved to see whether J keeps its rank on both sides
    margin = np.full(problem.d, 1e-7 * unit / np.abs(problem.a).sum())
    if np.isinf(condition) or (dense and exact and not determined(part, w, margin)):
        return Decoding(w, Status.UNDERDETERMINED, _blind(part, w) + notes, certificate)
    if exact:
        proves = "no other vector near this one explains the rows, and it predicts rows it never saw"
        message = f"{len(errors)} held-out rows are reproduced to {errors.max() / unit:.1e} of their size.{notes}"
        w = _polish(problem, theta, w, method, steps=1)
        return Decoding(w, Status.EXACT, message, replace(certificate, proves=proves))
    objections = (
        [f"the fit is not exact, and with d > {DENSE} noise is not told from misfit"]
        if found is None
        else _objections(part, theta, w, found, elsewhere)
    )
    if objections:
        message = "; ".join(objections) + "." + notes
        return Decoding(w, Status.NOT_RECOVERED, message[0].upper() + message[1:], certificate)
    # noise it is: now all rows may decide, those held out, too
    w = _polish(problem, theta, w, method, steps=20)
    final = evidence(problem, w, centred)
    if not determined(part, w, margin + 3.0 * final.standard_errors):
        return Decoding(w, Status.UNDERDETERMINED, _blind(part, w) + notes, certificate)
    typical = float(np.median(final.standard_errors))
    message = f"Label noise of standard deviation {final.noise:.3g}; typical standard error {typical:.2g}.{notes}"
    proves = "the residual is indistinguishable from noise, and a second start ends at the same vector"
    certificate = replace(certificate, noise=final.noise, proves=proves)
    return Decoding(w, Status.NOISY, message, certificate, final.standard_errors)


def too_few(problem: Additive, w: Array) -> Decoding:
    """Rows that cannot determine w, whatever they are: ``w`` is where a fit would have begun."""
    message = (
        f"{problem.n} rows for {problem.d} unknowns: at least d + 2 = {problem.d + 2} are needed, "
        "one of them to check. No fit was made; w is the start."
    )
    return Decoding(w, Status.UNDERDETERMINED, message, Certificate(float("nan"), 0))


def _objections(part: Additive, theta: Array, w: Array, found: Evidence, elsewhere: Array) -> list[str]:
    """Every reason not to take what is left for noise, in words; empty: take it."""
    d, edge = part.d, np.abs(w) >= theta
    objections = []
    # five standard errors: of three million coordinates that are at the bound by right, one is objected to
    beyond = edge & (found.remaining * np.sign(w) > 5.0 * found.standard_errors)
    if beyond.any():
        objections.append(f"{beyond.sum()} coordinates want to leave the bound: it is too small")
    # χ² with d degrees of freedom at the true w, 0 at the minimum
    to_go, unit = float(found.remaining @ found.G @ found.remaining), found.noise**2
    if not beyond.any() and to_go > (0.1 * d + 10.0 * np.count_nonzero(edge)) * unit:
        objections.append("the iteration ended away from a minimum (raise max_iter, or use method='gauss-newton')")
    if found.structure > 6.0:  # a handful of scores are looked at: noise passes six once in 10⁸ fits
        objections.append(f"the residual still depends on the probes ({found.structure:.0f} standard deviations)")
    if found.held_out > 1.0:
        objections.append("rows left out of the fit are predicted worse than noise allows")
    if part.n - d < max(10, d // 4):  # ten degrees of freedom tell the noise to 22 %
        objections.append(f"{part.n} rows for {d} unknowns are too few to tell noise from misfit")
    uncertain = float(np.sqrt(np.mean(found.standard_errors**2)))
    # as uncertain as half the bound: that much was known before the first row
    if uncertain > 0.5 * min(float(np.min(theta)), float(np.abs(elsewhere).max()) * 2.0):
        objections.append(f"coordinates would be known only to ±{uncertain:.2g}")
    if not objections:
        other = _last(part, theta, np.clip(elsewhere, -theta, theta), steps=50)
        if float((w - other) @ found.G @ (w - other)) > 0.5 * d * unit:
            objections.append("another start ends at a different vector")
    return objections


def _polish(problem: Additive, theta: Array, w: Array, method: str, steps: int) -> Array:
    """A few Gauss–Newton steps on all rows; gradient methods keep what the paper's iteration gave."""
    return _last(problem, theta, w, steps) if method == "gauss-newton" else w


def _last(problem: Additive, theta: Array, w: Array, steps: int) -> Array:
    """Where Gauss–Newton is after at most so many steps from w."""
    for iterate in islice(gauss_newton(problem, w, theta), steps + 1):
        w = iterate.w
    return w


def size(problem: Additive, w: Array) -> float:
    """Size of the sum Σ|a||w + x| on up to 256 rows: the unit in which rounding is measured."""
    return float(np.sqrt(np.mean((np.abs(problem.X[:256] + w) @ np.abs(problem.a)) ** 2)))


def _blind(part: Additive, w: Array) -> str:
    count = part.sums(w).M1
    never = np.flatnonzero((count == 0) | (count == part.n))
    if never.size == 0:
        return "The rows leave some combination of coordinates free (columns of X may repeat or be dependent)."
    shown = ", ".join(map(str, never[:10])) + (", …" if never.size > 10 else "")
    return (
        f"w + x never changes sign in {never.size} of {part.d} columns ({shown}): each adds nothing or "
        "a constant to y, so these coordinates cannot be told apart."
    )


def _twins(problem: Additive) -> tuple[str, ...]:
    """A note on pairs of equal columns with equal weights: swapping their coordinates changes nothing."""
    head = np.vstack([problem.X[:64], problem.a])
    _, first, inverse = np.unique(head, axis=1, return_index=True, return_inverse=True)
    twin = np.flatnonzero(first[inverse.ravel()] != np.arange(problem.d))
    pairs = [(int(first[inverse.ravel()[k]]), int(k)) for k in twin]
    pairs = [(j, k) for j, k in pairs if np.array_equal(problem.X[:, j], problem.X[:, k])]
    return tuple(f"columns {j} and {k} of X are equal: their coordinates may be swapped" for j, k in pairs[:5])


def _at_bound(w: Array, theta: Array) -> tuple[str, ...]:
    edge = np.flatnonzero(np.abs(w) >= theta)
    return (f"{edge.size} coordinates sit at the bound: it may be too small",) if edge.size else ()
