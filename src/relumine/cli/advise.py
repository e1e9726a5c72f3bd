"""`relumine advise`: sizes in, words out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from relumine.cli import options
from relumine.cli.exits import FAILED
from relumine.cli.outcome import check_file
from relumine.recovery.advice import advise as ask
from relumine.report import write_text


def advise(
    dim: Annotated[int, typer.Option(help="Number of inputs d.")],
    width: Annotated[str, typer.Option(help="Number of hidden units; 32,32 for two hidden layers.")],
    activation: Annotated[str, typer.Option(help="relu, tanh, squared_relu, polynomial(0,0,0,1), …")] = "relu",
    samples: Annotated[int, typer.Option(help="Samples you have; 0: say how many are needed.", min=0)] = 0,
    separated: Annotated[
        bool, typer.Option(help="Judge for any well separated weights, not only for random ones.")
    ] = False,
    noise: Annotated[bool, typer.Option(help="The labels are noisy.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the advice as JSON.")] = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Also write it to a file, .txt or .json.")] = None,
) -> None:
    """Can a network of this size be recovered?

    By which method, from how many samples or queries, and roughly at what cost on this machine.

    Exit codes: 0 worth trying, 1 hopeless, too few samples or too large for this machine, 2 bad input.
    """
    weights: Literal["random", "separated"] = "separated" if separated else "random"
    layers = options.whole_numbers(width, "width")
    if out is not None:
        check_file(out, (".txt", ".json"))
    advice = ask(dim, layers, activation, samples or None, weights=weights, noise=noise)
    if out is not None:
        write_text(out, json.dumps(advice.to_dict()) if out.suffix.lower() == ".json" else f"{advice}\n")
    if as_json:
        typer.echo(json.dumps(advice.to_dict()))
    else:
        Console(highlight=False).print(str(advice), markup=False)
    if not advice.worth_trying:
        raise typer.Exit(FAILED)
