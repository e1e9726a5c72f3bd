"""The width, where it is not given: fits of doubling width, pruned to the width the evidence names, and rounds there.

Of a given width :meth:`~relumine.recovery.search.Search.at_width` is all there is. Where the width is open, a wide
student shows how many units pay for themselves: exact data at one width and not at the next smaller one, noisy data
where the BIC is least. At few samples the students stick, and the width they name is too small; so after some rounds
without an exact fit the width changes.
"""

from __future__ import annotations

import time
from functools import partial
from math import ceil, log

from relumine.fit.levenberg import Fit
from relumine.fit.prune import SEARCH, path
from relumine.recovery.search import BEATEN, USUAL, Search
from relumine.recovery.spare import without_spare_units
from relumine.results import Stage, WidthEvidence

# Rounds at one width: 60 rounds at 7 or 8 units did not find 10, while students of 11 fell to 1e-4.
# So the width changes, at most so many times; to a quarter more units where the evidence names the same width again.
_OPEN, _TURNS, _WIDER = 20, 3, 1.25
_WIDE = 16  # units from which a student that did not collapse is reason to ask for another explanation
# Units from which a slow fall of the loss ends the search: twice as many leave more than this share of it. Planted
# networks of k … 2k units left at most 0.35 at k, 2k … 4k units 0.49 … 0.68 (d = 2 … 20, m = 30 … 200); two hidden
# layers 0.5 … 0.7, trees 0.9, a maximum 0.7. Then four times the units are needed: numbers times parameters squared
# that are affordable are ten seconds.
_TOLD, _SLOW, _DEAR = 64, 0.4, 5e10
# Numbers for each parameter below which students stick. With as many units as the network they leave 0.02 … 0.05 at
# three, with fewer more than this: 32 units of (50,50) at n/p = 4 left 0.15, more than their BIC allows after 16.
_FEW, _NARROW = 6.0, 0.1
_PAST = 5  # widths in a row, below the best one, that must be worse before smaller ones are not looked at
_STRIDE = 16  # share of the units left out between two widths that are looked at; below so many, one at a time
# The same where there are far more rows than needed, and the share of what a unit adds to the BIC that two more steps
# must bring there: of 20 000 rows of Friedman's function with noise 25 widths took 13 s, and with this 16 take 5 s. The
# loss at twelve units was the same to a thousandth.
_STRIDE_OF_MANY, _SETTLED = 8, 0.1


def best_fit(search: Search, width: int | None) -> Fit:
    """The best fit of that width, or of any; if the run ends before, the best so far."""
    if not search.task.bent.any() or width == 0:
        return search.affine()
    fit = _any_width(search) if width is None else search.at_width(width)
    if search.tied:
        search.notes.append("other networks fit about as well: standard errors describe the neighbourhood of this one")
    return fit or search.best or search.fallback or search.affine()


def _any_width(search: Search) -> Fit | None:
    """Students of doubling width until one collapses (exact data) or stops paying for itself (noise)."""
    widest = search.task.widest(0.7)
    k, last, rises, students = min(4, max(widest, 1)), float("inf"), 0, list[Fit]()
    while True:
        fit = _student(search, k)
        if search.over():
            return search.best
        if fit.loss <= SEARCH.tol:
            exact = _walk(search, fit)
            if exact is not None or search.interrupted:
                return exact
        students.append(fit)
        if k >= _WIDE and search.starts <= USUAL and search.otherwise:
            return _approximation(search, fit)
        if search.bic(fit) < last and search.starts <= USUAL and _too_wide(search, students):
            return _given_up(search, *students[-2:])
        rises = rises + 1 if search.bic(fit) > last else 0
        if k >= widest or rises > _may_be_wider(search, fit):
            break
        k, last = min(2 * k, widest), search.bic(fit)
    # where few rows are left for each parameter, students stick, and another one may lead to a better network
    for fit in students[-1:] if search.plenty(k) else students[-2:]:
        _walk(search, fit)
    if search.interrupted:
        return search.best
    search.fallback = search.best
    width = min(search.evidence.values(), key=lambda e: e.bic).width
    search.best, search.agreeing = None, 0
    if not width:
        return search.affine()
    return _in_turn(search, width, widest)


def _student(search: Search, k: int) -> Fit:
    """A student of k units; the better of two where the first did not collapse, unless twice as many units will."""
    first = search.student(k, k, schedule=SEARCH)
    if first.loss <= SEARCH.tol or search.over() or (k > _WIDE and search.plenty(2 * k)):
        return first
    return min(first, search.student(k, k, schedule=SEARCH), key=lambda fit: fit.loss)


def _may_be_wider(search: Search, fit: Fit) -> bool:
    """Whether one rise of the BIC tells nothing yet: few numbers for each parameter, and much is left."""
    return fit.loss > _NARROW and search.task.values < _FEW * search.task.parameters(2 * len(fit.at.U))


