"""`relumine extract`: ask a black box until the network inside it is certain."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relumine.cli import options
from relumine.cli.outcome import Outputs, check_seconds, finish, read_files
from relumine.cli.recover import ROWS_SHOWN, with_rows
from relumine.cli.table import columns_of
from relumine.cli.talk import Talk
from relumine.cli.watch import Watch
from relumine.recovery.costs import rows_to_ask
from relumine.results import InvalidInput, Origin, counted

if TYPE_CHECKING:
    from relumine.extraction import Extraction


_Spec = Annotated[str | None, typer.Argument(help="module:function (also from this folder) or an ONNX file.")]
_Command = Annotated[
    str | None, typer.Option(help="A command that reads rows of numbers, a,b,c, and prints a line for each.")
]
_Dim = Annotated[
    int | None, typer.Option(help="Number of inputs; ONNX files and fitted estimators know it.", min=1, max=10**6)
]
_Depth = Annotated[int | None, typer.Option(help="Number of hidden layers, if you know it; default: found.", min=1)]
_Widths = Annotated[str | None, typer.Option(help="Units of each hidden layer, if you know them: 32,32.")]
_Budget = Annotated[
    int | None, typer.Option(help="How many rows to ask at most; default: two million.", min=1, max=10**9)
]
_RandomRows = Annotated[bool, typer.Option("--random", help="Ask random rows only, instead of chosen ones.")]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say how many rows it would take.")]
_Mean = Annotated[float | None, typer.Option(help="Where inputs usually are, 0 by default.")]
_Scale = Annotated[float | None, typer.Option(help="How far from --mean they usually are, 1 by default.")]
_Low = Annotated[float | None, typer.Option(help="Ask only between --low and --high; --low 0 alone: positive inputs.")]
_High = Annotated[float | None, typer.Option(help="See --low.")]
_Fixed = Annotated[str | None, typer.Option(help="Inputs that must not change, by number or name: 3=0.5,age=40.")]
_Columns = Annotated[str | None, typer.Option(help="Names of the inputs, a,b,c; the function then gets a DataFrame.")]
_Total = Annotated[float | None, typer.Option(help="The inputs of every row sum to this.")]
_RateLimit = Annotated[float | None, typer.Option(help="How many rows to ask per second at most.")]
_Timeout = Annotated[float, typer.Option(help="Seconds one call may take.")]
_Workers = Annotated[int, typer.Option(help="How many calls to make at the same time.", min=1, max=1024)]
_Queries = Annotated[Path | None, typer.Option(help="Keep all rows asked and their answers, .npz.")]
_Resume = Annotated[bool, typer.Option("--resume", help="Go on from the file of --queries.")]


def extract(
    spec: _Spec = None,
    command: _Command = None,
    dim: _Dim = None,
    width: options.Width = None,
    depth: _Depth = None,
    widths: _Widths = None,
    budget: _Budget = None,
    random_rows: _RandomRows = False,
    dry_run: _DryRun = False,
    activation: options.ActivationName = "relu",
    link: options.Link = None,
    mean: _Mean = None,
    scale: _Scale = None,
    low: _Low = None,
    high: _High = None,
    fixed: _Fixed = None,
    columns: _Columns = None,
    total: _Total = None,
    rate_limit: _RateLimit = None,
    timeout: _Timeout = 300.0,
    workers: _Workers = 1,
    queries: _Queries = None,
    resume: _Resume = False,
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
    box, layers = _box(spec, command), None if widths is None else options.whole_numbers(widths, "widths")
    talk, outputs = Talk(as_json, quiet), Outputs(out, report_file, save, force)
    outputs.check(*read_files(spec or ""), *([] if queries is None else [queries]))
    check_seconds(seconds)
    if dim is not None:
        options.image_shape(images, dim)
    if dry_run:
        _expected(dim, width, layers)
        return
    shape = {"width": width, "depth": depth, "widths": layers, "activation": activation, "link": link}
    region = {"mean": mean, "scale": scale, "low": low, "high": high, "total": total, "fixed": _assignments(fixed)}
    manner = {"timeout": timeout, "workers": workers, "rate_limit": rate_limit, "save": queries, "resume": resume}
    limits = {"budget": budget, "seconds": seconds, "queries": "random" if random_rows else "chosen", "rng": seed}
    named = {"columns": columns_of(columns) or None}
    with talk.listening(), Watch(seconds, quiet) as watch:
        found = _found(box, dim, progress=watch, **shape, **region, **manner, **limits, **named)
    found = replace(found, origin=Origin(source=box, seed=seed))
    rows = found.X[:ROWS_SHOWN], found.y[:ROWS_SHOWN]
    finish(with_rows(found, *rows), talk, outputs, options.image_shape(images, found.network.d))


def _found(box: str, dim: int | None, **given: Any) -> Extraction:
    """What the library finds; modules of the folder at hand can be named."""
    from relumine.extraction import extract as ask

    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # as `python -m` does
    return ask(box, dim, **given, on_failure="return")


def _expected(dim: int | None, width: int | None, widths: list[int] | None) -> None:
    """Says how many rows to expect: for what is known of the box, or for some sizes."""
    if dim is None:
        raise InvalidInput("--dry-run needs --dim, the number of inputs", argument="dim")
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
