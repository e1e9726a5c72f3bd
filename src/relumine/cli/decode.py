"""`relumine decode`: a file of rows in, a file with w out."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import relumine as rl
from relumine.cli.exits import FAILED
from relumine.cli.options import AsJson, DecimalMark, Delimiter, Ignore, Quiet, Seed, SkipBadRows
from relumine.cli.outcome import check_file, read_files
from relumine.cli.table import columns_of, open_table
from relumine.cli.talk import Talk
from relumine.data.sources import materialise
from relumine.report import write_text
from relumine.results import InvalidInput


def decode(
    source: Annotated[str, typer.Argument(help="Rows: csv, parquet, npy (n, d+1), or npz with X and y.")],
    place: Annotated[
        Path | None, typer.Argument(metavar="OUT", help="Where w goes: csv (coordinate, w, standard_error) or json.")
    ] = None,
    *,
    bound: Annotated[float, typer.Option(help="Θ with |w_k| ≤ Θ; 'inf' if unknown (gauss-newton only).")],
    method: Annotated[str, typer.Option(help="gauss-newton, centered or plain.")] = "gauss-newton",
    target: Annotated[str, typer.Option(help="Label column: a name or a number; default: 'y' or the last.")] = "",
    ignore: Ignore = None,
    slope: Annotated[float, typer.Option(help="Slope left of the kink: 0 ReLU, -1 absolute value.")] = 0.0,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The same as OUT.")] = None,
    skip_bad_rows: SkipBadRows = False,
    delimiter: Delimiter = None,
    decimal: DecimalMark = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Find the vector w in y = Σ_k relu(w_k + x_k).

    A file of rows goes in, a file with w comes out.

    The file is written only if w was recovered.
    """
    talk = Talk(as_json, quiet)
    if place is not None and out is not None:
        raise InvalidInput(f"w goes to one file: {place} or {out}")
    out = place or out
    if out is None:
        raise InvalidInput("say where w goes: --out w.csv")
    check_file(out, (".csv", ".json"), read_files(source))
    table = open_table(source, delimiter, decimal)
    names, labels = table.choose(target or None, [], columns_of(ignore), skip_bad_rows)
    for sentence in table.assumed:
        talk.note(sentence)
    samples = materialise(table.source(names, labels, skip_bad_rows))
    with talk.listening():
        found = rl.decode(samples.X, samples.y, bound, method, slope=slope, rng=seed, on_failure="return")  # type: ignore[arg-type]
    if found.ok:
        _write_decoding(found, names, out)
    talk.answer(str(found), _decoding_summary(found))
    if not found.ok:
        if quiet and not as_json:
            talk.warn(str(found))
        raise typer.Exit(FAILED)


def _decoding_summary(found: rl.Decoding) -> dict[str, Any]:
    certificate = found.certificate
    return {
        "status": found.status.value,
        "message": found.message,
        "advice": found.advice,
        "method": found.method,
        "coordinates": len(found.w),
        "iterations": found.iterations,
        "seconds": round(found.seconds, 3),
        "held_out_residual": None if np.isnan(certificate.residual) else certificate.residual,
        "held_out_rows": certificate.rows,
        "noise": certificate.noise,
    }


def _write_decoding(found: rl.Decoding, names: list[str], out: Path) -> None:
    """Write w whole or not at all."""
    errors = found.standard_errors
    if out.suffix.lower() == ".json":
        vectors = {"w": found.w.tolist(), "standard_errors": None if errors is None else errors.tolist()}
        write_text(out, json.dumps({**_decoding_summary(found), "names": names, **vectors}))
        return
    lines = io.StringIO()
    rows = csv.writer(lines)
    rows.writerow(["coordinate", "w", "standard_error"])
    for k, (name, value) in enumerate(zip(names, found.w, strict=True)):
        rows.writerow([name, repr(float(value)), "" if errors is None else repr(float(errors[k]))])
    write_text(out, lines.getvalue())
