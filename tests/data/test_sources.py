"""Sources in memory and as streams: the same rows whatever the chunks, and errors that say where."""

from __future__ import annotations

import threading
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relumine.data.holdout import kept_apart
from relumine.data.sources import Source, count, materialise, open_source, take
from relumine.data.sources.chunks import read_ahead
from relumine.data.sources.constant import without_constants
from relumine.data.views import Between, Only, View, Without, seen, without
from relumine.results import InvalidInput

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(53, 3)), RNG.normal(size=(53, 2))
WEIGHT = RNG.uniform(0.5, 2.0, size=53)
CUTS = (0, 1, 20, 20, 53)


def pairs() -> list[tuple[np.ndarray, np.ndarray]]:
    return [(X[a:b], Y[a:b]) for a, b in pairwise(CUTS)]


def saved(path: Path, kind: str) -> Source:
    if kind == "array":
        return open_source(X, Y)
    if kind == "list":
        return open_source(pairs())
    if kind == "npz":
        np.savez_compressed(path / "s.npz", X=X, y=Y)
        return open_source(path / "s.npz")
    np.save(path / "X.npy", np.asfortranarray(X) if kind == "columns" else X)
    np.save(path / "y.npy", Y)
    if kind == "memmap":
        return open_source(np.load(path / "X.npy", mmap_mode="r"), np.load(path / "y.npy", mmap_mode="r"))
    return open_source(str(path / "X.npy"), str(path / "y.npy"))


KINDS = ("array", "list", "npz", "npy", "columns", "memmap")


@pytest.mark.parametrize("kind", KINDS)
def test_every_pass_gives_the_same_rows_in_chunks_of_any_size(kind: str, tmp_path: Path) -> None:
    source = saved(tmp_path, kind)
    assert isinstance(source, Source)
    whole = materialise(source)
    np.testing.assert_array_equal(whole.X, X)
    np.testing.assert_array_equal(whole.y, Y)
    assert (source.d, source.q, source.vector, count(source)) == (3, 2, False, 53)
    for rows in (None, 1, 7, 53, 1000):
        chunks = list(source.chunks(rows))
        assert all(len(c.Y) <= (rows or 10**9) and c.X.flags.c_contiguous for c in chunks)
        assert [c.first for c in chunks] == np.cumsum([0] + [len(c.Y) for c in chunks])[:-1].tolist()
        np.testing.assert_array_equal(np.concatenate([c.X for c in chunks]), whole.X)
        np.testing.assert_array_equal(np.concatenate([c.Y for c in chunks]), whole.y)


@pytest.mark.parametrize("kind", KINDS)
def test_reduce_sums_and_take_takes(kind: str, tmp_path: Path) -> None:
    source = saved(tmp_path, kind)
    whole = materialise(source)
    total, rows = source.reduce(lambda c: (c.X.T @ c.Y, np.array(float(len(c.Y)))))
    np.testing.assert_allclose(total, whole.X.T @ whole.y, rtol=1e-13, atol=1e-13)
    assert rows == 53
    few, numbers = take(source, 9, np.random.default_rng(1))
    assert len(np.unique(numbers)) == 9
    np.testing.assert_array_equal(few.X, whole.X[numbers])
    np.testing.assert_array_equal(few.y, whole.y[numbers])
    np.testing.assert_array_equal(take(source, np.array([0, 52]))[0].X, whole.X[[0, 52]])
    with pytest.raises(InvalidInput, match="no row 53"):
        take(source, np.array([3, 53]))


def test_take_is_uniform() -> None:
    source = open_source([(np.zeros((5, 1)), np.zeros(5)), (np.zeros((15, 1)), np.zeros(15))])
    hits = np.zeros(20)
    for seed in range(600):
        hits[take(source, 4, np.random.default_rng(seed))[1]] += 1
    assert np.abs(hits / 600 - 0.2).max() < 5 * np.sqrt(0.2 * 0.8 / 600)


