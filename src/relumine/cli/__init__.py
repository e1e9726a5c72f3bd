"""The command line, a module per command. It converts and shows; it computes nothing."""

from __future__ import annotations

from typing import Annotated

import typer

import relumine as rl
from relumine.cli.decode import decode
from relumine.cli.demo import demo

__all__ = ["app"]

app = typer.Typer(
    name="relumine",
    help="Recover the weights of an unknown one-hidden-layer network from samples of its inputs and outputs.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command()(demo)
app.command()(decode)


def _version(show: bool) -> None:
    if show:
        typer.echo(f"relumine {rl.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Recover the weights of an unknown one-hidden-layer network from samples of its inputs and outputs."""
