"""`TwoLayerRegressor`: exact where the data are, regularised where they are noisy and few."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

try:
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
except ImportError as error:  # pragma: no cover
    raise ImportError("relumine.estimators needs scikit-learn: pip install 'relumine[sklearn]'") from error

from relumine import activations
from relumine.data.moments import MomentSums, features_needed
from relumine.data.sources import Samples
from relumine.estimators.regularised import RIDGES, Choice, affine_fit, average, choose, fit_units
from relumine.fit.parallel import Crew, cores
from relumine.network import Network
from relumine.papers.awasthi2021.algorithms import algorithm_6
from relumine.papers.awasthi2021.thresholds import Thresholds
from relumine.recovery.door import recover
from relumine.results import InvalidInput, Recovery

Array = NDArray[np.float64]

__all__ = ["TwoLayerRegressor"]

_ORDER = 4  # of the moments that partial_fit sums
_LARGEST = 1e100
_EXACT = 1e-6  # validated error, over the variance of y, below which the data may be a network's


class TwoLayerRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc,unused-ignore]
    """A regressor with one hidden layer: y ≈ Σ_i a_i σ(w_i·x + b_i) + v·x + c.

    Data that come from a network are recovered exactly. Other data are fitted by regularised least squares: the number
    of units and the strength of a ridge on their output weights are chosen by three-fold validation among a few, ridge
    regression without units included, and the mean of ``members`` networks from different starts is returned as one.

    Parameters
    ----------
    width : int, optional
        Units of each member; chosen when None.
    activation : str or Activation, default "relu"
    alpha : float, optional
        Strength of the ridge, relative to the mean square of a unit's values; chosen when None.
    members : int, default 5
        Networks averaged. Their units stand side by side in ``network_``.
    exact : bool, default True
        Whether to try exact recovery where the data look like a network's.
    init : Network, optional
        Start from the units of this network instead of at random (one member, its width).
    warm_start : bool, default False
        Start from the network of the last fit.
    random_state : int, RandomState or None

    Attributes
    ----------
    network_ : Network
    recovery_ : Recovery or None
        The exact recovery, if there was one.
    alpha_ : float
        The strength used.
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
        init: Network | None = None,
        warm_start: bool = False,
        random_state: Any = None,
    ) -> None:
        self.width = width
        self.activation = activation
        self.alpha = alpha
        self.members = members
        self.exact = exact
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
        weight = None
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            if (weight > 0.0).sum() < 2:
                raise InvalidInput("sample_weight leaves fewer than two rows")
            X, y, weight = X[weight > 0.0], y[weight > 0.0], weight[weight > 0.0]
        for name, values in (("X", X), ("y", y)):
            if np.abs(values).max() > _LARGEST:
                raise InvalidInput(
                    f"{name} has values beyond {_LARGEST:g}, whose squares overflow; divide {name} first"
                )
        samples = Samples(np.ascontiguousarray(X), y, weight)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        self._check()
        self.__dict__.pop("sums_", None)
        init = getattr(self, "network_", None) if self.warm_start else None
        init = self.init if init is None else init
        if init is not None and init.d != X.shape[1]:
            raise InvalidInput(f"init has {init.d} inputs, and X has {X.shape[1]} columns")
        with cores() as crew:
            self._fit(samples, init, rng, crew)
        return self

    def _fit(self, samples: Samples, init: Network | None, rng: np.random.Generator, crew: Crew) -> None:
        sigma = activations.get(self.activation if init is None else init.activation)
        width = self.width if init is None or not init.m else init.m
        choice = self._choice(samples, width, rng, init)
        self.recovery_ = self._exact(samples, choice, rng) if self.exact and init is None else None
        self.alpha_ = 0.0 if self.recovery_ is not None else choice.ridge
        if self.recovery_ is not None:
            self.network_ = self.recovery_.network
            return
        if choice.width == 0:
            net = affine_fit(samples, sigma, choice.ridge)
        else:
            # from random directions by way of stronger ridges; from given ones not, or they would be forgotten
            path = (*(r for r in RIDGES if r > choice.ridge and init is None), choice.ridge)
            members = 1 if init is not None else self.members
            ends = [
                [*fit_units(samples, sigma, choice.width, path, np.random.default_rng([k, member]), init, crew)][-1]
                for member, k in enumerate(rng.integers(2**31, size=members))
            ]
            net = average(ends)
        self.network_ = net if samples.y.ndim == 2 else Network(net.W, net.b, net.a[0], sigma, net.v[0], net.c[0])

    def _choice(self, samples: Samples, width: int | None, rng: np.random.Generator, init: Network | None) -> Choice:
        if width is not None and self.alpha is not None:
            return Choice(width, float(self.alpha), float("nan"))
        choice = choose(
            samples, activations.get(self.activation if init is None else init.activation), width, rng, init
        )
        return choice if self.alpha is None else Choice(choice.width, float(self.alpha), choice.error)

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

    def _check(self) -> None:
        for name, value, least in (("width", self.width, 0), ("members", self.members, 1)):
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if value is not None and (not whole or value < least):
                raise InvalidInput(f"{name} must be a whole number, at least {least}; got {value!r}")
        if self.alpha is not None:
            number = isinstance(self.alpha, int | float | np.number) and not isinstance(self.alpha, bool)
            if not number or not 0.0 <= self.alpha < float("inf"):
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
        self.recovery_, self.alpha_ = None, 0.0
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

    def predict(self, X: Any) -> Array:
        """Values of the network at the rows of X: (n,) or (n, q)."""
        check_is_fitted(self, "network_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self.network_(X)
