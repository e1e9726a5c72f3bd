"""Two hundred damaged, hostile and foreign files, read in a process that may take one gigabyte: a clear error each."""

from __future__ import annotations

import io
import json
import struct
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from relumine import Network
from relumine.results import ModelFileError

COUNT = 200
pytest.importorskip("onnx", reason="onnx is not installed: pip install 'relumine[onnx]'")

READER = """
import resource, sys, time
from pathlib import Path
import numpy as np
import onnx
import relumine as rl
from relumine.results import ModelFileError

# ru_maxrss would do, but a child inherits the peak of the process that started it
def kilobytes():
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

before = kilobytes()
pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
if pages:
    limit = pages * resource.getpagesize() + (1 << 30)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
refused = loaded = 0
for path in sorted(Path(sys.argv[1]).iterdir()):
    began = time.perf_counter()
    try:
        net = rl.Network.load(path)
    except ModelFileError as error:
        assert str(error), path
        refused += 1
    except BaseException as error:
        print("WRONG", path.name, type(error).__name__, str(error)[:200])
    else:
        assert all(np.isfinite(getattr(net, k)).all() for k in "Wbavc"), path
        assert np.isfinite(net(np.zeros((2, net.d)))).all(), path
        loaded += 1
    if time.perf_counter() - began > 60.0:
        print("SLOW", path.name)
peak = kilobytes() - before
assert peak * 1024 < 1 << 29, peak
print("refused", refused, "loaded", loaded)
"""


def networks() -> list[Network]:
    rng = np.random.default_rng(0)
    return [
        Network(rng.normal(size=(4, 3)), rng.normal(size=4), rng.normal(size=4), c=0.5),
        Network(rng.normal(size=(2, 5)), rng.normal(size=2), rng.normal(size=(3, 2)), "tanh", rng.normal(size=(3, 5))),
    ]


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """Cut, flipped, filled, doubled or mixed up."""
    way, out = rng.integers(5), bytearray(data)
    at = int(rng.integers(len(out)))
    if way == 0:
        return data[:at]
    if way == 1:
        for k in rng.integers(len(out), size=int(rng.integers(1, 20))):
            out[k] ^= int(rng.integers(1, 256))
    elif way == 2:
        size = int(rng.integers(1, 64))
        out[at : at + size] = bytes([int(rng.choice([0, 0x7F, 0xFF]))]) * size
    elif way == 3:
        out[at:at] = out[: int(rng.integers(1, len(out)))]
    else:
        head = int(rng.integers(4, 120))  # headers are where the sizes are
        for k in rng.integers(min(head, len(out)), size=4):
            out[k] = int(rng.integers(256))
    return bytes(out)


def tensor_file(header: object, body: bytes = b"", declared: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if declared is None else declared) + text + body


def native(**changes: object) -> dict[str, object]:
    meta = {"format": "relumine.network", "version": "1", "activation": "relu"}
    entry = {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}
    return {"__metadata__": meta, **{k: dict(entry) for k in "Wbavc"}, **changes}


def npy(shape: str, descr: str = "'<f8'", body: bytes = b"") -> bytes:
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + body


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def onnx_file(dims: list[int], raw: bytes = b"", kind: int = 11) -> bytes:
    from onnx import TensorProto, helper

    weight = TensorProto(name="W", dims=dims, data_type=kind, raw_data=raw)
    nodes = [helper.make_node("MatMul", ["x", "W"], ["z"]), helper.make_node("Relu", ["z"], ["h"])]
    nodes.append(helper.make_node("MatMul", ["h", "W"], ["y"]))
    info = [helper.make_tensor_value_info(name, kind, None) for name in "xy"]
    return helper.make_model(helper.make_graph(nodes, "g", info[:1], info[1:], [weight])).SerializeToString()


