"""Deep networks behind a black box: exact where the method reaches, and a plain no where it does not."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

import relumine as rl
import relumine.report
from relumine.cli import app
from relumine.extraction.deep import whole
from relumine.extraction.deep.asking.box import Asked
from relumine.extraction.deep.asking.depth import is_deep
from relumine.extraction.deep.asking.inquiry import Inquiry
from relumine.extraction.deep.asking.kinks import segments
from relumine.extraction.deep.asking.witnesses import Chord, witnesses_of
from relumine.extraction.deep.behind.wide import oriented
from relumine.extraction.deep.by_layers import Rest
from relumine.extraction.deep.first.units import Unit
from relumine.extraction.deep.known.charts import Known
from relumine.extraction.deep.known.places import chords
from relumine.extraction.deep.surfaces.following import followed
from relumine.extraction.deep.surfaces.surface import Lift, Surface, bends
from relumine.extraction.deep.surfaces.walking import onto
from relumine.extraction.deep.whole import _certain, _Looks, extract_deep
from relumine.extraction.lines import kinks
from relumine.extraction.sampling import Domain
from relumine.results import Status
from relumine.run import Run


class Counted:
    def __init__(self, f):
        self.f, self.rows = f, 0

    def __call__(self, X):
        self.rows += len(X)
        return self.f(X)


@pytest.mark.parametrize("sizes", [(10, 10, 10, 1), (20, 10, 10, 1), (12, 8, 6, 3)])
def test_two_hidden_layers(sizes):
    truth = rl.planted.deep(sizes, rng=0)
    box = Counted(truth)
    found = rl.extract(box, dim=sizes[0], rng=0)
    assert found.status is Status.EXACT
    assert found.network.sizes == sizes
    assert rl.metrics.parameter_error(truth, found.network) < 1e-6
    assert found.queries == box.rows
    assert found.certificate.confirmed >= 1000
    assert found.certificate.unseen <= 0.003 + 1e-12
    assert found.rest is None
    assert any("full rank" in note for note in found.certificate.notes)


@pytest.mark.parametrize(("sizes", "most"), [((20, 10, 10, 1), 20), ((40, 16, 12, 1), 10)])
def test_few_rows_for_each_parameter(sizes, most):
    truth = rl.planted.deep(sizes, rng=5)
    found = rl.extract(truth, dim=sizes[0], rng=6)
    assert rl.metrics.parameter_error(truth, found.network) < 1e-6
    assert found.queries <= most * truth.parameters


@pytest.mark.parametrize("sizes", [(10, 14, 12, 1), (5, 15, 10, 1), (4, 8, 5, 2)])
def test_a_first_layer_wider_than_the_inputs(sizes):
    truth = rl.planted.deep(sizes, rng=81001)
    found = rl.extract(truth, dim=sizes[0], rng=1)
    assert found.status is Status.EXACT
    assert found.network.sizes == sizes
    X = np.random.default_rng(2).normal(size=(500, sizes[0]))
    np.testing.assert_allclose(found.network(X), truth(X), atol=1e-8)
    assert rl.metrics.parameter_error(truth, found.network) < 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_the_signs_are_the_solution_of_linear_equations(seed):
    truth = rl.planted.deep((4, 9, 5, 1), rng=seed).scaled()
    (W, b), (A, e) = truth.hidden
    rng = np.random.default_rng(seed)
    xi, X = rng.choice([-1.0, 1.0], size=9), rng.normal(size=(20, 4))
    lift = Lift(Known(4), xi[:, None] * W, xi * b)
    surfaces = []
    for a, c in zip(A, e):  # a·relu(ξz) + c = θ·(relu(sz), x, 1), whatever s
        s = rng.choice([-1.0, 1.0], size=9)
        off = a * (s != xi)
        theta = np.concatenate([a, off @ W, [c + off @ b]])
        surfaces.append(Surface(lift, s, theta, np.ones(14, dtype=bool)))
        H = truth.activations_before(X, 1)
        np.testing.assert_allclose(surfaces[-1].value(X), H @ a + c, atol=1e-12)
    np.testing.assert_array_equal(oriented(lift, surfaces), xi)
    assert oriented(lift, surfaces[:2]) is None  # eight equations, nine signs
    for surface in surfaces[:3]:
        surface.theta[9] += 1.0
    assert oriented(lift, surfaces) is None  # contradictions


def test_a_surface_followed_is_the_unit_s():
    truth = rl.planted.deep((4, 7, 5, 1), rng=2)
    (W, b), (A, e) = truth.hidden
    lift, rng = Lift(Known(4), W, b), np.random.default_rng(0)
    ask = Asked(truth, rng, np.inf, lambda: "")
    ends = rng.normal(size=(40, 4))
    z = truth.activations_before(ends, 1) @ A[0] + e[0]
    lo, hi = ends[z < 0.0][0], ends[z > 0.0][0]
    for _ in range(200):  # a kink of unit 0 by halving
        middle = 0.5 * (lo + hi)
        below = truth.activations_before(middle[None], 1)[0] @ A[0] + e[0] < 0.0
        lo, hi = (middle, hi) if below else (lo, middle)
    normal = (A[0] * (W @ lo + b > 0.0)) @ W
    surface = followed(ask, lift, lo, normal, rng)
    assert surface is not None
    X = rng.normal(size=(50, 4))
    ratio = surface.value(X) / (truth.activations_before(X, 1) @ A[0] + e[0])
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-6)
    wrong = normal + 0.1 * np.linalg.norm(normal) * rng.normal(size=4)
    assert followed(ask, lift, lo, wrong, rng) is None


def test_where_all_units_in_front_are_off_there_is_no_surface_and_nothing_odd_is_asked():
    W, b = np.eye(2, 3), np.full(2, -1.0)
    surface = Surface(Lift(Known(3, ((W, b),))), np.zeros(0), np.array([1.0, -1.0, 0.5]), np.ones(3, dtype=bool))
    off = np.array([-1.0, 0.0, 0.0])
    assert not surface.slope(off).any()
    at = (off[None], surface.lift.all.regions(off[None]))
    assert not onto(surface.lift, surface.theta[None], surface.s[None], off[None], -W[:1], np.array([0]), at)[1].any()
    asked = []
    ask = Asked(lambda X: (asked.append(X), np.abs(X[:, 0]))[1], np.random.default_rng(0), np.inf, lambda: "")
    corner, found = bends(ask, [np.full(3, np.nan), 0.1 * W[0]], [W[0], W[0]])
    assert corner is None
    np.testing.assert_allclose(found, 0.0, atol=1e-12)
    assert all(np.isfinite(X).all() for X in asked)


def test_other_coordinates():
    truth = rl.planted.deep((8, 6, 5, 1), rng=3)
    mean, scale = np.linspace(-50.0, 50.0, 8), np.geomspace(0.1, 100.0, 8)
    found = rl.extract(lambda X: truth((X - mean) / scale), dim=8, rng=0, mean=mean, scale=scale)
    X = mean + scale * np.random.default_rng(5).normal(size=(100, 8))
    np.testing.assert_allclose(found.network(X), truth((X - mean) / scale), rtol=1e-8, atol=1e-8)


def test_what_was_said_is_held_against_what_was_found():
    truth = rl.planted.deep((8, 6, 5, 1), rng=3)
    assert rl.extract(truth, dim=8, rng=0, widths=(6, 5)).ok
    found = rl.extract(truth, dim=8, rng=0, widths=(6, 4), on_failure="return")
    assert found.status is Status.NOT_RECOVERED
    with pytest.raises(rl.InvalidInput):
        rl.extract(truth, dim=8, widths=(6, 5), depth=3)
    with pytest.raises(rl.InvalidInput):
        rl.extract(truth, dim=8, depth=0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sizes", [(40, 20, 10, 10, 1), (64, 16, 8, 8, 1)])
def test_three_hidden_layers_first_two_are_always_right(sizes, seed):
    truth = rl.planted.deep(sizes, rng=seed)
    found = extract_deep(truth, sizes[0], Run.of(seed, seconds=120.0))
    assert len(found.known) >= 2
    scaled = truth.scaled()
    order = np.arange(sizes[0])
    for (W, b), (V, c) in zip(scaled.layers, found.known):
        apart = np.linalg.norm(W[:, None, order] - V[None], axis=2) + np.abs(b[:, None] - c)
        assert apart.min(axis=0).max() < 1e-6
        order = apart.argmin(axis=0)
    if found.exact:
        X = np.random.default_rng(7).normal(size=(300, sizes[0]))
        np.testing.assert_allclose(found.network(X), truth(X), atol=1e-6)


def test_a_trained_classifier_by_its_logits():
    data = pytest.importorskip("sklearn.datasets")
    neural = pytest.importorskip("sklearn.neural_network")
    X, y = data.load_digits(return_X_y=True)
    X = (X - X.mean(axis=0)) / (X.std(axis=0) + 0.1)
    model = neural.MLPClassifier(hidden_layer_sizes=(16, 12), max_iter=15, random_state=0)
    with pytest.warns(Warning, match="converge|iterations"):
        model.fit(X, y)
    truth = rl.DeepNetwork.from_sklearn(model)
    found = rl.extract(truth, dim=64, rng=0)
    assert found.network.sizes == (64, 16, 12, 10)
    assert rl.metrics.parameter_error(truth, found.network) < 1e-6


W, A = np.random.default_rng(0).normal(size=(12, 8)), np.random.default_rng(1).normal(size=12)


@pytest.mark.parametrize(
    ("box", "word"),
    [
        (lambda X: np.sin(X @ W.T) @ A, "bends everywhere"),
        (lambda X: np.tanh(X @ W.T) @ A, "bends everywhere"),
        (lambda X: np.exp(X @ W.T / 9.0) @ A / np.exp(X @ W.T / 9.0).sum(axis=1), "bends everywhere"),
        (lambda X: (X @ W.T > 0.0) @ A, "steps"),
        (lambda X: np.round(X @ W[0], 1), "steps"),
        (lambda X: np.ones(len(X)), "same answer everywhere"),
        (lambda X: np.random.default_rng().normal(size=len(X)), "different answers"),
    ],
)
def test_what_is_no_relu_network_says_so_early(box, word):
    counted = Counted(box)
    found = extract_deep(counted, 8, Run.of(0))
    assert not found.exact
    assert word in found.reason
    assert counted.rows <= 200


def _maxima(X):
    return np.maximum((X @ W.T).reshape(len(X), 6, 2).max(axis=2), 0.0) @ A[:6]


def test_maxima_are_not_called_a_network():
    found = extract_deep(_maxima, 8, Run.of(0, seconds=20.0), budget=4000)
    assert not found.exact
    assert not found.known
    assert found.unsigned is None


def test_the_end_of_the_budget_is_the_end():
    box = Counted(rl.planted.deep((20, 10, 10, 1), rng=0))
    found = extract_deep(box, 20, Run.of(0), budget=1500)
    assert box.rows <= 1500
    assert not found.exact


def test_half_way_the_rest_can_be_asked():
    truth = rl.planted.deep((20, 10, 10, 1), rng=0)
    found = rl.extract(truth, dim=20, rng=0, budget=2600, on_failure="return")
    assert not found.ok
    assert found.rest is not None
    ((W1, b1),) = found.rest.layers
    assert rl.metrics.deep_match(truth, rl.DeepNetwork([(W1, b1)], truth.head))[1][0].max() < 1e-6
    X = np.abs(np.random.default_rng(0).normal(size=(5, 20)))
    assert found.rest.activations(X).shape == (5, 10)


def test_time_and_rows_are_kept_for_a_last_check(monkeypatch):
    """Fresh rows must be able to contradict the layers, also where the limit ended the search."""
    truth, last = rl.planted.deep((20, 10, 10, 10, 1), rng=0), []

    def counted(at):
        before = at.ask.count
        layers = _certain(at)
        last.append(at.ask.count - before)
        return layers

    monkeypatch.setattr(whole, "_certain", counted)
    box = Counted(truth)
    found = rl.extract(box, dim=20, rng=0, budget=9000, on_failure="return")
    assert "the budget of rows is spent" in found.message
    assert box.rows <= 9000
    assert found.rest.layers
    assert last.pop() > 100
    assert len(found.rest.checked) == len(found.rest.layers)
    assert min(found.rest.checked) > 20
    monkeypatch.setattr(whole, "_SPARED", 1.0)  # all that is left
    found = extract_deep(truth, 20, Run.of(0, seconds=10.0))
    assert found.stopped
    assert (found.reason, found.known) == ("the time is up", ())


def test_what_is_left_is_told_in_a_line():
    rest = Rest(((np.zeros((3, 9)), np.zeros(3)),), "the time is up", abs, (np.zeros((2, 3)), np.zeros(2)))
    assert repr(rest) == "Rest(behind 1 layer of 3 units, and planes of 2 more; ended: the time is up)"


def test_a_move_that_no_layer_in_front_sees_tells_nothing_of_the_last():
    truth = rl.planted.deep((20, 10, 10, 1), rng=0)
    (W, b), second = truth.hidden
    run = Run.of(0)
    at = Inquiry(Asked(truth, run.rng, np.inf, lambda: ""), 20, run)
    assert at.complete(Known(20, ((W, b),)))
    assert at.checked[1] == 25  # 20 inputs, 10 units: every move
    passes_all = (np.eye(10), np.zeros(10))
    assert at.complete(Known(20, ((W, b), passes_all)))  # true, but nothing could have shown otherwise
    assert at.checked[2] == 0
    assert at.complete(Known(20, ((W, b), second)))
    assert at.checked[2] > 10


@pytest.mark.parametrize("missing", [None, 0, 5])
def test_a_layer_that_lacks_a_unit_is_not_called_certain(missing):
    truth = rl.planted.deep((20, 10, 10, 8, 1), rng=1).scaled()
    first, (W2, b2) = truth.hidden[:2]
    keep = np.arange(10) != (-1 if missing is None else missing)
    run = Run.of(0)
    at = Inquiry(Asked(truth, run.rng, np.inf, lambda: ""), 20, run)
    at.known = Known(20, (first, (W2[keep], b2[keep])))
    charts, starts, ends = chords(at.known, 12, at.rng)
    found = segments(at.ask, starts, ends, 1.0, 8000)
    seen = [w for chart, segment in zip(charts, found) for w in witnesses_of(Chord(chart, segment, 0), 1.0)]
    at.confirm(2, seen)
    assert not at.certain  # too few units behind it
    at.confirm(3, seen)
    assert len(at.certain) == (2 if missing is None else 0)
    at.certain = at.known.layers  # and where fewer kinks were seen, fresh lines show it at the end
    assert [len(b) for _, b in _certain(at)] == ([10, 10] if missing is None else [10])


@pytest.mark.parametrize("sizes", [(11, 4, 3, 1), (10, 8, 6, 1)])
def test_what_is_called_certain_is_right_wherever_it_ends(sizes):
    truth = rl.planted.deep(sizes, rng=1)
    for budget in (1000, 1500, 2000):  # fewer than it takes
        found = extract_deep(truth, sizes[0], Run.of(1), budget=budget)
        layers = found.known
        assert not found.exact
        assert len(layers) <= 1
        for V, c in layers:
            assert rl.metrics.deep_match(truth, rl.DeepNetwork([(V, c)], truth.head))[1][0].max() < 1e-6


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sizes", [(10, 20, 1), (30, 12, 1), (10, 10, 10, 1), (20, 10, 10, 10, 1)])
def test_depth_from_parallel_lines(sizes, seed):
    net = rl.planted.deep(sizes, rng=seed)
    domain = Domain(np.zeros(sizes[0]), np.ones(sizes[0]))
    run = Run.of(seed)

    def ask(X):
        return net(X).reshape(len(X), -1)

    (line,) = kinks(ask, [domain.line(run.rng)])
    assert is_deep(ask, domain, run, line) == (len(sizes) > 3)


@pytest.mark.parametrize(("sizes", "seed"), [((20, 10, 10, 1), 171000), ((10, 10, 10, 1), 191027)])
def test_few_kinks_on_the_first_parallel_lines_do_not_hide_what_they_are(sizes, seed):
    """Of the first box, lines beside the first have no kink at first; of the second, two behind the first layer."""
    truth = rl.planted.deep(sizes, rng=seed)
    found = rl.extract(truth, dim=sizes[0], rng=seed + 1)
    assert rl.metrics.parameter_error(truth, found.network) < 1e-6
    assert found.queries <= 20 * truth.parameters


@pytest.mark.parametrize(("false", "found"), [(1, True), (2, True), (3, False)])
def test_units_too_many_of_a_layer_are_left_out(false, found):
    """Of ten units that most chords show two, or one, are further behind; those are seen on fewer of them."""
    units = [
        Unit(np.ones(8), 0.0, np.ones(8, dtype=bool), 1e-9, hits=9 - 4 * (i < false), crossings=10 - (i < false))
        for i in range(10)
    ]
    looks = object.__new__(_Looks)
    looks.at = SimpleNamespace(known=SimpleNamespace(width=8))
    looks.k, looks.open, looks.layer = 1, 0, SimpleNamespace(units=units)
    right = {id(u) for u in units[false:]}
    looks.signed = lambda some: (np.zeros((8, 8)), np.zeros(8)) if {id(u) for u in some} == right else None
    assert bool(looks.options(units)) == found


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_chords_lie_in_one_chart(depth):
    rng = np.random.default_rng(0)
    net = rl.planted.deep((8, 7, 6, 5, 1), rng=1)
    known = Known(8, net.hidden[:depth])
    charts, starts, ends = chords(known, 6, rng)
    assert len(charts) > 0
    for chart, a, b in zip(charts, starts, ends):
        for t in (0.0, 0.3, 1.0):
            x = a + t * (b - a)
            h = np.zeros(known.width)
            h[chart.active] = chart.heights(x)
            np.testing.assert_allclose(known(x[None])[0], h, atol=1e-9)
        np.testing.assert_allclose(chart.J @ chart.E, np.eye(chart.dim), atol=1e-8)


def test_a_segment_without_length_asks_nothing() -> None:
    asked = []

    def ask(X: np.ndarray) -> np.ndarray:
        asked.append(X)
        return np.abs(X[:, 0] - 0.3)

    starts, ends = np.array([[1.0, 0.0], [-2.0, 0.0]]), np.array([[1.0, 0.0], [1.0, 1.0]])
    flat, bent = segments(ask, starts, ends, 1.0, 500)
    assert len(flat.t) == 0
    assert len(bent.t) == 1
    assert all(np.isfinite(X).all() for X in asked)


def test_an_interrupted_run_goes_on_from_its_log(tmp_path) -> None:
    net = rl.planted.deep((20, 10, 10, 1), rng=0)
    whole = rl.extract(net, dim=20, rng=0)
    part = rl.extract(net, dim=20, rng=0, budget=whole.queries // 2, save=tmp_path / "q.npz", on_failure="return")
    assert part.status.value == "interrupted"
    rest = rl.extract(net, dim=20, rng=7, save=tmp_path / "q.npz", resume=True)  # the seed is that of the log
    assert rest.network.widths == (10, 10)
    assert part.queries + rest.queries < 1.1 * whole.queries + 200  # a few rows are asked again, to know the box


def test_the_command_line_keeps_predicts_and_exports(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "a_deep_box.py").write_text(
        "import relumine as rl\nnet = rl.planted.deep(sizes=(20, 10, 10, 1), rng=0)\ndef f(X):\n    return net(X)\n"
    )
    run = CliRunner()
    done = run.invoke(app, ["extract", "a_deep_box:f", "--dim", "20", "-o", "net.safetensors", "--save", "r.json"])
    assert (
        run.invoke(app, ["extract", "a_deep_box:f", "--dim", "20", "--widths", "10,10", "--depth", "2"]).exit_code == 0
    )
    assert run.invoke(app, ["extract", "a_deep_box:f", "--dim", "20", "--widths", "10,9"]).exit_code == 1
    assert run.invoke(app, ["extract", "a_deep_box:f", "--dim", "20", "--widths", "10;10"]).exit_code == 2
    assert done.exit_code == 0, done.output
    assert "2 hidden layers of 10 + 10 ReLU units" in done.output
    X = np.random.default_rng(0).normal(size=(5, 20))
    np.savetxt("new.csv", X, delimiter=",", header=",".join(f"x{j}" for j in range(20)), comments="", fmt="%.17g")
    assert run.invoke(app, ["export", "net.safetensors", "--to", "onnx"]).exit_code == 0
    truth = rl.planted.deep(sizes=(20, 10, 10, 1), rng=0)(X)
    for name in ("net.safetensors", "net.onnx", "r.json"):
        told = json.loads(run.invoke(app, ["predict", name, "new.csv", "--json"]).stdout)
        np.testing.assert_allclose(told["predictions"], truth, rtol=1e-9)
    assert rl.report.load("r.json").network.widths == (10, 10)
    page = run.invoke(app, ["report", "r.json", "--images", "4x5"])
    assert page.exit_code == 0, page.output
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert all(
        word in text for word in ("Layer 1: 10 units of 20 inputs", "Layer 2: 10 units of 10 units", "The output")
    )


@pytest.mark.parametrize(("quiet", "count", "looked"), [(3, 5, True), (2, 5, False), (3, 4, False)])
def test_what_a_layer_lacks_is_looked_for_where_it_shows_once_new_lines_find_nothing(quiet, count, looked, monkeypatch):
    truth = rl.planted.deep((8, 6, 6, 1), rng=1)
    at = Inquiry(Asked(truth, np.random.default_rng(0), np.inf, lambda: ""), 8, Run.of(0))
    at.known = Known(8, truth.hidden[:1])
    W, b = truth.hidden[1]
    units = [Unit(w, c, np.ones(6, dtype=bool), 0.0) for w, c in zip(W[:count], b)]
    looks = _Looks(at, 1, 40)
    looks.layer, looks.quiet = SimpleNamespace(accepted=units + units[: 5 - count], witnesses=[]), quiet
    monkeypatch.setattr(whole, "signs", lambda ask, some: np.ones(len(some)))
    assert looks.signed(units) is None  # one of six is missing
    assert (looks.pairs is not None) == looked
    if looked:  # on some of these stretches it changes sides
        ends = [truth.activations_before(X, 1) @ W[5] + b[5] > 0.0 for X in looks.pairs]
        assert (ends[0] & ~ends[1]).any()
