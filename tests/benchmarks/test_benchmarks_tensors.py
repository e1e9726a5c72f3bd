"""What docs/awasthi.md says of measurements: small cells run, and the words are those of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from benchmarks.counting import Count
from benchmarks.measures import tensor_method, tensors


def report(measure: Any, rows: list[dict[str, Any]], settings: dict[str, Any] | None = None) -> dict[str, Any]:
    head = {"measure": measure.NAME, "complete": True, "seconds": 1.0, "settings": settings or measure.QUICK}
    return head | {"rows": rows}


def quick(measure: Any) -> dict[str, Any]:
    """All cells of one seed."""
    settings = measure.QUICK | {"seeds": 1}
    return report(measure, [{"key": key, **work()} for key, work in measure.cells(settings, {})], settings)


def test_exact_tensors_and_their_estimates() -> None:
    found = quick(tensors)
    text = tensors.elsewhere(found)["docs/awasthi.md"]
    assert all(r["error"] < 1e-10 for r in found["rows"] if "case" in r)
    assert "| (6, 6, 1), two units 5° apart |" in text
    assert "| regressed, in the span of the weights | $3\\cdot10^3$ |" in text
    counted = tensors.comparable(found)
    assert counted["exact, (6, 15, 2)"] == Count(1, 1)
    assert counted["precision of T4, in the span over plain"].ratio > 1.0


def test_biases_at_roots_replace_the_first_four() -> None:
    net = tensors.with_roots(6, 6, 0)
    np.testing.assert_allclose(net.b[:4] * (net.b[:4] ** 2 - 1.0) * (net.b[:4] ** 2 - 3.0), 0.0, atol=1e-12)
    assert net.b.shape == (6,)


def test_the_method_from_samples() -> None:
    found = quick(tensor_method)
    text = tensor_method.elsewhere(found)["docs/awasthi.md"]
    for words in ("**Parameter error from samples**", "**Algorithm 5** on 4 units", "| (2, 3) | $10^5$ |"):
        assert words in text
    assert "it found 10 of 10 directions from exact tensors" in text
    counted = tensor_method.comparable(found)
    assert counted["all units, parameters (6, 3, 10000)"] == Count(1, 1)
    assert counted["Algorithm 5 within 5 %"] == Count(1, 1)


def test_no_direction_is_counted_twice() -> None:
    W = np.array([[1.0, 0.0], [0.98, 0.2]])
    assert tensor_method.cosines(W, np.array([[2.0, 0.0]])) == [1.0, 0.0]
    assert tensor_method.cosines(W, np.zeros((0, 2))) == [0.0, 0.0]
    assert min(tensor_method.cosines(W, -W[::-1])) == pytest.approx(1.0)


def test_a_missing_unit_counts() -> None:
    """One of three networks at 10⁴ lacks a unit: the median is of three, the range of two."""
    errors = {10_000: [0.4, None, 0.2], 40_000: [0.2, 0.3, 0.1]}
    rows = [
        {"part": "parameters", "d": 5, "m": 3, "n": n, "seed": seed, "units": 3, "error": error}
        for n, column in errors.items()
        for seed, error in enumerate(column)
    ]
    text, lines = tensor_method.parameters(report(tensor_method, rows))
    assert "| $10^4$ | 2/3 | 0.4 | 0.2–0.4 |" in lines
    assert "| $4\\cdot10^4$ | 3/3 | 0.2 | 0.1–0.3 |" in lines
    assert "The median falls like $n^{-0.50}$" in text
    rows = [row | {"error": None} for row in rows]
    text, lines = tensor_method.parameters(report(tensor_method, rows))
    assert "| $10^4$ | 0/3 | inf |  |" in lines
    assert "falls" not in text


@pytest.mark.parametrize("measure", [tensors, tensor_method])
def test_nothing_is_said_of_half_a_run(measure: Any) -> None:
    assert measure.elsewhere(report(measure, []) | {"complete": False}) == {}


def test_numbers_as_the_page_shows_them() -> None:
    assert [tensors.power(n) for n in (10_000, 300_000, 1_000_000)] == ["10^4", "3\\cdot10^5", "10^6"]
    assert tensors.spread(np.array([0.214, 1.5, 123.4])) == ["1.5", "0.21–123"]
    assert tensors.spread(np.array([])) == ["", ""]
