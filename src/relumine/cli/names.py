"""Names of the inputs, kept with a network where its file can hold them, so that new rows are matched by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from relumine.formats import tensors
from relumine.formats.files import write_atomically
from relumine.formats.parameters import Parameters
from relumine.network import Network
from relumine.report import load
from relumine.results import ModelFileError

__all__ = ["keep", "names_in"]


def keep(net: Network, path: Path, features: Sequence[str] | None) -> None:
    """Write a network, with the names of its inputs if the format has room for them (safetensors)."""
    if features is None or path.suffix.lower() != ".safetensors":
        net.save(path)
        return
    parameters = Parameters(net.W, net.b, net.a, net.v, net.c, net.activation)
    write_atomically(path, tensors.to_bytes(parameters, features))


def names_in(path: Path) -> list[str]:
    """Names of the inputs in a network file or a saved result; none if there are none."""
    kind = path.suffix.lower()
    if kind == ".safetensors":
        return tensors.names_of(path)
    if kind != ".json":
        return []
    try:
        names = load(path).details.get("features")
    except ModelFileError:
        return []
    return [str(name) for name in names] if isinstance(names, list) else []