@given(st.lists(st.integers(0, 12), min_size=1, max_size=8), st.integers(1, 9))
def test_any_cut_of_the_rows_is_the_same_source(sizes: list[int], rows: int) -> None:
    edges = np.cumsum([0, *sizes])
    n = int(edges[-1])
    A = np.arange(2.0 * n).reshape(n, 2)
    source = open_source([(A[a:b], A[a:b, 0]) for a, b in pairwise(edges)])
    got = [c.X for c in source.chunks(rows)]
    np.testing.assert_array_equal(np.concatenate([np.empty((0, 2)), *got]), A)


def test_a_generator_is_read_once_and_says_so() -> None:
    source = open_source(pair for pair in pairs())
    assert source.passes == 1
    head = source.head(5)  # not a pass
    np.testing.assert_array_equal(head.X, X[:5])
    assert source.reduce(lambda c: (c.X.sum(axis=0),))[0] == pytest.approx(X.sum(axis=0))
    with pytest.raises(InvalidInput, match="cannot be read again: only the moment stage"):
        list(source.chunks())


def test_the_first_rows_whatever_the_chunks() -> None:
    for source in (open_source(X, Y, chunk=2), open_source(pairs()), open_source(iter(pairs()))):
        np.testing.assert_array_equal(source.head(30).X, X[:30])
        np.testing.assert_array_equal(source.head(1000).Y, Y)
        assert count(source) == 53  # still there


def test_a_dataframe_with_a_target_column() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=Y[:, 0], w=WEIGHT, name="ann")
    source = open_source(frame, target="y", features=["c", "a"], sample_weight="w")
    np.testing.assert_array_equal(materialise(source).X, X[:, [2, 0]])
    assert (source.names, source.vector) == (("c", "a"), True)
    assert open_source(frame[["a", "b"]], Y).names == ("a", "b")
    with pytest.raises(InvalidInput, match="column 'name' is not numeric"):
        open_source(frame, target="y")


def test_one_column_needs_no_list() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["date", "b", "c"]).assign(y=Y[:, 0])
    assert open_source(frame, target="y", ignore="date").names == ("b", "c")
    assert open_source(frame, target="y", features="date").names == ("date",)


def test_weights_travel_and_rows_of_weight_zero_do_not(tmp_path: Path) -> None:
    weight = WEIGHT.copy()
    weight[[3, 50]] = 0.0
    np.savez(tmp_path / "s.npz", X=X, y=Y[:, 0], w=weight)
    chunked = [(X[a:b], Y[a:b, 0], weight[a:b]) for a, b in pairwise(CUTS)]
    expected = materialise(open_source(X, Y[:, 0], sample_weight=weight))
    for source in (open_source(tmp_path / "s.npz", sample_weight="w"), open_source(chunked)):
        found = materialise(source)
        np.testing.assert_array_equal(found.X, expected.X)
        np.testing.assert_allclose(found.weight, expected.weight)
        assert found.y.ndim == 1
        assert count(source) == 51


def test_float32_is_kept_as_such() -> None:
    source = open_source(X, Y, storage="float32", chunk=10)
    assert {c.X.dtype for c in source.chunks()} == {np.dtype(np.float32)}
    assert {c.Y.dtype for c in source.chunks()} == {np.dtype(np.float64)}
    total = source.reduce(lambda c: (c.X.sum(axis=0),))[0]
    assert total.dtype == np.float64
    with pytest.raises(InvalidInput, match="input"):
        list(open_source(np.full((3, 1), 1e60), np.ones(3), storage="float32").chunks())


