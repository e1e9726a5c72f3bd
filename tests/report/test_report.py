"""The page and the result file: true to the numbers, safe with other people's text, bounded in size."""

from __future__ import annotations

import base64
import json
import re
import resource
import struct
import time
import zlib
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import relumine as rl
from relumine import report
from relumine.links import Link, form_of
from relumine.report import png, story
from relumine.report.axes import label, linear_ticks, log_ticks
from relumine.results import (
    Certificate,
    Origin,
    Predictions,
    Recovery,
    SearchRecord,
    Stage,
    StandardErrors,
    Status,
    Units,
    WidthEvidence,
)


def recovery(
    d: int = 3,
    m: int = 2,
    q: int | None = None,
    status: Status = Status.NOISY,
    trace: tuple[tuple[str, tuple[float, ...]], ...] = (),
    loss: float = float("nan"),
    shown: Predictions | None = None,
    **origin: Any,
) -> Recovery:
    rng = np.random.default_rng(0)
    net = rl.planted.network(d, m, rng=rng, outputs=q)
    return Recovery(
        net,
        status,
        "a message",
        Certificate(0.01, 20, 0.05, 12.0, proves="this", does_not_prove="that", notes=("a note",)),
        Units((0,), (1,), ()),
        StandardErrors(*(np.full(getattr(net, k).shape, 0.01) for k in ("W", "b", "a", "v", "c"))),
        (Stage("fit", 0.5, 1e-3),),
        search=SearchRecord(trace=trace, loss=loss),
        shown=shown,
        origin=Origin(**origin),
    )


def rows(truth: list[float], predicted: list[float], unseen: bool = True) -> Predictions:
    return Predictions(np.array(truth)[:, None], np.array(predicted)[:, None], unseen)


