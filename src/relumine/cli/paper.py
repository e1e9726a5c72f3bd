"""`relumine paper`: compute and draw a figure of one of the papers."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from relumine import papers as folders
from relumine.results import InvalidInput


def papers() -> list[str]:
    """The papers that have experiments: folders with a figure."""
    return sorted(
        m.name
        for m in pkgutil.iter_modules(folders.__path__)
        if m.ispkg and find_spec(f"relumine.papers.{m.name}.figure")
    )


def paper(
    name: Annotated[
        str, typer.Argument(help="zhong2017, oymak2018, … (no name: list them)", autocompletion=papers)
    ] = "",
    figure: Annotated[str, typer.Option(help="Which figure, as the paper numbers it, or all.")] = "all",
    quick: Annotated[
        bool, typer.Option("--quick", help="Small sizes and few trials: a minute instead of hours.")
    ] = False,
    plot_only: Annotated[bool, typer.Option("--plot-only", help="Draw the numbers that were computed before.")] = False,
    workers: Annotated[
        int | None, typer.Option(help="Processes, where the experiment can use them.", min=1, max=256)
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for JSON and PNG; default: the paper's name.")
    ] = None,
) -> None:
    """Compute and draw a figure of a paper.

    The numbers go to JSON (a stopped run resumes there), the picture is drawn from the JSON.
    """
    if not name:
        if figure != "all" or quick or plot_only or workers is not None or out is not None:
            raise InvalidInput(f"name the paper; there are: {', '.join(papers())}")
        typer.echo("\n".join(f"{n:14s} {_title(n)}" for n in papers()))
        return
    if name not in papers():
        raise InvalidInput(f"no experiments of {name!r}; there are: {', '.join(papers())}")
    main = import_module(f"relumine.papers.{name}.figure").main
    takes = inspect.signature(main).parameters  # not every figure has sizes or processes to choose
    options: dict[str, Any] = {"figure": figure, "quick": quick, "plot_only": plot_only, "workers": workers, "out": out}
    given = {key: value for key, value in options.items() if value is not None}
    unknown = [key for key in given if key not in takes and given[key] not in (False, "all")]
    if unknown:
        raise InvalidInput(f"{name} has no option --{unknown[0].replace('_', '-')}")
    main(**{key: value for key, value in given.items() if key in takes})


def _title(name: str) -> str:
    text = import_module(f"relumine.papers.{name}.figure").__doc__ or ""
    return text.strip().splitlines()[0] if text.strip() else ""