def spoilt(value: float) -> list[tuple[np.ndarray, np.ndarray]]:
    Z = X.copy()
    Z[30, 1] = value
    return [(Z[a:b], Y[a:b]) for a, b in pairwise(CUTS)]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_bad_rows_are_named_or_skipped_and_counted(value: float, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"input column 1 is -?(nan|inf) in chunk 3, row 10"):
        list(open_source(spoilt(value)).chunks(3))
    source = open_source(spoilt(value), bad_rows="skip")
    for _ in range(2):  # counted anew in every pass
        assert count(source) == 52
        assert source.skipped == 1
    np.testing.assert_array_equal(materialise(source).X, np.delete(X, 30, axis=0))
    np.save(tmp_path / "X.npy", np.concatenate([p[0] for p in spoilt(value)]))
    mapped = open_source(np.load(tmp_path / "X.npy", mmap_mode="r"), Y, chunk=4)
    with pytest.raises(InvalidInput, match="in X, row 30"):
        list(mapped.chunks())
    with pytest.raises(InvalidInput, match=r"X column 1 is -?(nan|inf) in row 30"):
        open_source(np.concatenate([p[0] for p in spoilt(value)]), Y)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"X": []}, "empty"),
        ({"X": [(X, Y[:4])]}, r"chunk 0 must be X \(k, d\)"),
        ({"X": [(X, Y), (X[:, :2], Y)]}, "chunk 1 has X"),
        ({"X": [(X, Y), (X, "text")]}, "chunk 1 is not"),
        ({"X": [(X, Y, -WEIGHT)]}, "sample_weight is -"),
        ({"X": [(1e200 * X, Y)]}, "rescale"),
        ({"X": X}, "y is missing"),
        ({"X": X, "y": Y, "target": "y"}, "not with arrays .*; pass y"),
        ({"X": X, "y": Y, "engine": "dask"}, "pass dask arrays"),
        ({"X": X, "y": Y, "chunk": 0}, "at least 1"),
        ({"X": np.ma.masked_less(X, 0.0), "y": Y, "bad_rows": "skip"}, "masked array"),
        ({"X": np.full((3, 2), "a"), "y": Y[:3], "bad_rows": "skip"}, "real numbers"),
        ({"X": X, "y": Y, "bad_rows": "ignore"}, "bad_rows must be"),
        ({"X": "nowhere.npz"}, "no such file"),
        ({"X": "nowhere.npz", "y": Y}, "y= goes with .*, not with an npz file"),
        ({"X": "nowhere.npz", "features": ["x0"]}, "not with an npz file"),
        ({"X": "nowhere.csv", "y": Y}, "name the column"),
        ({"X": "nowhere.csv", "target": "y", "one_hot": True, "engine": "dask"}, "reads all rows into memory"),
        ({"X": open_source(X, Y), "target": "y"}, "not with a source that is open already"),
        ({"X": open_source(X, Y), "sample_weight": Y}, "not with a source that is open already"),
        ({"X": [(X, Y)], "sample_weight": Y}, "give chunks"),
        ({"X": "nowhere.parquet", "target": "y"}, "no such file: nowhere.parquet"),
    ],
)
def test_what_cannot_be_used_is_named(arguments: dict[str, object], word: str) -> None:
    with pytest.raises(InvalidInput, match=word):
        list(open_source(**arguments).chunks())


def test_damaged_npz_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "s.npz"
    np.savez(path, X=X, z=Y)
    with pytest.raises(InvalidInput, match="no member 'y'; it has: X, z"):
        open_source(path)
    np.savez(path, X=np.array([{}], dtype=object), y=Y)
    with pytest.raises(InvalidInput, match=r"member .X.|real numbers"):
        open_source(path)
    np.savez(path, X=X, y=Y)
    path.write_bytes(path.read_bytes()[:-400])
    with pytest.raises(InvalidInput, match="not a readable npz"):
        open_source(path)
    np.save(tmp_path / "X.npy", X)
    (tmp_path / "X.npy").write_bytes((tmp_path / "X.npy").read_bytes()[:-8])
    with pytest.raises(InvalidInput, match="not a readable npy"):
        open_source(tmp_path / "X.npy", Y)