class Reader(HTMLParser):
    """Tags and attributes, to see what a browser would."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


# -- the result file -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "q"), [(2, None), (2, 3), (0, None), (1, 1)])
def test_result_file_and_back(tmp_path: Path, m: int, q: int | None) -> None:
    found = recovery(m=m, q=q, trace=(("start 1", (1.0, 0.1)),), shown=rows([1.0, 2.0], [1.5, 2.0], False))
    certificate = replace(found.certificate, condition=float("nan"), confirmed=12, unseen=0.25)
    search = replace(found.search, starts=3, cycles=4, noise=(0.1,), rows=7, loss=0.1)
    search = replace(search, widths=(WidthEvidence(2, 0.1, -3.0),))
    origin = Origin("a.csv", ("speed", "load", "heat"), "power", 7, (1.0, 2.0, 3.0), 0.5, ("do this",))
    found = replace(found, certificate=certificate, search=search, origin=origin)
    report.save(found, tmp_path / "r.json")
    back = report.load(tmp_path / "r.json")
    for key in ("W", "b", "a", "v", "c"):
        np.testing.assert_array_equal(getattr(back.network, key), getattr(found.network, key))
        np.testing.assert_array_equal(getattr(back.standard_errors, key), getattr(found.standard_errors, key))
    assert (back.status, back.message, back.units, back.stages) == (
        found.status,
        found.message,
        found.units,
        found.stages,
    )
    assert np.isnan(back.certificate.condition)
    assert replace(back.certificate, condition=0.0) == replace(certificate, condition=0.0)
    assert (back.search, back.origin, back.method) == (search, origin, found.method)
    assert back.shown is not None
    np.testing.assert_array_equal(back.shown.predicted, [[1.5], [2.0]])
    assert back.shown.unseen is False
    assert [p.name for p in tmp_path.iterdir()] == ["r.json"]


def test_an_extraction_keeps_its_counts(tmp_path: Path) -> None:
    found = rl.extract(rl.planted.network(2, 1, rng=0), dim=2, rng=0)
    report.save(found, tmp_path / "r.json")
    back = report.load(tmp_path / "r.json")
    assert isinstance(back, rl.Extraction)
    assert (back.queries, back.calls, back.retried, back.dropped) == (found.queries, found.calls, 0, 0)
    assert "rows asked" in report.render(back)
    assert "rows asked" not in report.render(found.recovery)


def test_an_earlier_version_is_refused_in_words(tmp_path: Path) -> None:
    content = report.as_dict(recovery()) | {"version": 1, "details": {}}
    (tmp_path / "r.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(rl.ModelFileError, match="earlier relumine"):
        report.load(tmp_path / "r.json")


@pytest.mark.parametrize("piece", [b"[],", b"{},", b'"ab",', b"1.5,"], ids=["lists", "objects", "texts", "numbers"])
def test_a_file_of_too_many_values_is_refused_before_it_is_built(tmp_path: Path, piece: bytes) -> None:
    path = tmp_path / "r.json"
    head = b'{"format": "relumine.result", "version": 2, "stages": ['
    path.write_bytes(head + piece * (90_000_000 // len(piece)) + piece[:-1] + b"]}")
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with pytest.raises(rl.ModelFileError, match="more values"):
        report.load(path)
    path.unlink()
    assert time.process_time() - began < 5.0  # 17 s and 1.7 GB when the lists were built first
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kilobytes


def test_result_of_a_real_run_and_back(tmp_path: Path) -> None:
    X, y = rl.planted.sample(rl.planted.network(3, 2, rng=0), 80, rng=1)
    found = rl.recover(X, y, 2, rng=0)
    report.save(found, tmp_path / "r.json")
    np.testing.assert_array_equal(report.load(tmp_path / "r.json").network(X), found.network(X))
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["status"] == "exact"


@pytest.mark.parametrize(
    ("place", "value", "word"),
    [
        (("version",), 99, "upgrade"),
        (("format",), "other", "not a result"),
        (("status",), "splendid", "splendid"),
        (("standard_errors", "W"), [[0.1]], "shape"),
        (("network", "W"), [[1.0], [1.0, 2.0]], "damaged"),
        (("network", "b"), ["x", "y"], "damaged"),
        (("network", "a"), [None, 1.0], "NaN"),
    ],
)
def test_what_is_wrong_with_a_result_file(tmp_path: Path, place: tuple[str, ...], value: object, word: str) -> None:
    content = node = report.as_dict(recovery())
    for key in place[:-1]:
        node = node[key]
    node[place[-1]] = value
    (tmp_path / "r.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(rl.ModelFileError, match=word):
        report.load(tmp_path / "r.json")


@settings(max_examples=40)
@given(st.data())
def test_damaged_result_files_are_refused_in_words(data: st.DataObject) -> None:
    """Whatever stands at whatever place: a ModelFileError or a valid result, nothing else."""
    content = report.as_dict(recovery())
    node: object = content
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node))) if isinstance(node, list) else []
        key = data.draw(st.sampled_from(keys))
        child = node[key]  # type: ignore[index]
        if not isinstance(child, dict | list) or not child or data.draw(st.booleans()):
            break
        node = child
    node[key] = data.draw(  # type: ignore[index]
        st.one_of(
            st.none(), st.text(max_size=3), st.integers(-5, 10**30), st.lists(st.integers(), max_size=3), st.just({})
        )
    )
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        try:
            back = report.load(path)
        except rl.ModelFileError:
            return
        report.render(back)


# -- the page ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", list(Status))
def test_every_status_has_its_headline(status: Status) -> None:
    page = report.render(recovery(status=status))
    assert f"{status.title}" in page
    assert ("Network.load" in page) == (status.ok or status is Status.INTERRUPTED)  # do not invite to use a wrong one
    assert status.advice.split(".")[0].replace("'", "&#39;") in page


def test_the_page_holds_the_numbers() -> None:
    found = recovery(trace=(("start 1", (1.0, 1e-2)), ("polish", (1e-3,))), shown=rows([0.0, 1.0], [0.1, 1.1]))
    page = report.render(found, features=["speed", "load", "heat"], target="power")
    assert f'data-v="{found.network.W[1, 2]}"' in page
    assert "± 0.01" in page
    assert "2 rows kept out of the fit" in page
    assert "power = " in page
    for word in ("speed", "load", "heat", "start 1", "polish", "a note"):
        assert word in page
    # every weight is a cell of the heat map that tells its value
    assert len(re.findall(r"<title>unit \d, ", page)) == 6


def test_hostile_names_stay_text() -> None:
    evil = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ 7*7 }}"]
    found = replace(recovery(target=evil[1], advice=tuple(evil)), message=evil[0])
    page = report.render(found, features=evil, title=evil[0], network_file="'\"><script>x</script>")
    tags = Reader(page).tags
    assert sum(tag == "script" for tag, _ in tags) == 1
    assert all(not (attrs.get("src") or "data:").startswith("x") for _, attrs in tags)
    assert not any(name.startswith("on") for _, attrs in tags for name in attrs)
    assert "{{ 7*7 }}" in page


def test_nothing_is_loaded_from_elsewhere() -> None:
    page = report.render(recovery(d=16, m=3), image_shape=(4, 4))
    for _, attrs in Reader(page).tags:
        for name in ("src", "href", "data", "action"):
            assert (attrs.get(name) or "data:").startswith("data:")
    assert "url(" not in page
    assert "@import" not in page
    assert "http:" not in page.replace("http-equiv", "")


def test_images_and_their_shape() -> None:
    found = recovery(d=6, m=3)
    page = report.render(found, image_shape=(2, 3))
    assert page.count("<figure>") == 3
    with pytest.raises(rl.InvalidInput, match="pixels"):
        report.render(found, image_shape=(4, 4))
    with pytest.raises(rl.InvalidInput, match="name the 6 inputs"):
        report.render(found, features=["a"])


def test_a_large_network_is_cut_and_says_so() -> None:
    found = recovery(d=3000, m=500, trace=(("start 1", tuple(10.0**-k for k in range(20)) * 5000),))
    page = report.render(found)
    assert len(page) < 3_000_000
    assert "200 of 500 units" in page
    assert "400 of 3000 inputs" in page
    assert "24 of 3000 inputs" in page


def test_affine_part_several_outputs_and_no_units() -> None:
    net = rl.Network(np.zeros((0, 2)), [], [], v=[1.0, 2.0], c=0.5)
    found = replace(recovery(), network=net, standard_errors=None, units=Units())
    page = report.render(found)
    assert "No hidden unit found: a linear fit explains 100 % of the variance of y" in page
    assert '<header class="plain">' in page
    assert "Affine part" in page
    page = report.render(recovery(q=8, shown=Predictions(np.ones((4, 8)), np.zeros((4, 8)))))
    assert "a for output 5" in page
    assert "2 more outputs are in the network file" in page


def test_pixels_are_what_they_should_be() -> None:
    values = np.array([[1.0, -1.0, 0.0], [0.25, -0.25, 0.5]])
    uri = png.data_uri(values, 1.0)
    raw = base64.b64decode(uri.split(",")[1])
    width, height = struct.unpack(">II", raw[16:24])
    assert (height, width) == values.shape
    at = raw.index(b"IDAT")
    (size,) = struct.unpack(">I", raw[at - 4 : at])
    lines = np.frombuffer(zlib.decompress(raw[at + 4 : at + 4 + size]), dtype=np.uint8).reshape(2, 4)[:, 1:].astype(int)
    np.testing.assert_array_equal(np.sign(lines - 128), np.sign(values))
    np.testing.assert_array_equal(lines[:, 0] - 128, [127, 64])  # square root of the value


@given(st.floats(-1e12, 1e12), st.floats(1e-9, 1e12))
def test_ticks_cover_the_data(low: float, span: float) -> None:
    ticks = linear_ticks(low, low + span)
    tolerance = 1e-6 * (ticks[-1] - ticks[0]) + 1e-15 * abs(low)
    assert ticks[0] <= low + tolerance
    assert ticks[-1] >= low + span - tolerance
    assert len(ticks) <= 9


def test_labels() -> None:
    assert [label(v) for v in (0.0, -0.5, 1e-14, 2.5e-9, 120000.0)] == ["0", "−0.5", "10⁻¹⁴", "2.5·10⁻⁹", "1.2·10⁵"]
    assert log_ticks(-12.5, 0.0)[0] <= -12.5


def test_found_plot() -> None:
    pytest.importorskip("matplotlib")
    found = recovery(trace=(("start 1", (1.0, 0.1)), ("polish", (0.01,))))
    figure = found.plot(features=["$a$", "b", "c"])
    image, loss, scatter = figure.axes[:3]
    np.testing.assert_array_equal(image.images[0].get_array(), found.network.W)
    assert [
        line.get_ydata().tolist() for line in loss.lines if len(line.get_xdata()) and line.get_color() == "#1f4e79"
    ] == [[1.0, 0.1], [0.1, 0.01]]
    np.testing.assert_allclose(
        scatter.collections[-1].get_offsets(), np.column_stack([found.network.b, found.network.a])
    )
    figure.canvas.draw()
    recovery(q=2).plot().canvas.draw()


def deep_recovery(q: int = 1) -> Recovery:
    net: Any = rl.planted.deep((6, 5, 4, q), rng=0)
    shown = Predictions(np.zeros((3, q)), np.zeros((3, q)))
    return Recovery(net, Status.EXACT, "", Certificate(1e-15, 10), shown=shown)


def test_a_deep_network_has_a_picture_for_each_layer() -> None:
    text = report.render(deep_recovery(), image_shape=(2, 3))
    assert [m[:7] for m in re.findall("<h2>(Layer [^<]*|The output[^<]*)<", text)] == ["Layer 1", "Layer 2", "The out"]
    assert text.count("<img ") == 5
    assert f"{deep_recovery().network.parameters} numbers" in text
    assert "net.layers, net.head" in text
    assert "net.W, net.b" not in text  # which a deep network does not have
    assert "Layer 1" in report.render(deep_recovery(3), features=[*"abcdef"])
    assert "layer 2" in deep_recovery()._repr_html_()
    assert "layer 1" in deep_recovery().network._repr_html_()


def test_a_deep_network_as_a_figure() -> None:
    pytest.importorskip("matplotlib")
    figure = deep_recovery(3).plot()
    assert [axes.images[0].get_array().shape for axes in figure.axes] == [(5, 6), (4, 5), (3, 4)]


@pytest.mark.parametrize(
    ("word", "says"), [("logit", "logit of y ="), ("softmax", "logits of y ="), ("log", "log y =")]
)
def test_a_link_is_shown_as_what_was_observed(word: str, says: str) -> None:
    q = 3 if word == "softmax" else 1
    found = replace(deep_recovery(q), mapping=Link(form_of(word)))
    assert says in report.render(found)
    observed = story.shown(found)
    assert observed is not None
    expected = {"logit": 0.5, "softmax": 1.0 / 3.0, "log": 1.0}[word]
    np.testing.assert_allclose(observed.predicted, expected)


# -- what the page must not say ------------------------------------------------------------------------------


def test_nothing_is_pinned_down_where_it_is_not() -> None:
    known = replace(recovery(), units=Units((0, 1), (), ()))
    drowned = replace(known.standard_errors, b=np.full(2, 1e3))
    assert "every parameter is determined" in report.render(known)
    assert "determined, but for the sign of (w, b) of 1\u00a0unit" in report.render(recovery())
    assert "2 of 10 weights and biases are smaller than their standard error" in report.render(
        replace(known, standard_errors=drowned)
    )
    for status in (Status.NOT_RECOVERED, Status.UNDERDETERMINED, Status.AMBIGUOUS):
        assert "is determined" not in report.render(replace(known, status=status))


def test_advice_of_the_command_line_replaces_that_of_python() -> None:
    page = report.render(recovery(status=Status.NOT_RECOVERED, advice=("Try a larger --width",)))
    assert "Try a larger --width" in page
    assert "width=None" not in page


def test_no_unit_is_no_triumph() -> None:
    net = rl.Network(np.zeros((0, 2)), [], [], v=[1.0, 2.0], c=0.5)
    found = replace(recovery(target="power", target_spread=0.1), network=net, standard_errors=None, units=Units())
    page = report.render(found)  # noise 0.05 in a spread of 0.1
    assert "No hidden unit found: a linear fit explains 75 % of the variance of power" in page
    assert "Recovered up to noise" not in page


def test_an_output_bias_is_no_affine_part() -> None:
    found = recovery()
    net = found.network
    page = report.render(replace(found, network=rl.Network(net.W, net.b, net.a, c=0.5), standard_errors=None))
    assert "with an output bias" in page
    assert "v·x" not in page
    assert "<b>c</b>" in page
    assert "<b>x0</b>" not in page
    page = report.render(
        replace(found, network=rl.Network(net.W, net.b, net.a, v=[1.0, 0.0, 2.0]), standard_errors=None)
    )
    assert "with an affine part" in page
    assert "<b>x0</b>" in page


def test_weights_are_shown_per_standard_deviation_of_the_input() -> None:
    found = recovery(spread=(1000.0, 1.0, 1e-3))
    page = report.render(found)
    assert "per standard deviation of the input" in page
    assert f"{1000.0 * found.network.W[0, 0]:+.4g}</title>" in page
    assert "per unit of each input" in report.render(recovery())
    for wrong in ((1.0,), (1.0, float("nan"), 2.0), (1.0, -1.0, 2.0)):
        assert "per unit of each input" in report.render(recovery(spread=wrong))


def test_loss_curve_ends_where_the_result_ends() -> None:
    trace = (("start 1", (1.0, 4e-9)),)
    page = report.render(recovery(trace=trace, loss=1e-28))
    assert "ending at 1.0e-28" in page
    assert "signs and polish" in page
    assert "signs and polish" not in report.render(recovery(trace=trace, loss=4e-9))


def test_axes_have_the_name_of_the_target() -> None:
    page = report.render(recovery(shown=rows([1.0, 2.0], [1.0, 2.5]), target="power"))
    assert "predicted power" in page


@pytest.mark.parametrize("kind", ["safetensors", "json", "npz"])
def test_a_network_is_no_result(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"net.{kind}"
    recovery().network.save(path)
    with pytest.raises(rl.ModelFileError, match="this is a network; a report needs the file that"):
        report.load(path)


def test_whiskers_stay_in_their_frame() -> None:
    found = recovery()
    se = replace(found.standard_errors, b=np.full(2, 1e3), a=np.full(2, 1e3))
    tags = Reader(report.render(replace(found, standard_errors=se))).tags
    whiskers = [attributes for _, attributes in tags if attributes.get("class") == "whisker"]
    assert len(whiskers) == 4
    assert all(62 <= float(w[x] or 0) <= 426 for w in whiskers for x in ("x1", "x2"))
    assert all(14 <= float(w[y] or 0) <= 234 for w in whiskers for y in ("y1", "y2"))


def test_a_report_is_about_a_result(tmp_path: Path) -> None:
    with pytest.raises(rl.InvalidInput, match="got Network"):
        report.write(rl.planted.network(2, 1, rng=0), tmp_path / "report.html")  # type: ignore[arg-type]
