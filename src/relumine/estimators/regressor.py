"""`TwoLayerRegressor`: the exact network where the data come from one; else a regularised fit for noisy data."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np

try:
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
except ImportError as error:  # pragma: no cover
    raise ImportError("relumine.estimators needs scikit-learn: pip install scikit-learn") from error

from relumine import activations
from relumine.arguments import is_number, whole
from relumine.arrays import Array
from relumine.data.moments import MomentSums, features_needed
from relumine.data.sources import Samples
from relumine.estimators.choice import Choice, Cleaned, Numbers, Settled, choose, choose_without_outliers
from relumine.estimators.entries import Entries
from relumine.estimators.outliers import exceeded
from relumine.estimators.regularised import Problem, Reach, average
from relumine.fit.parallel import Crew, cores
from relumine.network import Network
from relumine.papers.awasthi2021.algorithms import algorithm_6
from relumine.papers.awasthi2021.thresholds import Thresholds
from relumine.recovery.door import recover
from relumine.results import InvalidInput, Recovery

_ORDER = 4  # of the moments that partial_fit sums
_LARGEST = 1e100  # squares of larger numbers overflow when they are summed
_STEPS = 10  # of least squares on all rows, from what the folds found, at most
_NAMED = 10  # of them in a warning
_EXACT = 1e-6  # validated error, over the variance of y, below which the data may be a network's


class TwoLayerRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc,unused-ignore]
    """A regressor with one hidden layer: y ≈ Σ_i a_i σ(w_i·x + b_i) + v·x + c.

    Data that come from a network are recovered exactly. Other data are fitted by regularised least squares: the number
    of units and the strength of a ridge on their output weights are chosen on rows set aside, ridge regression without
    units included, by a loss that a few wrong entries cannot dominate. Each fold starts from other random units; the
    ``members`` networks that they found are refitted to all rows, and their mean is returned as one network.
    Rows that do not belong to the others, or with an entry far beyond its column, are named in a warning and left out.

    Parameters
    ----------
    width : int, optional
        Units of each member; chosen when None.
    activation : str or Activation, default "relu"
    alpha : float, optional
        Strength of the ridge, relative to the mean square of a unit's values; chosen when None.
    members : int, default 5
        Networks averaged, and folds (at least three). Their units stand side by side in ``network_``.
    exact : bool, default True
        Whether to try exact recovery where the data look like a network's.
    robust : bool, default True
        Whether to leave out rows whose error lies far beyond the tail of the others' errors: at most three, or one in a
        thousand. More rows than that are a kind of row, and stay. And whether to leave out rows with an entry of x far
        beyond the tail of its column, and to replace such an entry of a new row by the nearest value that the row's
        other entries allow.
    init : Network, optional
        Start from the units of this network instead of at random (one member, its width).
    warm_start : bool, default False
        Start from the network of the last fit.
    random_state : int, RandomState or None

    Attributes
    ----------
    network_ : Network
    width_ : int
        Its units: 0 where none did better than an affine function on rows set aside.
    recovery_ : Recovery or None
        The exact recovery, if there was one.
    alpha_ : float
        The strength used.
    outliers_ : array of int
        Numbers of the rows that were left out.
    wrong_entries_ : array of int, (k, 2)
        Row and column of the entries of x far beyond their column; their rows were left out.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> X, y = make_friedman1(200, noise=1.0, random_state=0)
    >>> TwoLayerRegressor(width=8, random_state=0).fit(X[:150], y[:150]).score(X[150:], y[150:]) > 0.7
    True
    """

    def __init__(
        self,
        width: int | None = None,
        *,
        activation: Any = "relu",
        alpha: float | None = None,
        members: int = 5,
        exact: bool = True,
        robust: bool = True,
        init: Network | None = None,
        warm_start: bool = False,
        random_state: Any = None,
    ) -> None:
        self.width = width
        self.activation = activation
        self.alpha = alpha
        self.members = members
        self.exact = exact
        self.robust = robust
        self.init = init
        self.warm_start = warm_start
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    # -- fitting ---------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to X (n, d) and y (n,) or (n, q); weights of rows count as repetitions."""
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True, ensure_min_samples=2)
        y = np.asarray(y, dtype=np.float64)
        self._check()
        init = self._init(X.shape[1])
        weight, numbers = None, np.arange(len(X))
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            if (weight > 0.0).sum() < 2:
                raise InvalidInput("sample_weight leaves fewer than two rows")
            # scikit-learn asks that a row of weight zero is the same as no row
            numbers = np.flatnonzero(weight)
            X, y, weight = X[numbers], y[numbers], weight[numbers]
        for name, values in (("X", X), ("y", y)):
            if np.abs(values).max() > _LARGEST:
                raise InvalidInput(
                    f"{name} has values beyond {_LARGEST:g}, whose squares overflow; divide {name} first"
                )
        self._moves: list[Callable[[Array], Array]] = []
        out, wrong = np.zeros(0, np.intp), np.zeros((0, 2), np.intp)
        if self.robust:
            entries = Entries.of(X, weight)
            self._moves, wrong = [entries], np.argwhere(entries.wrong(X))
            self._say_entries(X, numbers, wrong)
            out = np.unique(wrong[:, 0])
        self.wrong_entries_ = np.column_stack([numbers[wrong[:, 0]], wrong[:, 1]])
        rest = np.delete(np.arange(len(numbers)), out)
        whole_rows = Cleaned.of(Samples(X, y, weight).at(rest), numbers[rest])
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        self.__dict__.pop("sums_", None)
        with cores() as crew:
            self._fit(whole_rows, init, rng, crew)
        return self

    def _fit(self, kept: Cleaned, init: Network | None, rng: np.random.Generator, crew: Crew) -> None:
        sigma = activations.get(self.activation if init is None else init.activation)
        asked = Settled(self.width, None if self.alpha is None else float(self.alpha), self.members, init)
        if self.robust:
            kept, choice = choose_without_outliers(kept, sigma, asked, rng)
        else:
            choice = choose(kept.samples, sigma, asked, rng)
        self._say(kept, choice)
        samples, self.outliers_, self._errors = kept.samples, kept.out, choice.errors
        self.recovery_ = self._exact(samples, choice, rng) if self.exact and init is None else None
        if self.recovery_ is not None:
            self.alpha_, self.network_, self._moves = 0.0, self.recovery_.network, []
            self._errors = np.abs(samples.Y - self.network_(samples.X).reshape(samples.Y.shape)), samples.weight
            return
        problem = Problem.of(samples, sigma, crew)
        # the best strength is a variance over a number of rows: it was chosen with fewer than there are
        fewer = choice.used / problem.rows.n if self.alpha is None and choice.width and choice.used else 1.0
        self.alpha_ = choice.ridge * min(fewer, 1.0)
        net = problem.affine(self.alpha_)
        if choice.width:
            starts = choice.starts[: self.members] if init is None else [init]
            net = average([[*problem.onward(start, [self.alpha_], _STEPS)][-1] for start in starts])
        self.network_ = net.plain() if samples.vector else net
        self._moves = [*self._moves, Reach.of(problem.white, samples.X)]

    def _say_entries(self, X: Array, numbers: Numbers, wrong: Numbers) -> None:
        """Warn about entries of x, at ``wrong`` (k, 2), that count as wrong."""
        if not len(wrong):
            return
        names = getattr(self, "feature_names_in_", np.arange(X.shape[1]))
        named = [f"{X[i, j]:g} in row {numbers[i]}, column {names[j]}" for i, j in wrong]
        warnings.warn(
            f"{len(named)} {'entry' if len(named) == 1 else 'entries'} of X far beyond the others of the column: "
            f"{'; '.join(named[:_NAMED])}{'; …' if len(named) > _NAMED else ''}. Such rows were left out of the fit; "
            "in new rows, what the other entries suggest is used instead. robust=False keeps them",
            stacklevel=3,
        )

    def _say(self, kept: Cleaned, choice: Choice) -> None:
        """Warn where there are no units, and about rows that were left out."""
        if not choice.width and self.width != 0:
            why = (
                f"{len(kept.samples.Y)} rows, of which copies count once, are too few to place units"
                if self.width or not choice.tried
                else "on rows set aside, no hidden unit made the predictions better"
            )
            asked = f"without the {self.width} units that were asked for" if self.width else "and width_ is 0"
            warnings.warn(f"{why}: the model is ridge regression, {asked}", stacklevel=4)
        if len(kept.out):
            named = [f"{row} ({times:.0f})" for row, times in zip(kept.out, kept.times)]
            rows = len(kept.numbers) + len(kept.out) + len(np.unique(self.wrong_entries_[:, 0]))
            warnings.warn(
                f"{len(kept.out)} of {rows} rows do not belong to the others and were "
                "left out of the fit. Their numbers, and how many times the usual error they are off: "
                f"{', '.join(named[:_NAMED])}{', …' if len(named) > _NAMED else ''}. outliers_ has all of them; "
                "robust=False keeps them",
                stacklevel=4,
            )

    def _exact(self, samples: Samples, choice: Choice, rng: np.random.Generator) -> Recovery | None:
        """Exact recovery, if the rows are enough and the units do well enough on rows set aside."""
        n, d = samples.X.shape
        known = self.width is not None and self.width > 0 and n >= 3 * self.width * (d + 1)
        if self.alpha is not None or not (choice.error < _EXACT or (known and choice.error < 0.3)):
            return None
        try:
            found = recover(
                samples.X,
                samples.y,
                self.width,
                activation=self.activation,
                sample_weight=samples.weight,
                rng=rng,
                starts=3,
                seconds=30.0,
                on_failure="return",
            )
        except InvalidInput:  # constant or dependent columns, which recovery refuses and a regressor must bear
            return None
        return found if found.status.value == "exact" else None

    def _init(self, d: int) -> Network | None:
        """The network to start from, of d inputs, if there is one: that of the last fit, or the user's."""
        init = getattr(self, "network_", None) if self.warm_start else None
        init = self.init if init is None else init
        if init is not None and not isinstance(init, Network):
            raise InvalidInput(f"init must be a relumine.Network to start from, or None; got {type(init).__name__}")
        if init is not None and init.d != d:
            raise InvalidInput(f"init has {init.d} inputs, and X has {d} columns")
        return init

    def _check(self) -> None:
        for name, value, least in (("width", self.width, 0), ("members", self.members, 1)):
            if value is not None:
                whole(name, value, least)
        if self.alpha is not None and not (is_number(self.alpha) and 0.0 <= self.alpha < float("inf")):
            raise InvalidInput(f"alpha must be a finite number ≥ 0 or None (choose it), got {self.alpha!r}")

    # -- the moment stage, in pieces -------------------------------------------------------------------------------

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Add rows to the sums of the moment stage, and take the network from their Hermite tensors.

        This is the tensor method of Awasthi et al. 2021 (its Algorithm 6) for ReLU units, up to ``width`` of them (the
        number of inputs when None), and nothing else: inputs must be standard Gaussian (scale them first), no least
        squares follows, and the result carries the sampling error of the moments. Rows may come in any pieces: the sums
        are the same. While there are too few rows for the moments, the network is the mean of y. :meth:`fit` starts
        anew.
        """
        first = not hasattr(self, "sums_")
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, reset=first, ensure_min_samples=1)
        self._check()
        if activations.get(self.activation) != activations.RELU:
            raise InvalidInput("partial_fit is for ReLU units; use fit")
        if first:
            kind: Literal["regressed", "plain"] = "regressed" if X.shape[1] <= 11 else "plain"
            features_needed(X.shape[1], _ORDER, kind)
            self.sums_ = MomentSums(X.shape[1], _ORDER, kind)
        self.sums_.add(np.ascontiguousarray(X), np.asarray(y, dtype=np.float64))
        self.recovery_, self.alpha_, self._moves, self._errors = None, 0.0, [], None
        self.network_ = self._from_moments()
        return self

    def _from_moments(self) -> Network:
        d = self.sums_.d
        mean = Network(np.zeros((0, d)), np.zeros(0), np.zeros(0), c=self.sums_.cross[0] / max(self.sums_.n, 1))
        try:
            moments = self.sums_.estimate()
        except InvalidInput:  # too few rows yet
            return mean
        eta = Thresholds.from_errors(moments.errors, d, 1)
        width = d if self.width is None else min(self.width, d)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        units = algorithm_6(moments.tensors, 1, width, eta, rng, errors=moments.errors)
        return units.network(moments.tensors)

    # -- predicting ------------------------------------------------------------------------------------------------

    @property
    def width_(self) -> int:
        """Units of the fitted network."""
        return int(self.network_.m)

    def predict(self, X: Any) -> Array:
        """Values of the network at the rows of X: (n,) or (n, q).

        Far from all rows that were seen a network goes on linearly, and a wrong entry in x could lead anywhere. So
        entries far beyond their column are replaced first (:class:`~relumine.estimators.entries.Entries`), and rows are
        moved to where rows were seen (:class:`~relumine.estimators.regularised.Reach`); rows that are there stay what
        they are. An exact network is right everywhere, and nothing is moved.
        """
        check_is_fitted(self, "network_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        for move in self._moves:
            X = move(X)
        return self.network_(X)

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[Array, Array]:
        """Lower and upper ends, each (n,) or (n, q), of intervals that hold a new y with probability ``level``.

        The prediction ± the ``level`` quantile of the errors that the folds made on rows they had not seen. A new row
        like those is covered at least so often on average (split conformal prediction; each output by itself); in
        regions with more noise than elsewhere it is covered less often. Folds are fitted to fewer rows than the model,
        so the intervals are rather wide than narrow.
        """
        check_is_fitted(self, "network_")
        if not 0.0 < level < 1.0:
            raise InvalidInput(f"level must lie between 0 and 1, got {level!r}")
        if self._errors is None:
            raise InvalidInput("there were too few rows to set some aside, so nothing is known about the errors")
        E, weight = self._errors
        n = float(len(E) if weight is None else weight.sum())
        if (share := 1.0 - level * (1.0 + 1.0 / n)) <= 0.0:
            raise InvalidInput(
                f"{n:g} rows are too few for intervals of level {level:g}; it must be below {n / (n + 1):.4g}"
            )
        half = np.array([exceeded(E[:, output], weight, share) for output in range(E.shape[1])])
        Y = self.predict(X)
        half = half[0] if Y.ndim == 1 else half
        return Y - half, Y + half
