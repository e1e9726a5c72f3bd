"""Probabilities are mapped back to logits where they have digits, and the network inside is found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, softmax

import relumine as rl
from relumine.extraction import extract
from relumine.links import FORMS, Form, Link, form_of, link_of
from relumine.results import InvalidInput, Status

ONE = rl.planted.network(d=6, m=4, rng=1)
THREE = rl.Network(ONE.W, ONE.b, np.random.default_rng(2).normal(size=(3, 4)))


def centred(net: rl.Network) -> rl.Network:
    """The logits whose sum is zero."""
    return net.replace(a=net.a - net.a.mean(axis=0), v=net.v - net.v.mean(axis=0), c=net.c - net.c.mean())


def classes(name: str, width: int | tuple[int, ...], seed: int) -> tuple[object, np.ndarray, rl.Network]:
    """A trained scikit-learn classifier behind a scaler, its rows, and the network of both together."""
    datasets = pytest.importorskip("sklearn.datasets")
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.utils._testing import ignore_warnings

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    pipe = make_pipeline(StandardScaler(), MLPClassifier(hidden_layer_sizes=width, max_iter=60, random_state=seed))
    ignore_warnings(pipe.fit, category=ConvergenceWarning)(X, y)
    scaler, mlp = pipe[0], pipe[-1]
    if not isinstance(width, int):
        return pipe, X, ONE  # of one hidden layer only
    W = mlp.coefs_[0].T / scaler.scale_
    a, c = mlp.coefs_[1].T, mlp.intercepts_[1]
    net = rl.Network(W, mlp.intercepts_[0] - W @ scaler.mean_, a if len(a) > 1 else a[0], c=c if len(a) > 1 else c[0])
    return pipe, X, net if len(a) == 1 else centred(net)


@pytest.mark.parametrize(("name", "width", "link"), [("breast_cancer", 8, "logit"), ("wine", 8, "softmax")])
@pytest.mark.parametrize("seed", [0, 1])
def test_predict_proba_of_a_trained_classifier(name: str, width: int, link: str, seed: int) -> None:
    pipe, X, truth = classes(name, width, seed)
    found = extract(pipe.predict_proba, X.shape[1], link="auto", mean=X.mean(axis=0), scale=X.std(axis=0), rng=seed)
    assert (found.status, found.link, found.way) == (Status.EXACT, link, "chosen")
    assert rl.metrics.parameter_error(truth, found.network) < 1e-8
    fresh = X.mean(axis=0) + X.std(axis=0) * np.random.default_rng(9).normal(size=(500, X.shape[1]))
    for rows in (X, fresh):
        assert np.abs(found.predict(rows) - pipe.predict_proba(rows)).max() < 1e-9


def test_ten_classes() -> None:
    pipe, X, truth = classes("digits", 16, 0)
    scale = np.where(X.std(axis=0) > 0.0, X.std(axis=0), 1.0)
    found = extract(pipe.predict_proba, 64, link="softmax", mean=X.mean(axis=0), scale=scale, rng=0)
    assert found.status is Status.EXACT
    assert rl.metrics.parameter_error(truth, found.network) < 1e-8
    assert np.abs(found.predict(X) - pipe.predict_proba(X)).max() < 1e-9


def from_above(X: np.ndarray) -> np.ndarray:
    """The small side has lost its digits."""
    return 1.0 - expit(-ONE(X))


def two_columns(X: np.ndarray) -> np.ndarray:
    return softmax(np.column_stack([np.zeros(len(X)), ONE(X)]), axis=1)


def clipped(X: np.ndarray) -> np.ndarray:
    return np.clip(expit(ONE(X)), 1e-7, 1.0 - 1e-7)


@pytest.mark.parametrize("link", ["auto", "logit"])
@pytest.mark.parametrize("box", [lambda X: expit(ONE(X)), from_above, two_columns, clipped])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_one_probability(box: Callable[[np.ndarray], np.ndarray], link: str, seed: int) -> None:
    found = extract(box, dim=6, link=link, rng=seed)
    assert found.status is Status.EXACT
    assert found.link == "logit"
    assert found.network.q is None
    assert rl.metrics.parameter_error(ONE, found.network) < 1e-7
    X = np.random.default_rng(3).normal(size=(200, 6))
    assert found.predict(X).shape == box(X).shape
    assert np.abs(found.predict(X) - box(X)).max() < 1e-9


def test_several_labels_at_once_are_several_logits() -> None:
    found = extract(lambda X: expit(THREE(X)), dim=6, link="auto", rng=0)
    assert (found.status, found.link) == (Status.EXACT, "logit")
    assert rl.metrics.parameter_error(THREE, found.network) < 1e-7


def test_softmax_logits_are_centred_and_the_certificate_says_so() -> None:
    found = extract(lambda X: softmax(THREE(X), axis=1), dim=6, link="softmax", rng=0)
    assert found.status is Status.EXACT
    assert rl.metrics.parameter_error(centred(THREE), found.network) < 1e-9
    assert any("common" in note and "sum is zero" in note for note in found.certificate.notes)


def test_deep_classes() -> None:
    deep = rl.planted.deep((12, 8, 6, 3), rng=0)
    found = extract(lambda X: softmax(deep(X), axis=1), dim=12, link="auto", rng=0)
    assert (found.status, found.link) == (Status.EXACT, "softmax")
    assert found.network.widths == (8, 6)
    X = np.random.default_rng(1).normal(size=(200, 12))
    assert np.abs(found.predict(X) - softmax(deep(X), axis=1)).max() < 1e-9


def test_a_deep_classifier_that_is_sure_of_rows_far_out() -> None:
    """Most probabilities there are 1 to rounding: lines, chords and fresh rows stay where there are digits."""
    deep = rl.planted.deep((12, 8, 6, 1), rng=0)
    middle = float(np.median(deep(np.random.default_rng(1).normal(size=(500, 12)))))
    truth = rl.DeepNetwork(deep.layers, deep.head.replace(a=5.0 * deep.head.a, c=5.0 * (deep.head.c - middle)))

    def box(X: np.ndarray) -> np.ndarray:
        p = expit(truth(X))
        return np.column_stack([1.0 - p, p])

    found = extract(box, dim=12, link="auto", rng=0)
    assert (found.status, found.link) == (Status.EXACT, "logit")
    assert rl.metrics.parameter_error(truth, found.network) < 1e-8


@pytest.mark.slow
def test_a_deep_classifier_of_digits() -> None:
    pipe, X, _ = classes("digits", (32, 32), 0)
    found = extract(pipe, link="auto", mean=X.mean(axis=0), scale=X.std(axis=0) + 0.5, rng=0)
    assert found.network.widths == (32, 32)
    assert np.abs(found.predict(X) - pipe.predict_proba(X)).max() < 1e-8


def test_log() -> None:
    found = extract(lambda X: np.exp(ONE(X)), dim=6, link="log", rng=0)
    assert (found.status, found.link) == (Status.EXACT, "log")
    assert rl.metrics.parameter_error(ONE, found.network) < 1e-9


def test_in_a_range() -> None:
    found = extract(lambda X: softmax(THREE(X), axis=1), dim=6, link="auto", low=-2.0, high=2.0, rng=0)
    assert found.status is Status.EXACT
    assert np.abs(found.X).max() <= 2.0
    assert rl.metrics.parameter_error(centred(THREE), found.network) < 1e-9


def test_a_network_of_logits_has_no_link() -> None:
    found = extract(THREE, dim=6, link="auto", rng=0)
    assert (found.status, found.link) == (Status.EXACT, None)
    assert (found.predict(found.X[:5]) == found.network(found.X[:5])).all()


def test_the_log_holds_the_answers_themselves(tmp_path: Path) -> None:
    def box(X: np.ndarray) -> np.ndarray:
        return softmax(THREE(X), axis=1)

    first = extract(box, dim=6, link="auto", save=tmp_path / "log.npz", rng=0)
    assert np.allclose(first.y, box(first.X), rtol=1e-9, atol=0.0)
    again = extract(box, dim=6, link="auto", save=tmp_path / "log.npz", resume=True, rng=0)
    assert again.status is Status.EXACT
    assert again.queries <= 400  # rows asked again to compare, and fresh ones


def test_random_rows_take_a_link_too() -> None:
    small = rl.planted.network(d=4, m=2, rng=3)
    found = extract(lambda X: expit(small(X)), dim=4, width=2, link="logit", queries="random", rng=0)
    assert (found.status, found.way) == (Status.EXACT, "random")
    assert rl.metrics.parameter_error(small, found.network) < 1e-6


@pytest.mark.parametrize(
    ("box", "link"),
    [
        (lambda X: (ONE(X) > 0.0).astype(float), "logit"),
        (lambda X: np.eye(3)[THREE(X).argmax(axis=1)], "auto"),
        (THREE, "softmax"),
        (ONE, "logit"),
        (ONE, "log"),
        (lambda X: expit(THREE(X)), "softmax"),
        (ONE, "probit"),
        (lambda X: expit(ONE(X) + 1e5), "logit"),
        (lambda X: expit(ONE(X)).round(5), "auto"),
        (lambda X: softmax(THREE(X), axis=1).round(9), "softmax"),
    ],
)
def test_what_no_link_can_map_back_is_said(box: Callable[[np.ndarray], np.ndarray], link: str) -> None:
    with pytest.raises(InvalidInput):
        extract(box, dim=6, link=link, rng=0)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["logit", "pair", "softmax", "log"]),
    st.lists(st.floats(-8.0, 8.0, allow_subnormal=False), min_size=6, max_size=6),
)
def test_values_and_answers_are_inverse(kind: str, numbers: list[float]) -> None:
    Z = np.reshape(numbers, (2, 3))
    form = form_of("two classes" if kind == "pair" else kind)
    if form.name == "softmax":
        Z = Z - Z.mean(axis=1, keepdims=True)
    if kind == "pair":
        Z = Z[:, :1]
    link = Link(form, least=(1e-290,))
    Y = link.answers(Z[:, 0]) if kind == "pair" else link.answers(Z)
    lost = 2.0**-52 * np.exp(9.0) if form.name == "logit" else 1e-12
    assert np.abs(link.values(Y) - Z).max() < 1e-12 + lost


def test_which_small_parts_have_digits() -> None:
    z = np.linspace(-30.0, 30.0, 97)[:, None]
    assert link_of("logit", expit(z)).least == (1e-290, 2.0**-13)  # type: ignore[union-attr]
    assert link_of("logit", 1.0 - expit(z)).least == (2.0**-13, 2.0**-13)  # type: ignore[union-attr]
    both = np.column_stack([expit(-z), expit(z)])
    assert link_of("logit", both).least == (1e-290, 1e-290)  # type: ignore[union-attr]
    sure = link_of("logit", expit(z))
    assert sure is not None
    assert np.isnan(sure.values(np.array([[1.0], [1.0 - 1e-6], [0.0]]))).all()


def test_single_precision_is_said() -> None:
    found = extract(lambda X: expit(ONE(X)).astype(np.float32), dim=6, link="logit", rng=0, seconds=60.0)
    assert (found.status, found.network.m) == (Status.NOISY, 4)
    assert rl.metrics.parameter_error(ONE, found.network) < 1e-3


def test_smooth_logits_are_named() -> None:
    found = extract(
        lambda X: expit(np.tanh(X.sum(axis=1))), dim=6, link="auto", rng=0, on_failure="return", seconds=20.0
    )
    assert found.status is Status.NOT_RECOVERED
    assert "activation='tanh'" in found.message


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.word)
def test_a_link_recognises_its_own_answers(form: Form) -> None:
    Z = np.random.default_rng(0).normal(size=(20, 3))
    Y = form.answers(Z[:, 0] if form.stacked else Z)
    assert form.refusal(Y) == ""
    assert "" not in (form.refusal(-Y), form.note, form.before)
    found = link_of("auto" if form.recognised else form.name, Y)
    assert found is not None
    assert found.form is form


def test_values_from_rounded_probabilities_are_all_as_noisy_as_the_worst() -> None:
    z = np.linspace(-8.0, 8.0, 401)
    rounded = link_of("logit", expit(z)[:, None])  # 1 − p is a multiple of 2⁻⁵³
    assert rounded is not None
    values = rounded.values(expit(z)[:, None])[:, 0]
    good = np.isfinite(values)
    assert good.mean() > 0.9
    assert rounded.grid > 0.0
    np.testing.assert_array_equal(np.round(values[good] / rounded.grid) * rounded.grid, values[good])
    assert np.abs(values - z)[good].max() <= rounded.grid