def by_hand() -> list[tuple[str, bytes]]:
    """Files that someone wrote with intent."""
    good = {"format": "relumine.network", "version": "1", "W": [[1.0, 2.0]], "b": [0.0], "a": [1.0]}
    big = {"dtype": "F64", "shape": [1 << 40, 1 << 20], "data_offsets": [0, 8]}
    long = {"dtype": "F64", "shape": [1 << 31], "data_offsets": [0, 1 << 34]}
    half = {"dtype": "F16", "shape": [4], "data_offsets": [0, 8]}
    empty = {"dtype": "F64", "shape": [0, 1 << 60], "data_offsets": [0, 0]}
    zeros = npy(f"({1 << 27},)", body=bytes(1 << 20))
    pickled = npy("(1,)", "'|O'", b"cposix\nsystem\n(S'echo'\ntR.")
    bomb = zipped(dict.fromkeys(("W.npy", "b.npy", "a.npy"), npy("(6553600,)", body=bytes(52428800))), 8)
    deep = 100_000
    files: list[tuple[str, object]] = [
        ("safetensors", b""),
        ("safetensors", tensor_file(b"{}", declared=(1 << 64) - 1)),
        ("safetensors", tensor_file(b"{}", declared=1 << 33)),
        ("safetensors", tensor_file(native(W=big), bytes(8))),
        ("safetensors", tensor_file(native(W=long), bytes(8))),
        ("safetensors", tensor_file(native(W=half), bytes(8))),
        ("safetensors", tensor_file(native(W=empty), bytes(8))),
        ("safetensors", tensor_file(b'{"a":' * deep, bytes(8))),
        ("safetensors", tensor_file({f"t{k}": native()["W"] for k in range(4000)}, bytes(8))),
        ("safetensors", tensor_file(native(__metadata__={"format": "relumine.network", "version": "2"}), bytes(8))),
        ("npz", bomb),
        ("npz", zipped({"W.npy": zeros, "b.npy": zeros, "a.npy": zeros}, zipfile.ZIP_DEFLATED)),
        ("npz", zipped(dict.fromkeys(("W.npy", "b.npy", "a.npy"), pickled))),
        ("npz", zipped({"W.npy": npy(f"({1 << 60}, {1 << 60})"), "b.npy": npy("(1,)"), "a.npy": npy("(1,)")})),
        ("npz", zipped({"W.npy": npy("(-1, 2)", body=bytes(16)), "b.npy": b"", "a.npy": b""})),
        ("npz", zipped({"W.npy": npy("(1, 2)", "'<c16'", bytes(32)), "b.npy": b"", "a.npy": b""})),
        ("npz", zipped({"W.npy": npy("(1, 2)", "[('x', '<f8')]", bytes(16)), "b.npy": b"", "a.npy": b""})),
        ("npz", zipped({"W.npy": npy("__import__('os').system('true')", body=bytes(16))})),
        ("npz", zipped({"W.npy": npy("(" * 5000)})),
        ("npz", zipped({"W.npy": npy(f"(0, {1 << 60})"), "b.npy": npy("(0,)"), "a.npy": npy("(0,)")})),
        ("npz", zipped({})),
        ("npz", zipped({"../W.npy": npy("(1,)", body=bytes(8))})),
        ("json", b"[" * deep),
        ("json", b'{"W":' * deep),
        ("json", b"null"),
        ("json", b"\xff\xfe\x00"),
        ("json", b"9" * 100_000),
        ("json", {**good, "W": [["1.0", "x" * 500_000], *[["y", "z"]] * 2000]}),
        ("json", {**good, "W": [[1.0], [1.0, 2.0]]}),
        ("json", {**good, "W": [[1.0, None]]}),
        ("json", {**good, "W": [[[1.0]]]}),
        ("json", {**good, "W": [], "b": [], "a": [], "shape": [0, 1 << 50]}),
        ("json", {**good, "b": [10**400]}),
        ("json", {**good, "activation": "__import__('os')"}),
        ("json", {**good, "activation": ["relu"]}),
        ("json", {**good, "activation": "polynomial(" + "1," * 100 + "nan)"}),
        ("json", json.dumps(good).replace("2.0", "NaN").encode()),
        ("json", json.dumps(good).replace("2.0", "1e999").encode()),
        ("onnx", b""),
        ("onnx", b"\x0a" * 3_000_000),
        ("onnx", b"\x3a\x80\x80\x80\x80\x80\x10" + bytes(8)),
        ("onnx", b"\x3a" + _varint(2 * 2_000_000) + b"\x0a\x00" * 2_000_000),
        ("onnx", onnx_file([1 << 40, 1 << 40], bytes(8))),
        ("onnx", onnx_file([-1, 2], bytes(16))),
        ("onnx", onnx_file([1, 1], bytes(7))),
        ("onnx", onnx_file([0, 1 << 40])),
        ("onnx", onnx_file([1, 1], bytes(8), kind=16)),
        ("onnx", onnx_file([1, 1], struct.pack("<d", float("nan")))),
        ("onnx", onnx_file([1, 1], bytes(1), kind=99)),
        ("pt", b"\x80\x04cposix\nsystem\n."),
        ("csv", b"a,b\n1,2\n"),
    ]
    return [(s, data if isinstance(data, bytes) else json.dumps(data).encode()) for s, data in files]


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def malformed(folder: Path) -> None:
    rng = np.random.default_rng(20)
    files = by_hand()
    valid = []
    for k, net in enumerate(networks()):
        for suffix in ("safetensors", "npz", "json", "onnx"):
            path = folder / f"valid{k}.{suffix}"
            net.save(path)
            valid.append((suffix, path.read_bytes()))
            path.unlink()
    while len(files) < COUNT:
        suffix, data = valid[len(files) % len(valid)]
        files.append((suffix, mutated(data, rng)))
    for k, (suffix, data) in enumerate(files):
        (folder / f"{k:03d}.{suffix}").write_bytes(data)


