"""`relumine export`: a network in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import relumine as rl
from relumine.cli.names import keep, names_in
from relumine.cli.options import AsJson, Quiet
from relumine.cli.talk import Talk
from relumine.results import InvalidInput, ModelFileError

__all__ = ["export", "network_of"]

_SUFFIX = {"onnx": ".onnx", "torch": ".pt", "npz": ".npz", "json": ".json", "safetensors": ".safetensors"}


def formats() -> list[str]:
    """For shell completion."""
    return list(_SUFFIX)


def export(
    network: Annotated[Path, typer.Argument(help="A network (.safetensors, .onnx, .npz, .json) or a saved result.")],
    to: Annotated[str, typer.Option(help="onnx, torch, npz, json or safetensors.", autocompletion=formats)],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Default: the same name with the new ending.")] = None,
    float32: Annotated[bool, typer.Option("--float32", help="ONNX in single precision.")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write a network in another format. torch: the state dict of Network.to_torch()."""
    if to not in _SUFFIX:
        raise InvalidInput(f"--to is one of {', '.join(_SUFFIX)}; got {to!r}")
    net = network_of(network)
    target = network.with_suffix(_SUFFIX[to]) if out is None else out
    if target.is_dir():
        raise InvalidInput(f"{target} is a folder; name a file with --out")
    if target.exists() and target.resolve() == network.resolve():
        raise InvalidInput(f"{target} would overwrite the network itself; name another file with --out")
    if to != "torch" and target.suffix.lower() != _SUFFIX[to]:
        raise InvalidInput(f"{target}: a {to} file should end in {_SUFFIX[to]}")
    if float32 and to != "onnx":
        raise InvalidInput("--float32 is for ONNX; the other formats keep double precision")
    if to == "torch":
        _save_torch(net, target)
    elif to == "safetensors":
        keep(net, target, names_in(network) or None)
    else:
        net.save(target, dtype="float32" if float32 else "float64")
    Talk(as_json, quiet).answer(f"{to}: {target}", {"written": {to: str(target)}, "d": net.d, "m": net.m, "q": net.q})


def network_of(path: Path) -> rl.Network:
    """The network in a model file or in a saved result."""
    if path.suffix.lower() == ".json":
        from relumine.report import load

        try:
            return load(path).network
        except ModelFileError:
            pass  # a network as JSON, then; its reader has the better words if it is neither
    return rl.Network.load(path)


def _save_torch(net: rl.Network, target: Path) -> None:
    module = net.to_torch()
    import torch

    partial = target.with_name(f".{target.name}.partial")
    try:
        torch.save(module.state_dict(), partial)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
