"""`relumine recover`: a file of rows in; a network, a report, a result out."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import relumine as rl
from relumine import report
from relumine.cli.exits import FAILED, STOPPED
from relumine.cli.guard import in_options
from relumine.cli.names import keep
from relumine.cli.options import AsJson, Quiet, Seed, activation_names, image_shape, methods
from relumine.cli.table import columns_of, open_table
from relumine.cli.talk import Talk
from relumine.cli.watch import Watch
from relumine.data.sources import Source
from relumine.recovery.advice import advise
from relumine.report.story import headline
from relumine.results import InvalidInput, Recovery, RelumineWarning, Status

__all__ = ["check_outputs", "check_seconds", "finish", "recover"]

_ROWS_SHOWN = 1000
_SEARCHED = 6.0  # times the rows needed, the most that a search uses at first


def recover(
    file: Annotated[
        str, typer.Argument(help="Rows: csv, parquet, arrow, npz (X, y) or npy; a glob for several files.")
    ],
    target: Annotated[
        str | None, typer.Option(help="Output column; default: 'y', or the last. 'u,v' for several.")
    ] = None,
    features: Annotated[str | None, typer.Option(help="Input columns, a,b,c; default: all others.")] = None,
    ignore: Annotated[str | None, typer.Option(help="Columns to leave out, a,b,c.")] = None,
    width: Annotated[
        int | None, typer.Option(help="Hidden units; default: found from the data.", min=0, max=100_000)
    ] = None,
    activation: Annotated[str, typer.Option(help="Activation of the units.", autocompletion=activation_names)] = "relu",
    method: Annotated[str, typer.Option(help="auto, awasthi or zhong.", autocompletion=methods)] = "auto",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Save the network: .safetensors, .onnx, .npz or .json.")
    ] = None,
    report_file: Annotated[Path | None, typer.Option("--report", help="Write a page to look at, .html.")] = None,
    save: Annotated[Path | None, typer.Option(help="Save the whole result, .json, for `relumine report`.")] = None,
    seed: Seed = 0,
    starts: Annotated[
        int | None, typer.Option(help="Most starts before giving up (20; 1 if hopeless).", min=1, max=100_000)
    ] = None,
    seconds: Annotated[float | None, typer.Option(help="Time limit; then the best so far is kept.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Keep the state of a long run here, and go on from it.")
    ] = None,
    skip_bad_rows: Annotated[
        bool, typer.Option("--skip-bad-rows", help="Leave out rows with missing values or text instead of numbers.")
    ] = False,
    images: Annotated[
        str | None, typer.Option(help="Inputs are an image: show units as images, HEIGHTxWIDTH or 'square'.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Recover the network behind a file of inputs and outputs.

    Writes --out if the network was recovered, or the best so far if the search was stopped. The report and the saved
    result are written in any case.
    """
    talk = Talk(as_json, quiet)
    check_outputs(out, report_file, save)
    check_seconds(seconds)
    table = open_table(file)
    inputs, targets = table.choose(target, columns_of(features), columns_of(ignore), skip_bad_rows)
    shape = image_shape(images, len(inputs))
    for sentence in table.assumed:
        talk.note(sentence)
    with Watch(seconds, quiet) as watch, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RelumineWarning)
        source = table.source(inputs, targets, skip_bad_rows)
        watch.expected = _expectation(source, width, activation)
        found = rl.recover(
            source,
            None,
            width,
            method=method,  # type: ignore[arg-type]
            activation=activation,
            rng=seed,
            starts=starts,
            seconds=seconds,
            checkpoint=checkpoint,
            on_failure="return",
            progress=watch,
        )
    if source.skipped:
        talk.note(f"left out: {source.skipped} rows with missing values or text")
    for warning in caught:
        talk.warn(f"warning: {warning.message}")
    details = {"features": inputs, "target": ", ".join(targets), "seed": seed, "source": Path(file).name}
    details |= {"trace": watch.trace} if watch.trace else {}
    few = source.head(_ROWS_SHOWN)
    details |= {"spread": np.std(few.X, axis=0).tolist(), "target_spread": float(np.sqrt(few.Y.var(axis=0).mean()))}
    if "held_out" not in found.details:  # then a picture of the first rows, most of them used in the fit
        predicted = found.network(few.X).reshape(few.Y.shape)
        details["held_out"] = {"truth": few.Y, "predicted": predicted, "used_in_fit": True}
    details["advice"] = [in_options(found.status.advice), *([] if found.ok else _hardness(source, found, width))]
    found = replace(found, details={**found.details, **details})
    finish(found, talk, out, report_file, save, shape, names=inputs if table.named else None)


