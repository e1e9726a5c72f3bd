"""`relumine recover`: a file of rows in; a network, a report, a result out."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

import relumine as rl
from relumine import report
from relumine.cli.exits import FAILED, STOPPED
from relumine.cli.guard import in_options
from relumine.cli.options import AsJson, Quiet, Seed, activation_names, image_shape, methods
from relumine.cli.table import columns_of, open_table
from relumine.cli.talk import Talk
from relumine.cli.watch import Watch
from relumine.data.sources import Source
from relumine.results import InvalidInput, Recovery, RelumineWarning, Status
from relumine.theory.advice import advise

__all__ = ["check_outputs", "check_seconds", "finish", "recover"]

_ROWS_SHOWN = 1000


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
    out: Annotated[Path | None, typer.Option(help="Save the network: .safetensors, .onnx, .npz or .json.")] = None,
    report_file: Annotated[Path | None, typer.Option("--report", help="Write a page to look at, .html.")] = None,
    save: Annotated[Path | None, typer.Option(help="Save the whole result, .json, for `relumine report`.")] = None,
    seed: Seed = 0,
    starts: Annotated[int, typer.Option(help="Most starts before giving up.", min=1, max=100_000)] = 20,
    seconds: Annotated[float | None, typer.Option(help="Time limit; then the best so far is kept.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Keep the state of a long run here, and go on from it.")
    ] = None,
    skip_bad_rows: Annotated[bool, typer.Option("--skip-bad-rows", help="Leave out rows with missing values.")] = False,
    images: Annotated[str | None, typer.Option(help="Inputs are an image, HEIGHTxWIDTH: show units as images.")] = None,
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
    inputs, targets = table.choose(target, columns_of(features), columns_of(ignore))
    shape = image_shape(images, len(inputs))
    for sentence in table.assumed:
        talk.note(sentence)
    with Watch(seconds, quiet) as watch, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RelumineWarning)
        source = table.source(inputs, targets, skip_bad_rows)
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
        talk.note(f"left out: {source.skipped} rows with missing values")
    for warning in caught:
        talk.warn(f"warning: {warning.message}")
    details = {"features": inputs, "target": ", ".join(targets), "seed": seed, "source": Path(file).name}
    details |= {"trace": watch.trace} if watch.trace else {}
    details |= {} if "held_out" in found.details else {"held_out": _some_rows(found, source)}
    if not found.ok:
        details["advice"] = _what_to_expect(source, found, width)
    found = replace(found, details={**found.details, **details})
    finish(found, talk, out, report_file, save, shape)


def finish(
    found: Recovery,
    talk: Talk,
    out: Path | None,
    report_file: Path | None,
    save: Path | None,
    shape: tuple[int, int] | None = None,
    more: dict[str, Any] | None = None,
) -> None:
    """Write what was asked for, say how it ended, leave with the code of the status."""
    written: dict[str, str] = {}
    if out is not None:
        if found.ok or found.status is Status.INTERRUPTED:
            found.network.save(out)
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
    names = {"features": found.details.get("features"), "target": found.details.get("target")}
    talk.answer(_words(found, written), {**summary, **names, "written": written, **(more or {})})
    if found.status is Status.INTERRUPTED:
        talk.warn("Stopped early: this is the best network so far, not a result.")
        raise typer.Exit(STOPPED)
    if not found.ok:
        if talk.quiet and not talk.as_json:
            talk.warn(f"{found.status.title}. {found.message}")
        raise typer.Exit(FAILED)


def _words(found: Recovery, written: dict[str, str]) -> str:
    lines = [in_options(str(found)), ""]
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


def _what_to_expect(source: Source, found: Recovery, width: int | None) -> list[str]:
    """Whether a network of this size can be recovered at all, for the report of a failure."""
    try:
        advice = advise(source.d, width or found.network.m or 1, found.network.activation)
    except InvalidInput:
        return []
    return [line.strip() for line in str(advice).splitlines() if line.strip()]


def _some_rows(found: Recovery, source: Source) -> dict[str, Any]:
    """True and predicted outputs of the first rows, for a picture; most of them were used in the fit."""
    few = source.head(_ROWS_SHOWN)
    return {"truth": few.Y, "predicted": found.network(few.X).reshape(few.Y.shape), "used_in_fit": True}
