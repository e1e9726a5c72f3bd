"""Black boxes behind one face: a function of an (n, d) array that returns (n, q). They may fail; the log copes."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from threading import Timer
from typing import Any

import numpy as np

from relumine.arrays import Array
from relumine.extraction.callers import LONGEST
from relumine.extraction.forms import estimator, features, is_estimator, is_keras, many_rows, named
from relumine.extraction.onnx_double import in_double, telling
from relumine.results import InvalidInput, MissingPackage

# Bytes a command may print for one call, and for each row besides: a box that prints without end must not fill the
# memory. A number takes 25 bytes at most, so a row may have a thousand outputs.
_MOST_OUTPUT, _MOST_PER_ROW = 1 << 24, 1 << 15


@dataclass(frozen=True)
class Box:
    """A black box: ``ask`` maps rows to values; ``kind`` is the precision it computes in; ``dim`` its inputs.

    ``columns``: the names of the inputs, if they have any.
    """

    ask: Callable[[Array], Any]
    name: str
    kind: type[np.floating[Any]] = np.float64
    dim: int | None = None
    columns: tuple[str, ...] | None = None

    def rounded(self, X: Array) -> Array:
        """The rows as the box will see them: what is asked and what is remembered must be the same numbers."""
        return X if self.kind is np.float64 else X.astype(self.kind).astype(np.float64)


@dataclass(frozen=True)
class Calling:
    """How a function wants to be asked: ``rows`` "one" at a time or "many" (None: found out), ``columns`` of a frame.

    ``link``: probabilities are wanted, where an estimator can give them.
    """

    link: str | None = None
    rows: str | None = None
    columns: tuple[str, ...] | None = None

    def box(self, f: Callable[[Any], Any], name: str, kind: type[np.floating[Any]] = np.float64) -> Box:
        """A box of a function that is called so."""
        ask = many_rows(f, self.rows)
        if self.columns is None:
            return Box(ask, name, kind)
        return Box(named(ask, self.columns), name, kind, len(self.columns), self.columns)


_MODELS = (".h5", ".keras", ".pkl", ".pickle", ".joblib", ".pt", ".pth", ".safetensors", ".npz", ".tflite", ".pb")


def open_box(f: Any, timeout: float = 300.0, calling: Calling | None = None) -> Box:
    """A box from a callable, an estimator, a torch module, "module:function", an ONNX file, or a command.

    A command reads rows of comma-separated numbers on its standard input and prints as many lines of numbers. It is
    started without a shell.
    """
    calling = calling or Calling()
    if isinstance(f, os.PathLike) or (isinstance(f, str) and f.strip().lower().endswith(".onnx") and " " not in f):
        return _onnx(Path(f))
    if isinstance(f, str):
        spec = re.fullmatch(r"([A-Za-z_][\w.]*):([A-Za-z_][\w.]*)", f.strip())
        if spec:
            return replace(open_box(_imported(spec[1], spec[2]), timeout, calling), name=f)
        try:
            f = shlex.split(f)
        except ValueError as error:
            raise InvalidInput(f"the command {f!r} cannot be split into words: {error}") from None
        if len(f) == 1 and f[0].lower().endswith(_MODELS):
            raise InvalidInput(
                f"{f[0]}: of model files only .onnx can be asked",
                remedy="load the model in Python and pass it, or a function that calls it",
            )
    if isinstance(f, Sequence) and f and all(isinstance(word, str) for word in f):
        return _command([*f], timeout)
    if type(f).__module__ != "builtins" and hasattr(f, "state_dict") and hasattr(f, "parameters"):
        return _torch(f)
    if is_estimator(f):
        known, names = features(f)
        columns = calling.columns or (tuple(names) if names else None)
        box = replace(calling, rows="many", columns=columns).box(estimator(f, calling.link), type(f).__name__)
        return replace(box, dim=known if box.dim is None else box.dim)
    if is_keras(f):
        return calling.box(lambda X: np.asarray(f(X)), type(f).__name__, np.float32)
    if callable(f):
        return calling.box(f, getattr(f, "__name__", type(f).__name__))
    raise InvalidInput(
        "the black box must be a callable, an estimator with predict, 'module:function', a path to an .onnx file, "
        f"a torch module, or a command; got {type(f).__name__}"
    )


def _imported(module: str, name: str) -> Callable[[Array], Any]:
    try:
        found: Any = import_module(module)
    except (Exception, SystemExit) as error:  # the user's own code runs here, and may raise anything
        missing = isinstance(error, ModuleNotFoundError) and error.name == module.partition(".")[0]
        where = f"there is no {module.partition('.')[0]}.py here, nor an installed package of that name"
        why = where if missing else f"{type(error).__name__}: {error}"
        raise InvalidInput(f"{module} cannot be imported ({why})") from error
    try:
        for part in name.split("."):
            found = getattr(found, part)
    except AttributeError as error:
        raise InvalidInput(f"{module}:{name} cannot be imported: {error}") from None
    if not (callable(found) or is_estimator(found)):
        raise InvalidInput(f"{module}:{name} is not a function")
    return found  # type: ignore[no-any-return]


def _onnx(path: Path) -> Box:
    """The file as it is, or computed in double where it is in single precision and the runtime can do that."""
    if not path.is_file():
        raise InvalidInput(f"no such ONNX file: {path}")
    try:
        ort = import_module("onnxruntime")
    except ImportError:
        raise MissingPackage("asking an ONNX file needs onnxruntime", "onnx", "onnxruntime") from None
    session = _doubled(ort, path)
    if session is not None:
        names = [output.name for output in session.get_outputs()]
    else:
        try:
            session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        except Exception as error:  # the runtime's own kinds of error
            raise InvalidInput(f"onnxruntime cannot open {path}: {error}") from None
        outputs = session.get_outputs()
        names = [outputs[i].name for i in telling([output.type for output in outputs])]
    inputs = session.get_inputs()
    kinds: dict[str, type[np.floating[Any]]] = {"tensor(double)": np.float64, "tensor(float)": np.float32}
    if len(inputs) != 1 or inputs[0].type not in kinds:
        raise InvalidInput(f"{path} must have one input of floating-point numbers; it has {[i.type for i in inputs]}")
    (entry,) = inputs
    kind, last = kinds[entry.type], entry.shape[-1] if entry.shape else None

    def ask(X: Array) -> Any:
        parts = session.run(names, {entry.name: X.astype(kind)})
        if isinstance(parts[0], list):  # a dictionary of probabilities for each row
            return np.array([[*row.values()] for row in parts[0]])
        return parts[0] if len(parts) == 1 else np.column_stack(parts)

    return Box(ask, path.name, kind, last if isinstance(last, int) else None)


def _doubled(ort: Any, path: Path) -> Any:
    """A session of the model in double precision, or None where an operator has none."""
    model, quiet = in_double(path), ort.SessionOptions()
    quiet.log_severity_level = 4
    try:
        return model and ort.InferenceSession(model, quiet, providers=["CPUExecutionProvider"])
    except Exception:  # the runtime's own kinds of error: then the file is asked as it is
        return None


def _torch(module: Any) -> Box:
    """A copy in double precision, in evaluation mode: the rounding of single precision would hide the last digits."""
    torch = import_module("torch")
    try:
        asked = deepcopy(module).double().eval()
    except Exception as error:  # whatever the module's own copying raises
        raise InvalidInput(f"the torch module cannot be copied: {error}; pass a function instead") from None
    first = next(asked.parameters(), None)
    place = "cpu" if first is None else first.device
    matrices = [p for p in asked.parameters() if p.ndim == 2]

    def ask(X: Array) -> Any:
        with torch.no_grad():
            return asked(torch.from_numpy(X).to(place)).cpu().numpy()

    return Box(ask, type(module).__name__, dim=int(matrices[0].shape[1]) if matrices else None)


def _command(words: list[str], timeout: float) -> Box:
    def ask(X: Array) -> Any:
        rows = "\n".join(",".join(map(repr, row)) for row in X.tolist()) + "\n"
        with TemporaryFile() as given, TemporaryFile() as said:
            given.write(rows.encode())
            given.seek(0)
            with subprocess.Popen(words, stdin=given, stdout=subprocess.PIPE, stderr=said) as process:
                printed = _bounded(process, timeout, _MOST_OUTPUT + _MOST_PER_ROW * len(X))
            said.seek(0)
            complaint = said.read(1 << 16).decode(errors="replace")
        if process.returncode:
            raise RuntimeError(f"the command ended with code {process.returncode}: {complaint.strip()[-300:]}")
        lines = [line for line in printed.decode(errors="replace").splitlines() if line.strip()]
        return np.array([[float(word) for word in re.split(r"[,;\s]+", line.strip(",; \t"))] for line in lines])

    return Box(ask, words[0])


def _bounded(process: subprocess.Popen[bytes], timeout: float, most: int) -> bytes:
    """What the command prints, as long as it is not too much and not too late."""
    assert process.stdout is not None
    ended = Timer(min(timeout, LONGEST), process.kill)
    ended.start()
    try:
        printed = process.stdout.read(most + 1)
        if len(printed) > most:
            process.kill()
            raise RuntimeError(f"the command printed more than {most >> 20} MB for one call")
        process.wait()
        if not ended.is_alive():
            raise TimeoutError(f"the command took longer than {timeout:g} s")
        return printed
    finally:
        ended.cancel()