def test_two_hundred_malformed_files(tmp_path: Path) -> None:
    malformed(tmp_path)
    with (tmp_path / "sparse.safetensors").open("wb") as file:  # a terabyte on paper
        file.truncate(1 << 40)
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", READER, str(tmp_path)], capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr[-2000:]
    *wrong, summary = result.stdout.strip().splitlines()
    assert not wrong
    _, refused, _, loaded = summary.split()
    assert int(refused) + int(loaded) == COUNT + 1
    assert int(refused) >= 150  # what loads differs from a valid file in numbers only (JSON, ONNX have no checksum)


def same(one: Network, two: Network) -> bool:
    return one.activation == two.activation and all(
        np.array_equal(getattr(one, key), getattr(two, key)) for key in ("W", "b", "a", "v", "c")
    )


@pytest.mark.parametrize("suffix", ["onnx", "safetensors", "npz"])
@pytest.mark.parametrize("which", [0, 1])
def test_one_changed_byte_never_changes_a_number(tmp_path: Path, suffix: str, which: int) -> None:
    """Every byte of a file of ours, changed in a random way: the same network, or a refusal."""
    net, path = networks()[which], tmp_path / f"net.{suffix}"
    net.save(path)
    data = path.read_bytes()
    places = range(0, len(data), 1 if len(data) < 1500 else 2)
    read = list(readable_after_a_changed_byte(path, data, places, np.random.default_rng(which)))
    assert [at for at, back in read if not same(back, net)] == []
    assert len(read) < 0.5 * len(places)


def readable_after_a_changed_byte(
    path: Path, data: bytes, places: range, rng: np.random.Generator
) -> Iterator[tuple[int, Network]]:
    """The networks that can be read from the file with the byte at one of the places changed at random."""
    for at in places:
        out = bytearray(data)
        out[at] ^= int(rng.integers(1, 256))
        path.write_bytes(out)
        with suppress(ModelFileError):
            yield at, Network.load(path)


def foreign_graph(**gemm: float) -> bytes:
    """A graph as another tool writes it, square so that a lost transB would go unnoticed by shapes."""
    from onnx import helper, numpy_helper

    rng = np.random.default_rng(3)
    arrays = {"A": rng.normal(size=(3, 3)), "k": rng.normal(size=3), "B": rng.normal(size=(3, 1))}
    nodes = [
        helper.make_node("Gemm", ["x", "A", "k"], ["z"], **(gemm or {"transB": 1})),
        helper.make_node("Relu", ["z"], ["h"]),
        helper.make_node("MatMul", ["h", "B"], ["y"]),
    ]
    info = [helper.make_tensor_value_info("x", 11, ["N", 3]), helper.make_tensor_value_info("y", 11, ["N", 1])]
    constants = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


def test_a_damaged_foreign_graph_keeps_its_meaning(tmp_path: Path) -> None:
    """One changed byte beside the numbers: the same network, or a refusal (numbers of others have no checksum)."""
    path = tmp_path / "net.onnx"
    data = foreign_graph()
    path.write_bytes(data)
    net, rng = Network.load(path), np.random.default_rng(0)
    numbers = {number for key in ("W", "b", "a", "c") for number in np.ravel(getattr(net, key)).tolist()}
    for at, back in readable_after_a_changed_byte(path, data, range(len(data)), rng):
        changed = sum(number not in numbers for key in ("W", "b", "a", "c") for number in np.ravel(getattr(back, key)))
        assert same(back, net) or changed == 1, at
    path.write_bytes(data.replace(b"transB", b"transC"))
    with pytest.raises(ModelFileError, match="transC"):
        Network.load(path)
