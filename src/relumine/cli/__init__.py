"""The command line, a module per command. It converts and shows; it computes nothing."""

from __future__ import annotations

from typing import Annotated

import typer

import relumine as rl
from relumine.cli.advise import advise
from relumine.cli.decode import decode
from relumine.cli.demo import demo
from relumine.cli.export import export
from relumine.cli.extract import extract
from relumine.cli.guard import Guard
from relumine.cli.paper import paper
from relumine.cli.predict import predict
from relumine.cli.recover import recover
from relumine.cli.report import report

__all__ = ["app"]

app = typer.Typer(
    name="relumine",
    cls=Guard,
    help="Find the weights of an unknown neural network from samples of it, or by asking it.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 not recovered, 2 bad input, 3 stopped early, 4 a package is missing, 70 a fault of "
    "relumine, 74 a file could not be written, 130 aborted.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for command in (demo, recover, extract, report, predict, export, advise, decode, paper):
    app.command()(command)


def _version(show: bool) -> None:
    if show:
        typer.echo(f"relumine {rl.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks; may be given anywhere on the line.")] = False,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="Show where your own code failed (a black box); anywhere on the line.")
    ] = False,
) -> None:
    """Find the weights of an unknown neural network from samples of it, or by asking it."""
