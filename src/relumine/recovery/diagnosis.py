"""Why a network was not recovered: what the rows themselves show. The first diagnosis that fits is the failure's first
sentence.

A diagnosis is a function of :class:`Failure` (rows, width asked for, what was found) that returns its words, or None;
:data:`DIAGNOSES` lists them in the order in which they are asked. None of them changes the status.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from relumine.arrays import Array
from relumine.data.sources import Samples
from relumine.recovery.order import independent_rows
from relumine.recovery.otherwise import BETTER, RATHER, Otherwise, classes, otherwise, probabilities, steps
from relumine.results import Cause, Diagnosis, Recovery, Status, counted

_NEEDED, _HOPE = 5, 2.5  # numbers per parameter that find a network at once, and below which none is found as a rule
_LATTICE = 8  # different values of an input up to which kinks between them are not seen
_OFF = 8.0  # robust standard deviations: 1 row in 10¹⁵ of a Gaussian
_OFF_SHARE, _CARRIED = 0.05, 0.5  # at most so many rows are outliers, and they carry so much of the squares
# times where 95 % of a column are: of 1000 rows one is beyond in 40 % of Cauchy columns, in 4 % of log-normal ones
# (σ = 2)
_FAR = 100.0
_APPROXIMATION = 0.9  # R² on unseen rows from which a network that is not *the* network is worth keeping
_SAME = 1e-9  # 1 − R² from which the rows are explained, and only which network explains them is open
_SLOW = 0.5  # of the rows, up to which those that are independent are too few because of their order
_RUNNING = 20  # rows from which whole numbers one after the other are no accident
_CALLED_ID = re.compile(r"(^|[\W_])(?i:id|key|index|uuid)$|[a-z]I[dD]$")  # how columns of such numbers are called


@dataclass(frozen=True)
class Failure:
    """What a diagnosis may look at: rows ``X`` (n, d) and ``Y`` (n, q), the ``width`` asked for, and what was found.

    ``names`` of the inputs, if they have any; ``kept`` (d,): their numbers among the user's columns, if some were left
    out.
    """

    X: Array
    Y: Array
    width: int | None
    found: Recovery
    names: tuple[str, ...] | None = None
    kept: Sequence[int] = ()

    def column(self, j: int) -> str:
        """Input j as the user calls it."""
        return _column(self.kept[j] if len(self.kept) else j, None if self.names is None else self.names[j])

    @property
    def numbers(self) -> int:
        """Values of y."""
        return int(self.Y.size)

    def parameters(self, width: int) -> int:
        """Those of a network of so many units, without the affine part (``Network.parameters``)."""
        d, q = self.X.shape[1], self.Y.shape[1]
        return int(width * (d + q + (self.found.network.activation.homogeneity is None)))

    @property
    def affine(self) -> int:
        """Parameters of an affine part, which is fitted with the units."""
        return int((self.X.shape[1] + 1) * self.Y.shape[1])

    @cached_property
    def residual(self) -> Array:
        """What the network leaves of each row, (n,), over the spread of its output."""
        spread = self.Y.std(axis=0)
        left = (self.Y - self.found.network(self.X).reshape(self.Y.shape)) / np.where(spread > 0.0, spread, 1.0)
        return np.asarray(np.abs(left).max(axis=1))

    @cached_property
    def otherwise(self) -> Otherwise | None:
        """Another explanation of the rows, if there is a better one; a run that was stopped has no time to look."""
        if self.found.status is Status.INTERRUPTED:
            return None
        return otherwise(Samples(self.X, self.Y), self.found.network.activation, RATHER)

    def explained_by(self, cause: Cause, better: float = BETTER) -> float:
        """How many times less that explanation leaves; 0 if it is not so many times better, or not the best one."""
        other = self.otherwise
        return other.times if other is not None and other.cause is cause and other.times > better else 0.0

    @property
    def r2(self) -> float:
        """R² on rows never used in the fit; NaN if there were none."""
        return 1.0 - self.found.certificate.residual**2


Words = tuple[str, str]  # what it is, and what to do


def diagnosed(found: Recovery, rows: Samples, width: int | None, kept: Sequence[int] = ()) -> Recovery:
    """The failure with its diagnosis as the first sentence, and with the approximation it offers, if it is a good one.

    ``kept`` (d,): the numbers of the inputs among the user's columns, if some were left out.

    Examples
    --------
    >>> import relumine as rl
    >>> X = np.random.default_rng(0).normal(size=(50, 8))
    >>> found = rl.recover(X, np.abs(X[:, 0]) + X[:, 1] ** 2, width=8, rng=0, on_failure="return")
    >>> found.diagnosis.cause.name, found.message.split(": ")[0]
    ('TOO_FEW_ROWS', '50 rows cannot show 8 hidden units of 8 inputs')
    """
    failure = Failure(rows.X, rows.Y, width, found, rows.names, kept)
    for cause, ask in DIAGNOSES:
        words = ask(failure)
        if words is not None:
            offer = "" if cause is Cause.NEARLY else _offer(failure)
            message = " ".join(part for part in (words[0], found.message, offer) if part)
            return replace(found, diagnosis=Diagnosis(cause, *words), message=message)
    return found


def doubted(found: Recovery, rows: Samples, kept: Sequence[int] = ()) -> Recovery:
    """A success, with a sentence on what may be wrong with the rows, if anything may.

    Of a network up to noise: the few rows that most of that noise comes from, or whose inputs are unlike all others.
    Of one without units: a column that is a copy of the target.

    Examples
    --------
    >>> import relumine as rl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = X[:, 0] + rng.normal(size=300)
    >>> found = rl.recover(X, y, rng=0)
    >>> y[::30] += 1000.0
    >>> doubted(found, Samples(X, y)).message.partition(" of 300")[0][-14:]
    'But in 10 rows'
    """
    success = Failure(rows.X, rows.Y, None, found, rows.names, kept)
    words = (_wrong_inputs(success) or _outliers(success)) if found.status is Status.NOISY else None
    if words is not None:
        return replace(found, message=f"{found.message} But i{words[0].removeprefix('I')} {words[1]}")
    copied = _copied(success) if found.status is Status.EXACT and not found.network.m else ""
    return replace(found, message=f"{copied} {found.message}") if copied else found


def _copied(success: Failure) -> str:
    """A column that is, but for a factor and a constant, the target: rarely meant as an input beside others."""
    slopes = np.abs(np.atleast_2d(success.found.network.v)) * success.X.std(axis=0)
    largest = slopes.max(axis=0)
    j = int(np.argmax(largest))
    if success.Y.shape[1] > 1 or len(largest) < 2 or not 1e-9 * largest[j] > np.delete(largest, j).max():
        return ""
    called, left_out = success.column(j), "" if success.names is None else f": ignore=[{success.names[j]!r}]"
    factor = float(np.ravel(success.found.network.v)[j])
    return f"C{called[1:]} times {factor:.4g}, plus a constant, is the target. If it is a copy, leave it out{left_out}."


def _offer(failure: Failure) -> str:
    """A network that explains nearly all of y is worth keeping, whatever it is not."""
    if not failure.found.network.m or not failure.r2 >= _APPROXIMATION:
        return ""
    return f"As an approximation it has {_score(failure)}."


def _score(failure: Failure) -> str:
    """R² with as many digits as tell it from 1."""
    left = 1.0 - failure.r2
    digits = 4 if left <= 0.0 else min(max(4, 1 - int(np.floor(np.log10(left)))), 12)
    return f"R² = {failure.r2:.{digits}f} on {counted(failure.found.certificate.rows, 'row')} it never saw"


# -- the diagnoses ------------------------------------------------------------------------------------------------


def _few_possible_rows(failure: Failure) -> Words | None:
    values = [np.unique(column).size for column in failure.X.T]
    if max(values) > _LATTICE or len(failure.X) <= 2 * _LATTICE:
        return None
    possible, here = prod(values), len(np.unique(failure.X, axis=0))
    kind = "0 or 1" if set(np.unique(failure.X)) <= {0.0, 1.0} else f"one of at most {max(values)} values"
    return (
        f"Each input is {kind}, so only {possible:,} different rows are possible, and {here:,} of them are here.",
        "More rows of this kind show nothing new: what the network does between these values is never seen. If the "
        "source can be asked anywhere, ask between them (relumine.extract does); to predict rows of this kind, use "
        "relumine.estimators.TwoLayerRegressor.",
    )


def _classes(failure: Failure) -> Words | None:
    values = classes(failure.Y)
    if not values:
        return None
    listed = " and ".join(f"{value:g}" for value in np.unique(failure.Y)) if values == 2 else ""
    which = f"only two values ({listed})" if failure.Y.shape[1] == 1 and values == 2 else f"only {values} values"
    several = values > 2 and np.array_equal(failure.Y, np.rint(failure.Y))
    return (
        f"There are {which} in the target, and classes do not show the network behind them.",
        "Use the scores of the classifier as the target, or its probabilities with link='logit'; to learn classes from "
        "rows, use a classifier."
        + (" If these are counts or ratings, relumine.estimators.TwoLayerRegressor predicts them." if several else ""),
    )


def _steps(failure: Failure) -> Words | None:
    values = steps(Samples(failure.X, failure.Y))
    if not values:
        return None
    return (
        f"The target takes only {values:,} different values in {len(failure.Y):,} rows: it is constant in pieces, as "
        "the output of a decision tree is, and a network is not.",
        "If there is a score behind these values that varies continuously, use that as the target; to predict rows of "
        "this kind, use decision trees (random forests, gradient boosting).",
    )


def _too_few_rows(failure: Failure) -> Words | None:
    return _short_of_rows(failure, 2 if failure.width is None else failure.width)


def _too_few_rows_for_what_was_found(failure: Failure) -> Words | None:
    """With the width left open, what was found may be all that so few rows can show."""
    return _short_of_rows(failure, failure.found.network.m) if failure.width is None else None


def _short_of_rows(failure: Failure, width: int) -> Words | None:
    p, (n, d) = failure.parameters(width) + failure.affine, failure.X.shape
    if not width or failure.numbers >= _HOPE * p:
        return None
    even = "even " if failure.width is None and width <= 2 else ""
    needed = -(-_NEEDED * p // failure.Y.shape[1])
    units = max(int((failure.numbers / _NEEDED - failure.affine) / failure.parameters(1)), 0)
    smaller = "use fewer inputs" if failure.width is None else "ask for a smaller width="
    smaller += f" (at most {units})" if units and failure.width is not None else ""
    return (
        f"{counted(n, 'row')} cannot show {even}{counted(width, 'hidden unit')} of {counted(d, 'input')}: those have "
        f"{failure.parameters(width):,} parameters, and the linear part {failure.affine:,} more.",
        f"Collect about {needed:,} rows ({_NEEDED} numbers for each parameter), or {smaller}.",
    )


def _series(f: Failure) -> Words | None:
    if f.found.status is not Status.UNDERDETERMINED or independent_rows(f.X, f.Y) >= _SLOW * len(f.X):
        return None
    return (
        "The inputs change slowly from row to row, as in a series.",
        "Take rows further apart in time, or more of them. If they are only sorted, shuffle them.",
    )


def _probabilities(failure: Failure) -> Words | None:
    if not (whole := probabilities(failure.Y)):
        return None
    divide = "Divide them by 100 and try" if whole > 1.0 else "Try"
    between = f"Every value of the target lies between 0 and {whole:g}"
    if failure.Y.shape[1] > 1:
        return (
            f"{between}, and those of a row add up to {whole:g}.",
            f"{divide} link='softmax': the network is then looked for behind the softmax.",
        )
    if not (times := failure.explained_by(Cause.PROBABILITIES)):
        return None
    return (
        f"{between}, and behind the logistic function as many units leave {_times(times)} less of it unexplained.",
        f"{divide} link='logit': the network is then looked for behind the logistic function.",
    )


def _wrong_inputs(failure: Failure) -> Words | None:
    """Entries far beyond the others of their column: a comma forgotten, or a number that stands for "missing"."""
    for j, column in enumerate(failure.X.T):
        away = np.abs(column - np.median(column))
        off = np.flatnonzero(away > _FAR * np.quantile(away, 1.0 - _OFF_SHARE))
        if not 1 <= off.size <= _OFF_SHARE * len(column) or not np.quantile(away, 1.0 - _OFF_SHARE) > 0.0:
            continue
        others = np.delete(column, off)
        called = failure.column(j)
        same = np.unique(column[off]).size == 1
        entry = f"{column[off[0]]:g}" if same else f"up to {column[off[np.argmax(away[off])]]:g}"
        return (
            f"In {counted(off.size, 'row')} of {len(column)} {called} is {entry}, and in all others between "
            f"{others.min():.3g} and {others.max():.3g}: {'row' if off.size == 1 else 'rows'} {_numbered(off)}.",
            "If such an entry stands for a missing value, leave its cell empty and use impute='median' or "
            "bad_rows='skip'; if it is wrong, repair it.",
        )
    return None


def _numbered(rows: NDArray[np.intp], most: int = 8) -> str:
    """The numbers of some rows, and how to find them in a file."""
    more = "" if rows.size <= most else f" and {rows.size - most} more"
    listed = ", ".join(str(i) for i in np.sort(rows[:most]))
    return f"{listed}{more}, counted from 0 (in a file with a header, add 2 for the line)"


def _outliers(failure: Failure) -> Words | None:
    left = failure.residual
    usual = 1.4826 * float(np.median(left))
    off = np.flatnonzero(left > _OFF * max(usual, 1e-12))
    if not 1 <= off.size <= _OFF_SHARE * len(left) or (left[off] ** 2).sum() < _CARRIED * (left**2).sum():
        return None
    if failure.found.search.wider is not None and _on_one_side(failure.X, off):
        return None  # a unit is missing that is on there
    if _side_by_side(failure.X, off):
        return None  # something happens there that the network does not explain
    worst = off[np.argsort(-left[off], kind="stable")]
    return (
        f"In {counted(off.size, 'row')} of {len(left)} the network is off by up to {left[worst[0]]:.3g} of the spread "
        f"of y, while half of the rows are within {float(np.median(left)):.2g}: "
        f"{'row' if off.size == 1 else 'rows'} {_numbered(worst)}.",
        "Look at these rows; repair them or leave them out, and run again.",
    )


def _on_one_side(X: Array, off: NDArray[np.intp]) -> bool:
    """Whether these rows, more than there are inputs, are at one end of all rows along some direction.

    The direction is that from the mean of all rows to theirs, in white coordinates. Wrong entries are anywhere.
    """
    if off.size <= X.shape[1]:
        return False  # so few are at one end as a rule
    Z = X - X.mean(axis=0)
    along = Z @ np.linalg.lstsq(Z.T @ Z, Z[off].mean(axis=0), rcond=None)[0]
    return float(np.mean(along > along[off].min())) <= 2.0 * _OFF_SHARE


def _side_by_side(X: Array, off: NDArray[np.intp]) -> bool:
    """Whether these rows lie next to each other more often than rows at random would: wrong entries are anywhere.

    Of k rows out of n, k²/n or so have another one of them as their nearest row by chance. Five standard deviations
    more are none.
    """
    n, spread = len(X), X.std(axis=0)
    Z = X / np.where(spread > 0.0, spread, 1.0)
    near = np.asarray(KDTree(Z).query(Z[off], 2)[1])
    beside = np.isin(np.where(near[:, 1] == off, near[:, 0], near[:, 1]), off).sum()
    expected = off.size**2 / n
    return bool(beside > expected + 5.0 * np.sqrt(expected + 1.0))


def _smooth(failure: Failure) -> Words | None:
    if not (times := failure.explained_by(Cause.SMOOTH)):
        return None
    return (
        f"The target has no kinks, as ReLU units would give it: as many tanh units leave {_times(times)} less of it "
        "unexplained.",
        _SMOOTH,
    )


def _rather_smooth(failure: Failure) -> Words | None:
    """Noise hides how much better a smooth explanation is; asked where nothing else was found."""
    if not (times := failure.explained_by(Cause.SMOOTH, RATHER)):
        return None
    return (
        f"The target looks smooth, without the kinks of ReLU units: as many tanh units leave {_times(times)} less of "
        "it unexplained.",
        _SMOOTH,
    )


_SMOOTH = (
    "Try activation='tanh' (or 'gelu', 'sigmoid'). If it is no network at all, relumine.estimators.TwoLayerRegressor "
    "approximates it."
)


def _times(ratio: float) -> str:
    return f"{ratio:.{int(ratio < 10.0)}f} times" if ratio < 1000.0 else "more than 1000 times"


def _running_number(failure: Failure) -> Words | None:
    found = running_numbers(failure.X, failure.names, failure.kept)
    return None if not found else (f"{found[0]}, and was used as an input.", found[1])


def _too_narrow(failure: Failure) -> Words | None:
    wider = failure.found.search.wider
    if failure.width is None or wider is None:
        return None
    return (
        f"{counted(failure.width, 'unit')} cannot explain these rows.",
        "Ask for a larger width=, or leave it out: the width is then found, too.",
    )


def _few_valued_input(failure: Failure) -> Words | None:
    """Every row is explained, and what cannot be told is what the network does between the values of an input."""
    if failure.found.status is not Status.AMBIGUOUS:
        return None
    values = [np.unique(column).size for column in failure.X.T]
    few = [j for j, count in enumerate(values) if 2 < count <= _LATTICE]
    if not few or not 1.0 - failure.r2 <= _SAME:
        return None
    j, names = few[0], failure.names
    called = failure.column(j)
    how = "" if names is None else f" (ignore=[{names[j]!r}])"
    return (
        f"Every row is explained, but {called} takes only {values[j]} values, and what the network does between them "
        "does not show.",
        "If its values are categories, replace them by words and use one_hot=True; if it does not matter, leave it "
        f"out{how}; otherwise collect rows in which it varies.",
    )


def _nearly(failure: Failure) -> Words | None:
    if not _offer(failure) or (failure.found.status is Status.AMBIGUOUS and 1.0 - failure.r2 < _SAME):
        return None
    link = "if these are probabilities, link='logit'; otherwise " if probabilities(failure.Y) else ""
    return (
        f"The best network has {_score(failure)}, but it is not the network behind them.",
        f"As an approximation it may be good enough. For the network itself try {link}more rows, a larger width= or "
        "another activation=. If it may have several hidden layers and can be asked, use relumine.extract.",
    )


DIAGNOSES: tuple[tuple[Cause, Callable[[Failure], Words | None]], ...] = (
    (Cause.FEW_POSSIBLE_ROWS, _few_possible_rows),
    (Cause.CLASSES, _classes),
    (Cause.STEPS, _steps),
    (Cause.TOO_FEW_ROWS, _too_few_rows),
    (Cause.SERIES, _series),
    (Cause.PROBABILITIES, _probabilities),
    (Cause.OUTLIERS, _wrong_inputs),
    (Cause.OUTLIERS, _outliers),
    (Cause.SMOOTH, _smooth),
    (Cause.RUNNING_NUMBER, _running_number),
    (Cause.TOO_NARROW, _too_narrow),
    (Cause.FEW_VALUES, _few_valued_input),
    (Cause.SMOOTH, _rather_smooth),
    (Cause.NEARLY, _nearly),
    (Cause.TOO_FEW_ROWS, _too_few_rows_for_what_was_found),
)


def _column(j: int, name: str | None) -> str:
    return f"column {j}" if name is None else f"column {name!r}"


def running_numbers(X: Array, names: tuple[str, ...] | None, kept: Sequence[int] = ()) -> tuple[str, str] | None:
    """The input that numbers the rows, in a clause, and what to do about it; None if there is none.

    Whole numbers, each one more than the last in nine rows of ten, or all numbers of a range in any order; or one for
    each row in a column that is called an id. The only input of a problem is no such column: it is what the target
    depends on.
    """
    n, d = X.shape
    if n < _RUNNING or d < 2:
        return None
    for j in range(d):
        column = X[:, j]
        if not np.array_equal(column, np.rint(column)):
            continue
        steps = np.diff(column)
        in_order = bool((steps > 0.0).all()) and float(np.mean(steps == 1.0)) >= 0.9
        all_different = np.unique(column).size == n
        a_range = all_different and float(np.ptp(column)) == n - 1
        an_id = all_different and names is not None and _CALLED_ID.search(names[j].strip()) is not None
        if in_order or a_range or an_id:
            called = _column(kept[j] if len(kept) else j, None if names is None else names[j])
            what = "is a running number" if in_order or a_range else "looks like an id, different in every row"
            how = "" if names is None else f": ignore=[{names[j]!r}]"
            return f"{called} {what}", f"If it only numbers the rows, leave it out{how}."
    return None