def _too_wide(search: Search, students: list[Fit]) -> bool:
    """Whether the loss falls so slowly that no network of up to twice the units is there, and more would be dear."""
    k = len(students[-1].at.U)
    if k < _TOLD or students[-1].loss <= _SLOW * students[-2].loss:
        return False
    p = search.task.parameters(4 * k)
    return search.needed(4 * k) * float(p) ** 2 > _DEAR


def _given_up(search: Search, narrow: Fit, fit: Fit) -> Fit:
    """The last student, as an approximation, with a note on what was not looked for."""
    k = len(fit.at.U)
    search.notes.append(
        f"the search ended early: {k // 2} units leave {narrow.loss:.2g} of what the affine fit leaves and {k} units "
        f"{fit.loss:.2g}, so a network of at most {2 * k} units is unlikely; width= looks for a wider one"
    )
    search.hopeless, search.agreeing, search.best = True, 0, fit
    return fit


def _in_turn(search: Search, width: int, widest: int) -> Fit | None:
    """Some rounds at one width, then at the next, until a fit is exact or nothing explains more; the best of them.

    A student that explains more than the fits of its width is walked down like the first ones, and the evidence
    names another width; or it names the same, which then had a few units too few.
    """
    ends: list[tuple[float, int, Fit]] = []
    for _ in range(_TURNS):
        search.best, search.agreeing, search.hopeless = None, 0, False
        found = search.at_width(width, _OPEN)
        if found is None or search.over() or search.is_exact(found):
            return found
        ends.append((search.bic(found), search.agreeing, found))
        student = None if search.rival(found) is None else search.fallback
        few = search.rounds_that_tell(width, _OPEN + 1) > _OPEN
        if (student is None and not (search.hopeless and few)) or search.otherwise:
            break
        search.hopeless = True
        exact = None if student is None else _walk(search, student)
        if exact is not None or search.interrupted:
            return exact or search.best
        named = min(search.evidence.values(), key=lambda e: e.bic).width
        width = named if named != width else min(ceil(_WIDER * width), widest)
    least, search.agreeing, search.best = min(ends, key=lambda end: end[0])
    if search.hopeless and search.walked is not None and search.bic(search.walked) < least:
        search.best, search.agreeing = search.walked, 0
    return search.best


def _approximation(search: Search, fit: Fit) -> Fit:
    """Of a target that is no network: the width that pays for itself, without further starts."""
    _walk(search, fit)
    search.hopeless, search.agreeing = True, 0
    search.best = search.walked or fit
    return search.best


def _walk(search: Search, fit: Fit) -> Fit | None:
    """Down the path of widths, noting the evidence; the smallest exact fit, if there is one."""
    began = time.perf_counter()
    fits = None if search.over() else _widths(search, fit)
    if fits is None:
        search.interrupted = True
        return None
    exact = [width for width, found in fits.items() if search.is_exact(found)]
    if exact:  # the path takes several units at a time, and may have passed the smallest
        least = without_spare_units(search.task, fits[min(exact)], search.run.unhurried())
        fits[len(least.at.U)] = least
        exact.append(len(least.at.U))
    search.stages.append(Stage("widths", time.perf_counter() - began, None, f"tried {min(fits)}…{max(fits)} units"))
    for width, found in fits.items():
        entry = WidthEvidence(width, found.loss, search.bic(found))
        if width not in search.evidence or entry.loss < search.evidence[width].loss:
            search.evidence[width] = entry
        if search.best is None or found.loss < search.best.loss:
            search.best = found
        if search.walked is None or search.bic(found) < search.bic(search.walked):
            search.walked = found
    if not exact:
        return None
    search.best = fits[min(exact)]
    return search.best


def _widths(search: Search, fit: Fit) -> dict[int, Fit] | None:
    """Fits of decreasing widths, with every width about the best one; None if the run ended on the way."""
    many = bool(search.some_rows(len(fit.at.U)))
    settled = _SETTLED * _price(search) if many else 1.0
    walk = partial(path, search.task.rows, search.task.shape, is_exact=search.is_exact, run=search.run, settled=settled)
    fits = walk(fit, enough=partial(_past_the_best, search), stride=_STRIDE_OF_MANY if many else _STRIDE)
    if fits is None or any(search.is_exact(found) for found in fits.values()):
        return fits
    best = min(fits, key=lambda width: search.bic(fits[width]))
    above = min((width for width in fits if width > best), default=best)
    below = max((width for width in fits if width < best), default=best)
    if above - below <= 2:
        return fits
    finer = walk(fits[above], enough=lambda found: min(found) <= below + 1)
    return None if finer is None else finer | fits


def _price(search: Search) -> float:
    """What a unit adds to the BIC."""
    return (search.task.parameters(1) - search.task.parameters(0)) * log(search.task.values)


def _past_the_best(search: Search, fits: dict[int, Fit]) -> bool:
    """Whether the last widths are all clearly worse than the best, which is a quarter of its units away."""
    bic = {width: search.bic(fit) for width, fit in fits.items()}
    best = min(bic, key=lambda width: bic[width])
    last = sorted(bic)[:_PAST]
    return last[0] <= best - max(_PAST, best // 4) and all(bic[width] > bic[best] + BEATEN for width in last)
