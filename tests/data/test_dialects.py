"""Tables of text in any dialect: worked out, said, read to the last bit; parsed once; hostile ones refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest

import relumine as rl
from relumine.data.sources import count, materialise, open_source
from relumine.data.sources import spill as spilling
from relumine.data.sources.dialect import MISSING, Squeeze, sniff
from relumine.data.sources.tables import look
from relumine.recovery.task import make_task
from relumine.results import InvalidInput

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3)) * 10.0 ** RNG.integers(-9, 9, size=(60, 3))


def text(delimiter: str = ",", decimal: str = ".", header: str | None = "a b y") -> str:
    lines = [] if header is None else [delimiter.join(header.split())]
    lines += [delimiter.join(repr(float(v)).replace(".", decimal) for v in row) for row in X]
    return "\n".join(lines) + "\n"


def put(path: Path, content: str | bytes) -> str:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", " "])
@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("header", ["a b y", None])
def test_every_dialect_is_worked_out(delimiter: str, decimal: str, header: str | None, tmp_path: Path) -> None:
    if delimiter == decimal:
        pytest.skip("such numbers need quotes")
    path = put(tmp_path / "t.csv", text(delimiter, decimal, header))
    source = open_source(path, target="y" if header else "x2")
    np.testing.assert_array_equal(materialise(source).X, X[:, :2])
    np.testing.assert_array_equal(materialise(source).y, X[:, 2])
    assert source.names == (("a", "b") if header else ("x0", "x1"))
    said = " ".join(source.assumed)
    assert ("separated" in said) == (delimiter != ",")
    assert ("decimal mark" in said) == (decimal != ".")
    assert ("no header" in said) == (header is None)
    given = open_source(path, target="y" if header else "x2", delimiter=delimiter, decimal=decimal)
    np.testing.assert_array_equal(materialise(given).X, X[:, :2])


@pytest.mark.parametrize("name", ["t.tsv", "t.txt", "t.dat", "t.csv.gz", "t.tsv.gz"])
def test_endings(name: str, tmp_path: Path) -> None:
    content = text("\t").encode()
    path = put(tmp_path / name, gzip.compress(content) if name.endswith("gz") else content)
    np.testing.assert_array_equal(materialise(open_source(path, target="y")).X, X[:, :2])


def test_quotes_commas_spaces_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = put(tmp_path / "q.csv", b'\xef\xbb\xbf"flow, total",b,y\n"1,5","2,0","3,25"\n"2,5","1,0","4,5"\n')
    source = open_source(path, target="y", decimal=",")
    assert source.names == ("flow, total", "b")
    np.testing.assert_array_equal(materialise(source).X, [[1.5, 2.0], [2.5, 1.0]])
    path = put(tmp_path / "s.txt", "  a    b  y \r\n   1.5  2   3\r\n\r\n 4     5.25 6  \r\n")
    np.testing.assert_array_equal(materialise(open_source(path, target="y")).X, [[1.5, 2.0], [4.0, 5.25]])


def test_runs_of_spaces_at_any_cut() -> None:
    raw = b"   1   2 \n  3 \t 4\r\n\n 5  6   "
    whole = Squeeze()(raw)
    assert whole == b"1 2\n3 4\n\n5 6"
    for cut in range(len(raw)):
        squeeze = Squeeze()
        assert squeeze(raw[:cut]) + squeeze(raw[cut:]) == whole


@pytest.mark.parametrize("decimal", [".", ","])
def test_bad_cells_are_named_or_skipped_in_any_dialect(decimal: str, tmp_path: Path) -> None:
    lines = text(";", decimal).splitlines()
    lines[7] = "1;oops;3"
    lines[9] = "1;2"
    path = put(tmp_path / "t.csv", "\n".join(lines))
    with pytest.raises(InvalidInput, match="row 8 has 'oops'"):
        open_source(path, target="y")
    source = open_source(path, target="y", bad_rows="skip")
    np.testing.assert_array_equal(materialise(source).X, np.delete(X, [6, 8], axis=0)[:, :2])
    assert source.skipped == 2
    seen = look(path)
    assert (seen.names, set(seen.text), seen.mixed) == (("a", "b", "y"), {"b"}, {"b"})


def test_no_target(tmp_path: Path) -> None:
    source = open_source(put(tmp_path / "t.csv", text()), target=[], features=["b", "a"])
    assert (source.q, materialise(source).X.tolist()) == (0, X[:, [1, 0]].tolist())
    np.savez(tmp_path / "a.npz", X=X)
    assert open_source(tmp_path / "a.npz", target=[]).d == 3
    np.save(tmp_path / "a.npy", X)
    one = open_source(tmp_path / "a.npy", target="x1", features=["x2", "x0"])
    np.testing.assert_array_equal(materialise(one).X, X[:, [2, 0]])
    np.testing.assert_array_equal(materialise(one).y, X[:, 1])
    with pytest.raises(InvalidInput, match="no target"):
        make_task(materialise(source), rl.activations.RELU, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("options", "word"),
    [({"delimiter": ",,"}, "one character"), ({"decimal": ";"}, "decimal is"), ({"delimiter": "|"}, "no column")],
)
def test_wrong_options_are_named(options: dict[str, str], word: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=word):
        open_source(put(tmp_path / "t.csv", text()), target="y", **options)
    with pytest.raises(InvalidInput, match="goes with files with columns, not with arrays"):
        open_source(X[:, :2], X[:, 2], **options)


# parsed once


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    calls: list[object] = []
    real = pyarrow.csv.open_csv

    def counted(*args: object, **options: object) -> object:
        calls.append(args[0])
        return real(*args, **options)

    monkeypatch.setattr(pyarrow.csv, "open_csv", counted)
    return calls


def planted_csv(path: Path, noise: float) -> tuple[rl.Network, str]:
    truth = rl.planted.network(d=4, m=2, rng=0)
    Z, y = rl.planted.sample(truth, n=12_000, noise=noise, rng=1)
    np.savetxt(path, np.column_stack([Z, y]), fmt="%.17g", delimiter=",", header="a,b,c,d,y", comments="")
    return truth, str(path)


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_a_csv_is_parsed_at_most_twice_in_a_whole_recovery(noise: float, tmp_path: Path, opened: list[object]) -> None:
    truth, path = planted_csv(tmp_path / "t.csv", noise)
    found = rl.recover(path, target="y", width=2, rng=0, memory=1e6)
    assert found.ok
    assert found.search.rows >= 11_000
    assert rl.metrics.parameter_error(truth, found.network) < (0.05 if noise else 1e-9)
    assert len(opened) <= 2  # a look at the columns, and one pass


def test_what_is_kept_are_the_numbers(tmp_path: Path, opened: list[object]) -> None:
    weight = RNG.uniform(0.5, 1.0, size=len(X))
    rows = [f"{a!r},{b!r},{y!r},{w!r}" for (a, b, y), w in zip(X.tolist(), weight.tolist())]
    source = open_source(put(tmp_path / "t.csv", "\n".join(["a,b,y,w", *rows])), target="y", sample_weight="w", chunk=7)
    assert source.n is None
    source.head(5)
    first = list(source.chunks())
    assert source.n == count(source) == len(X)
    before = len(opened)
    for again in (list(source.chunks()), list(source.chunks(11))):
        for k in range(3):
            one, other = (np.concatenate([c[k] for c in chunks]) for chunks in (first, again))
            np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(source.rows_at(np.array([3, 50])).X, X[[3, 50], :2])
    assert len(opened) == before


def test_a_pass_that_ends_early_or_a_full_disk_keeps_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: list[object]
) -> None:
    path = put(tmp_path / "t.csv", text())
    source = open_source(path, target="y", chunk=7)
    chunks = source.chunks()
    next(chunks)
    chunks.close()
    assert source.kept is None
    monkeypatch.setattr(spilling, "_SHARE", 0.0)
    for _ in range(2):
        np.testing.assert_array_equal(np.concatenate([c.X for c in source.chunks()]), X[:, :2])
    assert source.kept is None
    monkeypatch.setattr(spilling, "_disk", lambda: None)
    assert count(open_source(path, target="y")) == len(X)


def test_no_file_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    source = open_source(put(tmp_path / "t.csv", text()), target="y")
    assert count(source) == len(X)
    assert source.kept is not None
    assert list(folder.iterdir()) == []


def test_memory_is_no_disk() -> None:
    mounted = Path("/dev/shm")
    if not mounted.is_dir():
        pytest.skip("no such folder here")
    assert spilling._file_system(str(mounted)) in (*spilling._IN_MEMORY, "overlay", "ext4", "")


# hostile and enormous


def test_a_header_of_a_hundred_kilobytes(tmp_path: Path) -> None:
    names = [f"a column with a long name, number {j:06d}" for j in range(3000)]
    rows = "\n".join(",".join(["1.5"] * 3000) for _ in range(2))
    path = put(tmp_path / "wide.csv", ",".join(f'"{name}"' for name in names) + "\n" + rows)
    source = open_source(path, target=names[-1])
    assert source.d == 2999
    np.testing.assert_array_equal(materialise(source).X, np.full((2, 2999), 1.5))


def test_a_line_cut_off_by_the_first_look_does_not_count(tmp_path: Path) -> None:
    """Forty lines of 5 kB: the first look ends within one, whose marks are fewer than those of the others."""
    path = tmp_path / "wide.csv"
    path.write_text("".join(";".join(f"{k}{j % 7},25" for j in range(800)) + "\n" for k in range(40)))
    dialect = sniff(path)
    assert (dialect.delimiter, dialect.decimal) == (";", ",")


def test_lines_of_megabytes_are_read_or_named(tmp_path: Path) -> None:
    wide = ",".join(["0" * 140 + "0.12345678901234567"] * 20_000)  # 3 MB
    path = put(tmp_path / "wide.csv", wide + "\n" + wide + "\n")
    dialect = sniff(path)
    assert dialect.names is not None
    assert len(dialect.names) == 20_000
    source = open_source(path, target="x19999", features=["x0", "x19998"])
    np.testing.assert_array_equal(materialise(source).X, np.full((2, 2), 0.12345678901234567))
    lines = ["a,note,y", *(f"{i},short,{i}" for i in range(100)), f"1,{'z' * (3 << 20)},2", "3,short,4"]
    path = put(tmp_path / "one.csv", "\n".join(lines))
    read = materialise(open_source(path, target="y", features=["a"], chunk=10))
    np.testing.assert_array_equal(read.X[:, 0], [*range(100), 1, 3])
    for at in (1, 101):
        lines[at] = f"1,{'z' * (40 << 20)},2"
        with pytest.raises(InvalidInput, match=rf"one\.csv, line {at + 1}, has 41943044 bytes"):
            list(open_source(put(tmp_path / "one.csv", "\n".join(lines)), target="y", features=["a"]).chunks())
        lines[at] = "1,short,2"


def npy_header(shape: str) -> bytes:
    words = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode()
    words += b" " * (117 - len(words)) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(words).to_bytes(2, "little") + words


@pytest.mark.parametrize(
    "shape", ["(10, 1099511627776)", "(4611686018427387904, 2)", "(2, -3)", "(1152921504606846976, 16)"]
)
def test_headers_are_held_against_the_file(shape: str, tmp_path: Path) -> None:
    import zipfile

    path = put(tmp_path / "X.npy", npy_header(shape) + bytes(800))
    for call in (lambda: open_source(path, np.ones(10)), lambda: open_source(path, target="x0")):
        with pytest.raises(InvalidInput, match=r"X\.npy is not a readable npy"):
            call()
    for kind in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        with zipfile.ZipFile(tmp_path / "a.npz", "w", kind) as archive:
            archive.writestr("X.npy", npy_header(shape) + bytes(800))
            archive.writestr("y.npy", npy_header("(10,)") + bytes(80))
        with pytest.raises(InvalidInput, match="member 'X'"):
            open_source(tmp_path / "a.npz")


@pytest.mark.parametrize("gap", MISSING)
def test_a_gap_in_the_first_row_makes_no_header_of_it(gap: str, tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", f"1.5,{gap},2\n2,3,4\n1,2,3\n")
    source = open_source(path, target="x2", bad_rows="skip")
    assert source.names == ("x0", "x1")
    assert (count(source), source.skipped) == (2, 1)


def test_a_comma_between_thousands_is_no_decimal_mark_where_numbers_have_points(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", "a;b;y\n1.5;1,200;2.5\n2.25;3,400;0.5\n")
    assert sniff(path).decimal == "."
    with pytest.raises(InvalidInput, match=r"column 'b' is not numeric.*numbers plainly"):
        open_source(path, target="y")


@pytest.mark.parametrize("commented", [(True, False), (False, True), (True, True)])
def test_parts_of_a_table_may_have_comments_of_their_own(commented: tuple[bool, bool], tmp_path: Path) -> None:
    Z = np.arange(24.0).reshape(8, 3)
    for part, (rows, said) in enumerate(zip((Z[:4], Z[4:]), commented)):
        np.savetxt(tmp_path / f"{part}.csv", rows, delimiter=",", header="of the pump" if said else "")
    whole = materialise(open_source(str(tmp_path / "*.csv"), target="x2"))
    assert np.array_equal(np.column_stack([whole.X, whole.y]), Z)
