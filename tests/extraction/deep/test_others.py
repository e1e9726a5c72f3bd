"""Boxes that are no ReLU network: none is recovered, and each says why."""

import numpy as np
import pytest

import relumine as rl
from relumine.results import Status

D = 6
rng = np.random.default_rng(83000)
W1, W2, A = rng.normal(size=(12, D)), rng.normal(size=(8, 12)) / 3.0, rng.normal(size=8)
B1, B2 = rng.normal(size=12), rng.normal(size=8)
CENTRES, VALUES = rng.normal(size=(60, D)), rng.normal(size=60)


def _net(one, two=None):
    """Two hidden layers with these activations."""
    return lambda X: (two or one)(one(X @ W1.T + B1) @ W2.T + B2) @ A


def _relu(z):
    return np.maximum(z, 0.0)


def _sigmoid(z):
    return 1.0 / (1.0 + np.exp(-np.clip(z, -500.0, 500.0)))


def _softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def _distances(X):
    return np.linalg.norm(X[:, None] - CENTRES, axis=2)


def _tree(X):
    """A regression tree of depth four."""
    leaf = np.zeros(len(X), dtype=int)
    for _ in range(4):
        leaf = 2 * leaf + (X[np.arange(len(X)), leaf % D] > B1[leaf % 12] / 2.0)
    return VALUES[leaf]


def _z(X):
    return X @ W1.T + B1


BOXES = {
    "tanh": _net(np.tanh),
    "sigmoid": _net(_sigmoid),
    "softplus": _net(lambda z: np.logaddexp(z, 0.0)),
    "gelu": _net(lambda z: z * _sigmoid(1.702 * z)),
    "swish": _net(lambda z: z * _sigmoid(z)),
    "elu": _net(lambda z: np.where(z > 0.0, z, np.expm1(np.minimum(z, 0.0)))),
    "relu then tanh": _net(_relu, np.tanh),
    "tanh then relu": _net(np.tanh, _relu),
    "squared relu": _net(lambda z: _relu(z) ** 2),
    "softmax inside": lambda X: _softmax(_z(X)) @ VALUES[:12],
    "attention": lambda X: np.sum(_softmax(_z(X)) * _z(X), axis=1),
    "layer norm": lambda X: _relu(_z(X) / np.linalg.norm(_z(X), axis=1, keepdims=True)) @ VALUES[:12],
    "sine": lambda X: np.sin(_z(X)) @ VALUES[:12],
    "products": lambda X: X[:, 0] * X[:, 1] + X[:, 2],
    "norm": lambda X: np.linalg.norm(X, axis=1),
    "quotient": lambda X: X[:, 0] / (1.0 + np.abs(X[:, 1])),
    "gate": lambda X: _relu(_z(X)) @ VALUES[:12] * _sigmoid(X[:, 0]),
    "kernel": lambda X: np.exp(-(_distances(X) ** 2) / 4.0) @ VALUES,
    "tree": _tree,
    "forest": lambda X: sum(_tree(np.roll(X, k, axis=1)) for k in range(4)),
    "steps": lambda X: (_z(X) > 0.0) @ VALUES[:12],
    "rounded": lambda X: np.round(_net(_relu)(X), 1),
    "labels": lambda X: np.argmax(_relu(_z(X)) @ W2.T, axis=1).astype(float),
    "nearest": lambda X: VALUES[_distances(X).argmin(axis=1)],
    "five nearest": lambda X: VALUES[np.argsort(_distances(X), axis=1)[:, :5]].mean(axis=1),
    "jumps": lambda X: _relu(_z(X)) @ VALUES[:12] + (X[:, 0] > 0.3),
    "modulo": lambda X: np.mod(X @ W1[0], 1.0),
    "noise": lambda X: np.random.default_rng().normal(size=len(X)),
    "max-pool": lambda X: _relu(_z(X).reshape(len(X), 6, 2).max(axis=2)) @ VALUES[:6],
    "max of many": lambda X: _z(X).max(axis=1),
    "sorted": lambda X: np.sort(X, axis=1) @ VALUES[:D],
    "median": lambda X: np.median(_z(X), axis=1),
}


WORDS = {
    "tree": "labels",
    "forest": "jumps",
    "steps": "jumps",
    "labels": "labels",
    "nearest": "jumps",
    "five nearest": "jumps",
    "jumps": "jump",
    "modulo": "link",
    "rounded": "jump",
    "noise": "",
    "max-pool": "maxima",
    "max of many": "maxima",
    "sorted": "maxima",
    "median": "",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BOXES)
def test_none_is_recovered_and_each_says_why(name: str) -> None:
    found = rl.extract(BOXES[name], dim=D, rng=0, on_failure="return", seconds=120.0)
    assert found.status is Status.NOT_RECOVERED  # not a time that ran out
    assert found.rest is None
    assert WORDS.get(name, "bend everywhere") in " ".join([found.message, *found.certificate.notes])
