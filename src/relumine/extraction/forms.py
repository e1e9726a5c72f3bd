"""What people have instead of a function of an (n, d) array: estimators, functions of one row, of named columns.

Each becomes such a function. A scikit-learn estimator is asked by its method; a pipeline's scaler is part of the box.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from relumine.arrays import Array
from relumine.results import InvalidInput, MissingPackage

_FEW = 8  # single rows tried: a unit that is on at half of them answers all alike once in a hundred times


def is_estimator(f: Any) -> bool:
    """Whether f is asked by a method ``predict`` (scikit-learn and what behaves like it)."""
    return not isinstance(f, type) and callable(getattr(f, "predict", None)) and not callable(f)


def is_keras(f: Any) -> bool:
    """Whether f is a Keras model: called like a function, and computed in single precision."""
    return type(f).__module__.split(".")[0] == "keras" and callable(f)


def estimator(f: Any, link: str | None) -> Callable[[Any], Any]:
    """The method that tells most: probabilities where a link maps them back, values otherwise, never labels."""
    if hasattr(f, "predict_proba"):
        if link is not None:
            return f.predict_proba  # type: ignore[no-any-return]
        raise InvalidInput(
            f"predict of the classifier {type(f).__name__} gives labels: on which side of a boundary a row is, and "
            "nothing about how far from it",
            argument="link",
            remedy="link='auto' asks predict_proba instead and maps the probabilities back",
        )
    if hasattr(f, "classes_"):
        if not hasattr(f, "decision_function"):
            raise InvalidInput(f"the classifier {type(f).__name__} gives labels only; no network can be read off them")
        return f.decision_function  # type: ignore[no-any-return]
    return f.predict  # type: ignore[no-any-return]


def features(f: Any) -> tuple[int | None, list[str] | None]:
    """How many inputs an estimator was fitted to, and their names if it has them."""
    names = getattr(f, "feature_names_in_", None)
    known = getattr(f, "n_features_in_", None)
    return (None if known is None else int(known)), (None if names is None else [*map(str, names)])


def named(ask: Callable[[Any], Any], columns: Sequence[str]) -> Callable[[Array], Any]:
    """A function of a DataFrame with these columns as one of an array."""
    try:
        frame = import_module("pandas").DataFrame
    except ImportError:
        raise MissingPackage("columns= hands a pandas DataFrame to the box", "pandas", "pandas") from None
    return lambda X: ask(frame(X, columns=[*columns]))


def many_rows(ask: Callable[[Any], Any], rows: str | None) -> Callable[[Any], Any]:
    """A function of one row, (d,) or a row of a DataFrame, as one of many.

    ``rows``: "one" or "many", or None: found out by the first call. If that fails or does not give one answer for each
    row, a few single rows are tried; where all are answered, not all alike, and many rows still are not, it is a
    function of one row.
    """
    if rows == "many":
        return ask
    return _one_by_one(ask) if rows == "one" else _FindOut(ask)


def _one_by_one(ask: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def each(X: Any) -> Any:
        at = X.iloc if hasattr(X, "iloc") else X
        answers = [np.asarray(ask(at[i]), dtype=np.float64) for i in range(len(X))]
        return np.stack([answer.reshape(-1) if answer.size > 1 else answer.reshape(()) for answer in answers])

    return each


class _FindOut:
    """Asks for many rows until that has been seen to work, or not to."""

    def __init__(self, ask: Callable[[Any], Any]) -> None:
        self.ask, self.known = ask, False

    def __call__(self, X: Any) -> Any:
        if self.known or len(X) < 2:
            return self.ask(X)
        try:
            answer = self.ask(X)
        except Exception:
            if not self._one(X):
                raise
            return self.ask(X)
        if self._each(X, answer):
            self.known = True
        elif self._one(X):
            return self.ask(X)
        return answer

    def _each(self, X: Any, answer: Any) -> bool:
        """Whether there is an answer for each row; where there are as many rows as inputs, other rows must show it."""
        good = np.shape(answer)[:1] == (len(X),)
        if good and len(X) == X.shape[1]:
            good = np.shape(self.ask(X[:-1]))[:1] == (len(X) - 1,)
        return bool(good)

    def _one(self, X: Any) -> bool:
        """Whether single rows are answered and many still are not; then they are asked one by one from now on."""
        each = _one_by_one(self.ask)
        try:
            answers = each(X[:_FEW])
            # one answer to everything says nothing about rows: it may not look at them
            good = bool(np.isfinite(answers).all()) and bool((answers != answers[0]).any())
        except Exception:  # whatever the function says to a row: then it is no function of one
            return False
        try:
            if self._each(X, self.ask(X)):  # it had failed by accident
                return False
        except Exception:  # as before
            pass
        self.ask, self.known = (each, True) if good else (self.ask, False)
        return good
