"""The report in a real browser: it renders, nothing complains, sorting works, a phone and a printer can show it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

import relumine as rl
from relumine import report
from relumine.results import Predictions

_SPEC = spec_from_file_location("browser", Path(__file__).with_name("browser.py"))
assert _SPEC is not None
assert _SPEC.loader is not None
browser = module_from_spec(_SPEC)
_SPEC.loader.exec_module(browser)

pytestmark = pytest.mark.skipif(bool(browser.MISSING), reason=browser.MISSING)
COLUMN = "return [...document.querySelectorAll('.sortable tbody tr')].map(r => Number(r.cells[arguments[0]].dataset.v))"


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with browser.chromium(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    truth = rl.planted.network(16, 5, rng=0)
    X, y = rl.planted.sample(truth, 900, noise=0.05, rng=1)
    found = rl.recover(X, y, 5, rng=0)
    search = replace(found.search, trace=(("a", (1.0, 0.1)), ("b", (0.01, 1e-3))))
    found = replace(found, search=search, shown=Predictions(y[:80, None], truth(X[:80])[:, None]))
    names = ["<script>document.title='owned'</script>", *(f"sensor {j}" for j in range(15))]
    path = tmp_path_factory.mktemp("page") / "report.html"
    report.write(found, path, features=names, title="a & b.csv")
    return path


def test_renders_without_complaint(window: Any, page: Path) -> None:
    window.look(1200)
    window.open(page)
    assert window.console() == []
    assert window.run("return document.title").startswith("Recovered up to noise")
    assert window.run("return document.querySelector('h1').innerText").endswith("behind 16 inputs.")
    sizes = window.run(
        "return [...document.querySelectorAll('svg')].map(s => s.getBoundingClientRect()).map(r => [r.width, r.height])"
    )
    assert len(sizes) == 5
    assert min(min(size) for size in sizes) > 100
    # text of a plot must not run out of its picture
    outside = window.run(
        "return [...document.querySelectorAll('svg text')].filter(t => {const a = t.getBoundingClientRect(),"
        "b = t.ownerSVGElement.getBoundingClientRect(); return a.left < b.left - 2 || a.right > b.right + 2}).length"
    )
    assert outside == 0


@pytest.mark.parametrize("how", ["click", "keyboard"])
def test_sorting(window: Any, page: Path, how: str) -> None:
    window.open(page)
    before = window.run(COLUMN, 2)

    def press() -> None:
        action = "click" if how == "click" else "focus"
        window.run(f"document.querySelectorAll('.sortable th button')[2].{action}()")
        if how == "keyboard":
            window.press("\ue007")  # Enter

    press()
    assert window.run(COLUMN, 2) == sorted(before)
    assert window.run("return document.querySelectorAll('.sortable th')[2].getAttribute('aria-sort')") == "ascending"
    press()
    assert window.run(COLUMN, 2) == sorted(before, reverse=True)
    assert "descending" in window.run("return document.getElementById('sorted').textContent")
    assert sorted(window.run(COLUMN, 0)) == [0, 1, 2, 3, 4]
    assert window.console() == []


@pytest.mark.parametrize("width", [390, 768, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_no_page_is_wider_than_its_screen(window: Any, page: Path, width: int, dark: bool) -> None:
    window.look(width, dark=dark)
    window.open(page)
    assert window.run("return document.documentElement.scrollWidth") <= width
    paper, ink = window.run("const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]")
    light = [sum(int(v) for v in colour[4:-1].split(",")) / 3 for colour in (paper, ink)]
    assert (light[0] < light[1]) == dark
    assert abs(light[0] - light[1]) > 150


def test_prints(window: Any, page: Path) -> None:
    window.look(1200)
    window.open(page)
    pdf = window.pdf()
    assert pdf.startswith(b"%PDF")
    assert pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") <= 8


def test_images_show(window: Any, tmp_path: Path) -> None:
    net = rl.planted.network(64, 6, rng=0)
    X, y = rl.planted.sample(net, 64 * 6 * 5, rng=1)
    path = tmp_path / "images.html"
    report.write(rl.recover(X, y, 6, rng=0), path, image_shape=(8, 8))
    window.look(1200)
    window.open(path)
    sizes = window.run("return [...document.images].map(i => [i.naturalWidth, i.naturalHeight])")
    assert sizes == [[8, 8]] * 6
    assert window.console() == []
