"""`relumine extract`: ask a black box until the network inside it is certain."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from relumine.cli import options
from relumine.cli.outcome import Outputs, check_seconds, finish, read_files
from relumine.cli.recover import with_rows
from relumine.cli.table import columns_of
from relumine.cli.talk import Talk
from relumine.cli.watch import Watch
from relumine.recovery.costs import rows_to_ask
from relumine.results import InvalidInput, Origin, counted

__all__ = ["extract"]

_ROWS_SHOWN = 1000


def extract(
    spec: Annotated[str | None, typer.Argument(help="module:function (also from this folder) or an ONNX file.")] = None,
    command: Annotated[
        str | None, typer.Option(help="A command that reads rows of numbers, a,b,c, and prints a line for each.")
    ] = None,
    dim: Annotated[int | None, typer.Option(help="Number of inputs; an ONNX file knows it.", min=1, max=10**6)] = None,
    width: options.Width = None,
    depth: Annotated[
        int | None, typer.Option(help="Number of hidden layers, if you know it; default: found.", min=1)
    ] = None,
    widths: Annotated[str | None, typer.Option(help="Units of each hidden layer, if you know them: 32,32.")] = None,
    budget: Annotated[
        int | None, typer.Option(help="Most rows to ask; default: as many as it takes.", min=1, max=10**9)
    ] = None,
    random_rows: Annotated[bool, typer.Option("--random", help="Draw all rows instead of choosing them.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how many rows it would take.")] = False,
    activation: options.ActivationName = "relu",
    link: options.Link = None,
    mean: Annotated[float | None, typer.Option(help="Where inputs usually are, 0 by default.")] = None,
    scale: Annotated[float | None, typer.Option(help="How far from --mean they usually are, 1 by default.")] = None,
    low: Annotated[
        float | None, typer.Option(help="Ask in the range --low … --high instead of N(0, 1); --low 0: positive inputs.")
    ] = None,
    high: Annotated[float | None, typer.Option(help="See --low.")] = None,
    fixed: Annotated[
        str | None, typer.Option(help="Inputs that must not change, by number or name: 3=0.5,age=40.")
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="Names of the inputs, a,b,c; the function then gets a DataFrame.")
    ] = None,
    total: Annotated[float | None, typer.Option(help="The inputs of every row sum to this.")] = None,
    rate_limit: Annotated[float | None, typer.Option(help="Most rows per second.")] = None,
    timeout: Annotated[float, typer.Option(help="Seconds one call may take.")] = 300.0,
    workers: Annotated[int, typer.Option(help="Calls at the same time.", min=1, max=1024)] = 1,
    queries: Annotated[Path | None, typer.Option(help="Keep all questions and answers, .npz.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the file of --queries.")] = False,
    out: options.Out = None,
    report_file: options.ReportFile = None,
    save: options.Save = None,
    force: options.Force = False,
    seed: options.Seed = 0,
    seconds: options.Seconds = None,
    images: options.Images = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Recover the network inside a black box by asking it.

    Running a module:function or a --command executes that code: only name what you trust.

    \b
    relumine extract simulator:response --dim 6                 a function, of many rows or of one
    relumine extract models:pipeline                            a fitted scikit-learn estimator
    relumine extract models:classifier --link auto              probabilities
    relumine extract model.onnx --link auto                     a file of a classifier
    relumine extract --command './simulate -q' --dim 6          a program
    relumine extract pricing:premium --columns age,sum,years    a function of a DataFrame
    relumine extract simulator:shares --dim 6 --total 1 --low 0 --high 1
    """  # noqa: D301 - that is how typer is told to keep the lines
    from relumine.extraction import extract as ask

    box = _box(spec, command)
    talk, outputs = Talk(as_json, quiet), Outputs(out, report_file, save, force)
    outputs.check(*read_files(spec or ""), *([] if queries is None else [queries]))
    check_seconds(seconds)
    shape = options.image_shape(images, dim) if dim is not None else None
    layers = None if widths is None else options.whole_numbers(widths, "widths")
    if dry_run:
        if dim is None:
            raise InvalidInput("--dry-run needs --dim, the number of inputs", argument="dim")
        _expected(dim, width, layers)
        return
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # as `python -m` does
    more: dict[str, Any] = {"budget": budget, "depth": depth, "widths": layers}
    restricted: dict[str, Any] = {"total": total, "fixed": _assignments(fixed), "columns": columns_of(columns) or None}
    with talk.listening(), Watch(seconds, quiet) as watch:
        found = ask(
            box,
            dim,
            width,
            **more,
            **restricted,
            queries="random" if random_rows else "chosen",
            link=link,  # type: ignore[arg-type]  # checked at the door
            mean=mean,
            scale=scale,
            low=low,
            high=high,
            timeout=timeout,
            workers=workers,
            rate_limit=rate_limit,
            save=queries,
            resume=resume,
            rng=seed,
            seconds=seconds,
            activation=activation,
            progress=watch,
            on_failure="return",
        )
    found = replace(found, origin=Origin(source=box, seed=seed))
    finish(with_rows(found, found.X[:_ROWS_SHOWN], found.y[:_ROWS_SHOWN]), talk, outputs, shape)


def _expected(dim: int, width: int | None, widths: list[int] | None) -> None:
    """Says how many rows to expect: for what is known of the box, or for some sizes."""
    if widths is not None and len(widths) > 1:
        rows = rows_to_ask(dim, widths)
        typer.echo(f"{' and '.join(map(str, widths))} hidden units: about {rows:,} rows, within a factor of two")
        return
    for m in widths or ([8, 32, 128] if width is None else [width]):
        rows, drawn = rows_to_ask(dim, m), 5 * m * (dim + 1)
        typer.echo(f"{counted(m, 'hidden unit')}: about {rows:,} rows ({drawn:,} or more with --random)")


def _box(spec: str | None, command: str | None) -> str:
    """The black box, named in one of two ways."""
    if (spec is None) == (command is None):
        raise InvalidInput("name the black box: module:function, a file .onnx, or --command '…' (one of them)")
    if spec is not None and ":" not in spec and not spec.lower().endswith(".onnx"):
        raise InvalidInput(f"{spec!r} is neither module:function nor a file .onnx; a program goes into --command")
    return spec or command or ""


def _assignments(text: str | None) -> dict[int | str, float]:
    """number=value or name=value, separated by commas."""
    try:
        pairs = [word.split("=") for word in columns_of(text)]
        return {int(name) if name.isdecimal() else name: float(value) for name, value in pairs}
    except ValueError:
        raise InvalidInput(f"--fixed is a list like 3=0.5,age=40, got {text!r}", argument="fixed") from None
