"""What a method declares is what it does: the front door can trust the table."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

import numpy as np
import pytest

from relumine import activations, papers, planted
from relumine.results import InvalidInput

RECOVER: dict[str, Callable] = {
    "awasthi": papers.awasthi2021.recover_awasthi,
    "zhong": papers.zhong2017.recover_zhong,
}


def test_every_method_is_declared() -> None:
    assert set(papers.METHODS) == set(RECOVER)


@pytest.mark.parametrize("name", RECOVER)
def test_options_are_the_functions_own_keywords(name: str) -> None:
    keywords = [p for p in inspect.signature(RECOVER[name]).parameters if p not in ("X", "y", "width")]
    assert sorted([*papers.METHODS[name].options, "activation", "rng"]) == sorted(keywords)


@pytest.mark.parametrize("name", RECOVER)
@pytest.mark.parametrize("sigma", ["relu", "leaky_relu(0.1)", "squared_relu", "tanh", "sigmoid", "quadratic", "linear"])
def test_activations_are_taken_or_refused_as_declared(name: str, sigma: str) -> None:
    X, y = planted.sample(planted.network(3, 1, rng=0, activation=sigma), 400, rng=1)
    if papers.METHODS[name].takes(sigma):
        RECOVER[name](X, y, 1, activation=sigma, rng=0)
    else:
        with pytest.raises(InvalidInput, match=f"units, not {re.escape(activations.get(sigma).name)}") as refused:
            RECOVER[name](X, y, 1, activation=sigma, rng=0)
        assert refused.value.argument == "activation"


@pytest.mark.parametrize(
    ("asked", "argument"),
    [
        ({"activation": "tanh"}, "activation"),
        ({"width": None}, "width"),
        ({"outputs": 3}, "y"),
        ({"weighted": True}, "sample_weight"),
        ({"checkpoint": True}, "checkpoint"),
        ({"searched": "starts"}, "starts"),
        ({"searched": "seconds"}, "seconds"),
    ],
)
def test_what_a_method_cannot_do_is_refused_by_name(asked: dict, argument: str) -> None:
    method = papers.METHODS["awasthi"]
    method.check(activation="relu", width=3)
    with pytest.raises(InvalidInput, match=r"method='awasthi'.*;") as refused:
        method.check(**asked)
    assert refused.value.argument == argument
    assert refused.value.remedy


def test_outputs_of_one_column_are_a_vector() -> None:
    X = np.random.default_rng(0).normal(size=(300, 3))
    for name, recover in RECOVER.items():
        with pytest.raises(InvalidInput, match=rf"method='{name}'.*y\.ravel\(\)"):
            recover(X, X[:, :1] ** 2, 1, activation="relu")
