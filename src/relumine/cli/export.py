"""`relumine export`: a network in another format."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Annotated

import typer

import relumine as rl
from relumine.cli.names import opened
from relumine.cli.options import AsJson, Quiet
from relumine.cli.outcome import check_file
from relumine.cli.talk import Talk
from relumine.formats.files import write_atomically
from relumine.results import InvalidInput

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
    """Write a network in another format. torch: the state dict of Network.to_torch(link=…).

    The link goes with it: ONNX and torch then give probabilities; the other formats keep its name.
    """
    if to not in _SUFFIX:
        raise InvalidInput(f"--to is one of {', '.join(_SUFFIX)}; got {to!r}")
    net, labels = opened(network)
    target = network.with_suffix(_SUFFIX[to]) if out is None else out
    endings = (".pt", ".pth") if to == "torch" else (_SUFFIX[to],)
    check_file(target, endings, sources=(network,))
    if float32 and to != "onnx":
        raise InvalidInput("--float32 is for ONNX; the other formats keep double precision")
    if to == "torch":
        _save_torch(net, target, labels.link)
    else:
        net.save(target, dtype="float32" if float32 else "float64", labels=labels)
    Talk(as_json, quiet).answer(f"{to}: {target}", {"written": {to: str(target)}, "d": net.d, "m": net.m, "q": net.q})


def _save_torch(net: rl.Network, target: Path, link: str) -> None:
    module = net.to_torch(link=link)
    import torch

    content = io.BytesIO()
    torch.save(module.state_dict(), content)
    write_atomically(target, content.getvalue())
