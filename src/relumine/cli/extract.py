"""`relumine extract`: ask a black box until the network inside it is certain."""

from __future__ import annotations

import os
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from relumine.cli.guard import in_options
from relumine.cli.options import AsJson, Quiet, Seed, activation_names, image_shape
from relumine.cli.recover import check_outputs, check_seconds, finish
from relumine.cli.talk import Talk
from relumine.cli.watch import Watch
from relumine.results import InvalidInput, RelumineWarning

__all__ = ["extract"]


def extract(
    spec: Annotated[str | None, typer.Argument(help="module:function (also from this folder) or an ONNX file.")] = None,
    command: Annotated[
        str | None, typer.Option(help="A command that reads rows of numbers, a,b,c, and prints a line for each.")
    ] = None,
    dim: Annotated[int | None, typer.Option(help="Number of inputs; an ONNX file knows it.", min=1, max=10**6)] = None,
    width: Annotated[int | None, typer.Option(help="Hidden units; default: found.", min=0, max=100_000)] = None,
    budget: Annotated[int | None, typer.Option(help="Most rows to ask.", min=1, max=10**9)] = None,
    random_rows: Annotated[bool, typer.Option("--random", help="Draw all rows instead of choosing them.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how many rows it would take.")] = False,
    activation: Annotated[str, typer.Option(help="Activation of the units.", autocompletion=activation_names)] = "relu",
    low: Annotated[float | None, typer.Option(help="Ask in the range --low … --high instead of N(0, 1).")] = None,
    high: Annotated[float | None, typer.Option(help="See --low.")] = None,
    rate_limit: Annotated[float | None, typer.Option(help="Most rows per second.")] = None,
    timeout: Annotated[float, typer.Option(help="Seconds a command may take for one call.")] = 300.0,
    queries: Annotated[Path | None, typer.Option(help="Keep all questions and answers, .npz.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the file of --queries.")] = False,
    out: Annotated[Path | None, typer.Option(help="Save the network: .safetensors, .onnx, .npz or .json.")] = None,
    report_file: Annotated[Path | None, typer.Option("--report", help="Write a page to look at, .html.")] = None,
    save: Annotated[Path | None, typer.Option(help="Save the whole result, .json, for `relumine report`.")] = None,
    seed: Seed = 0,
    seconds: Annotated[float | None, typer.Option(help="Time limit; then the best so far is kept.")] = None,
    images: Annotated[str | None, typer.Option(help="Inputs are an image, HEIGHTxWIDTH or 'square'.")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Recover the network inside a black box by asking it.

    Running a module:function or a --command executes that code: only name what you trust.
    """
    from relumine.extraction import estimate
    from relumine.extraction import extract as ask

    if (spec is None) == (command is None):
        raise InvalidInput("name the black box: module:function, a file .onnx, or --command '…' (one of them)")
    if spec is not None and ":" not in spec and not spec.lower().endswith(".onnx"):
        raise InvalidInput(f"{spec!r} is neither module:function nor a file .onnx; a program goes into --command")
    check_outputs(out, report_file, save)
    check_seconds(seconds)
    shape = image_shape(images, dim) if dim is not None else None
    talk = Talk(as_json, quiet)
    if dry_run:
        if dim is None:
            raise InvalidInput("--dry-run needs --dim, the number of inputs", argument="dim")
        widths = [width] if width is not None else [8, 32, 128]
        for m in widths:
            typer.echo(f"{dim}-{m}: about {estimate(dim, m)} rows, chosen; {5 * m * (dim + 1)} or more, random")
        return
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # as `python -m` does
    with Watch(seconds, quiet) as watch, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RelumineWarning)
        found = ask(
            command if command is not None else spec,
            dim,
            width,
            budget,
            queries="random" if random_rows else "chosen",
            low=low,
            high=high,
            timeout=timeout,
            rate_limit=rate_limit,
            save=queries,
            resume=resume,
            rng=seed,
            seconds=seconds,
            activation=activation,
            progress=watch,
            on_failure="return",
        )
    for warning in caught:
        talk.warn(f"warning: {warning.message}")
    details: dict[str, Any] = {
        "seed": seed,
        "source": spec or command,
        "advice": [in_options(found.status.advice)],
        "trace": [t for t in watch.trace if not t[0].startswith("queries")],
    }
    if "held_out" not in found.details and len(found.X):
        some = {"truth": found.y[:1000], "predicted": found.network(found.X[:1000]), "used_in_fit": True}
        details["held_out"] = some
    found = replace(found, details={**found.details, **details})
    count = {"queries": found.queries, "calls": found.calls, "retried": found.retried, "dropped": found.dropped}
    finish(found, talk, out, report_file, save, shape, count)