def _expectation(source: Source, width: int | None, activation: str) -> Callable[[int], float]:
    """How long a search for so many units takes, about; known for the width asked for."""

    @cache
    def seconds(units: int) -> float:
        advice = advise(source.d, width or units, activation)
        return advice.seconds * (min(source.n / advice.samples, _SEARCHED) if source.n and advice.samples else 1.0)

    return seconds


def finish(
    found: Recovery,
    talk: Talk,
    out: Path | None,
    report_file: Path | None,
    save: Path | None,
    shape: tuple[int, int] | None = None,
    more: dict[str, Any] | None = None,
    names: list[str] | None = None,
) -> None:
    """Write what was asked for, say how it ended, leave with the code of the status; ``names``: of the inputs."""
    found = replace(found, message=in_options(found.message))
    written: dict[str, str] = {}
    if out is not None:
        if found.ok or found.status is Status.INTERRUPTED:
            keep(found.network, out, names)
            written["network"] = str(out)
        else:
            talk.warn(f"{out} was not written: there is no network to trust (--save keeps the best found)")
    if save is not None:
        report.save(found, save)
        written["result"] = str(save)
    if report_file is not None:
        name = out.name if out is not None else None
        title = str(found.details.get("source") or "")
        report.write(found, report_file, image_shape=shape, title=title, network_file=name)
        written["report"] = str(report_file)
    summary = {k: v for k, v in report.as_dict(found).items() if k not in ("details", "format", "version")}
    summary["advice"] = in_options(found.status.advice)
    columns = {"features": found.details.get("features"), "target": found.details.get("target")}
    talk.answer(_words(found, written), {**summary, **columns, "written": written, **(more or {})})
    if found.status is Status.INTERRUPTED:
        talk.warn("Stopped early: this is the best network so far, not a result.")
        raise typer.Exit(STOPPED)
    if not found.ok:
        if talk.quiet and not talk.as_json:
            talk.warn(f"{found.status.title}. {found.message}")
        raise typer.Exit(FAILED)


def _words(found: Recovery, written: dict[str, str]) -> str:
    head, *rest = in_options(str(found)).splitlines()
    if found.ok and not found.network.m:
        head = f"{headline(found).removesuffix('.')} ({found.method}, {found.seconds:.1f} s)"
    lines = [head, *rest, ""]
    lines += [f"{what}: {path}" for what, path in written.items()]
    if not written and found.ok:
        lines.append("(nothing was written: --out net.safetensors keeps the network, --report report.html shows it)")
    return "\n".join(lines)


def check_outputs(out: Path | None, page: Path | None, save: Path | None) -> None:
    """Before any long work: can the files be written?"""
    kinds = {".safetensors", ".onnx", ".npz", ".json"}
    for path, endings in ((out, kinds), (page, {".html", ".htm"}), (save, {".json"})):
        if path is None:
            continue
        if path.suffix.lower() not in endings:
            raise InvalidInput(f"{path}: the name should end in {' or '.join(sorted(endings))}")
        if path.is_dir() or not path.parent.is_dir():
            raise InvalidInput(f"{path}: {'is a folder' if path.is_dir() else 'there is no such folder'}")
    if out is not None and out == save:
        raise InvalidInput("--out and --save are the same file")


def check_seconds(seconds: float | None) -> None:
    """A time limit is a positive number."""
    if seconds is not None and not 0.0 < seconds < 1e9:
        raise InvalidInput(f"--seconds must be a positive number, got {seconds}")


def _hardness(source: Source, found: Recovery, width: int | None) -> list[str]:
    """Why a network of this size cannot be recovered at all, if that is known, for the report of a failure."""
    try:
        advice = advise(source.d, width or found.network.m or 1, found.network.activation)
    except InvalidInput:
        return []
    return [advice.hardness] if advice.verdict in ("hard", "not determined") else []