def test_reading_runs_ahead_but_not_far_and_ends_with_the_work() -> None:
    taken: list[int] = []

    def numbers():
        for i in range(100):
            taken.append(i)
            yield i

    items = read_ahead(numbers(), depth=2)
    assert next(items) == 0
    time.sleep(0.3)
    assert 2 <= len(taken) <= 4  # one in work, two waiting, one in hand
    items.close()
    time.sleep(0.3)
    assert not any(t.name == "relumine-read-ahead" for t in threading.enumerate())


def test_an_error_of_the_reader_or_of_the_work_arrives_and_stops_the_thread() -> None:
    def broken():
        yield pairs()[0]
        raise ZeroDivisionError("in the reader")

    with pytest.raises(ZeroDivisionError, match="in the reader"):
        open_source(broken()).reduce(lambda c: (c.X.sum(axis=0),))

    def fail(chunk: object) -> tuple[np.ndarray, ...]:
        raise KeyError("in the work")

    with pytest.raises(KeyError, match="in the work"):
        open_source(pairs()).reduce(fail)
    time.sleep(0.3)
    assert not any(t.name == "relumine-read-ahead" for t in threading.enumerate())


@pytest.mark.parametrize("kind", ["array", "list", "npy"])
def test_a_source_without_some_rows_counts_and_numbers_the_others(kind: str, tmp_path: Path) -> None:
    out = np.array([0, 19, 20, 52])
    source = saved(tmp_path, kind)
    count(source)
    rest = without(source, out)
    assert rest.n == 49
    assert count(rest) == 49
    np.testing.assert_array_equal(np.concatenate([c.X for c in rest.chunks(7)]), np.delete(X, out, axis=0))
    np.testing.assert_array_equal(rest.rows_at(np.array([0, 18, 48])).X, X[[1, 21, 51]])  # numbered anew
    numbers = np.array([2, 18, 30])
    np.testing.assert_array_equal(take(rest, numbers)[0].X, np.delete(X, out, axis=0)[numbers])
    with pytest.raises(InvalidInput, match="no row 49"):
        rest.rows_at(np.array([3, 49]))


@pytest.mark.parametrize("kind", ["array", "list", "npy"])
@pytest.mark.parametrize("view", [Without(np.array([0, 3, 40])), Only(np.array([2, 20, 21, 50])), Between(5, 31)])
def test_rows_of_a_view_are_taken_by_the_numbers_they_have_in_it(kind: str, view: View, tmp_path: Path) -> None:
    part = seen(saved(tmp_path, kind), view)
    whole = np.concatenate([chunk.X for chunk in part.chunks()])
    numbers = np.array([0, 1, 3])
    np.testing.assert_array_equal(take(part, numbers)[0].X, whole[numbers])
    fewer = seen(part, Without(np.array([1, 2])))  # numbers are those of the view before
    np.testing.assert_array_equal(materialise(fewer).X, np.delete(whole, [1, 2], axis=0))


@pytest.mark.parametrize("kind", ["array", "list", "npy"])
def test_rows_kept_apart_are_not_among_those_taken_from_the_rest(kind: str, tmp_path: Path) -> None:
    rest, held = kept_apart(saved(tmp_path, kind), np.random.default_rng(0), 20)
    few, _ = take(rest, 30, np.random.default_rng(1))
    assert few.n == 30
    assert not {*map(tuple, few.X)} & {*map(tuple, held.X)}


@pytest.mark.parametrize("kind", ["array", "list"])
def test_constant_inputs_are_left_out_unless_none_varies(kind: str) -> None:
    def opened(Z: np.ndarray) -> Source:
        return open_source(Z, Y) if kind == "array" else open_source([(Z[:20], Y[:20]), (Z[20:], Y[20:])])

    Z = X.copy()
    Z[:, 1] = 3.0
    fewer, kept = without_constants(opened(Z))
    assert kept.tolist() == [0, 2]
    np.testing.assert_array_equal(materialise(fewer).X, X[:, [0, 2]])
    same, all_of_them = without_constants(opened(np.full_like(X, 3.0)))
    assert same.d == 3
    assert all_of_them.tolist() == [0, 1, 2]
