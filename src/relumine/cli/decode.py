"""`relumine decode`: a file of rows in, a file with w out."""

from __future__ import annotations

import csv
import json
import warnings
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console

import relumine as rl
from relumine.cli.exits import BAD_INPUT, FAILED
from relumine.results import InvalidInput, RelumineWarning

__all__ = ["decode"]


def decode(
    source: Annotated[Path, typer.Argument(help="Rows: csv with a header, npy (n, d+1), or npz with X and y.")],
    out: Annotated[Path, typer.Argument(help="Where w goes: csv (coordinate, w, standard_error) or json.")],
    bound: Annotated[float, typer.Option(help="Θ with |w_k| ≤ Θ; 'inf' if unknown (gauss-newton only).")],
    method: Annotated[str, typer.Option(help="gauss-newton, centered or plain.")] = "gauss-newton",
    target: Annotated[str, typer.Option(help="Label column: a name or a number; default: 'y' or the last.")] = "",
    slope: Annotated[float, typer.Option(help="Slope left of the kink: 0 ReLU, -1 absolute value.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Chooses held-out rows and further starts.", min=0)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing unless it fails.")] = False,
) -> None:
    """Decode w from y = Σ_k relu(w_k + x_k): a file of rows in, a file with w out.

    The file is written only if w was recovered. Exit codes: 0 recovered, 1 not recovered, 2 bad input.
    """
    errors = Console(stderr=True, highlight=False)
    if out.suffix.lower() not in (".csv", ".json"):
        errors.print(f"{out}: the output must end in .csv or .json", markup=False)
        raise typer.Exit(BAD_INPUT)
    try:
        X, y, names = _probes_and_labels(source, target)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", RelumineWarning)
            found = rl.decode(X, y, bound, method, slope=slope, rng=seed, on_failure="return")  # type: ignore[arg-type]
    except (InvalidInput, OSError) as error:
        errors.print(f"{source}: {error}", markup=False)
        raise typer.Exit(BAD_INPUT) from None
    for warning in caught:
        errors.print(f"warning: {warning.message}", markup=False)
    if found.ok:
        _write_decoding(found, names, out)
    if as_json:
        typer.echo(json.dumps(_decoding_summary(found)))
    elif not quiet or not found.ok:
        (Console(highlight=False) if found.ok else errors).print(str(found), markup=False)
    if not found.ok:
        raise typer.Exit(FAILED)


def _probes_and_labels(source: Path, target: str) -> tuple[NDArray[np.float64], NDArray[np.float64], list[str]]:
    """X, y and the names of the columns of X."""
    kind = source.suffix.lower()
    if kind == ".npz":
        with np.load(source, allow_pickle=False) as arrays:
            if not {"X", "y"} <= set(arrays.files):
                raise InvalidInput(f"an npz file needs the arrays X and y; this one has {', '.join(arrays.files)}")
            return arrays["X"], arrays["y"], [str(k) for k in range(arrays["X"].shape[-1])]
    if kind == ".npy":
        try:
            table = np.load(source, allow_pickle=False)
        except ValueError as error:
            raise InvalidInput(f"not a readable npy file: {error}") from None
        header = [str(k) for k in range(table.shape[-1])]
    elif kind == ".csv":
        with source.open(newline="", encoding="utf-8-sig") as file:
            header = [name.strip() for name in next(csv.reader(file), [])]
            if not header or next(file, None) is None:
                raise InvalidInput("the file is empty; expected a header and one row for each sample")
        if all(_is_number(name) for name in header):
            raise InvalidInput("the first line holds numbers; put the names of the columns there")
        try:
            table = np.loadtxt(source, delimiter=",", skiprows=1, ndmin=2, encoding="utf-8-sig")
        except ValueError as error:
            raise InvalidInput(f"after the header every cell must be a number: {error}") from None
    else:
        raise InvalidInput(f"unknown kind of file {kind!r}; use csv, npy or npz")
    if table.ndim != 2 or table.shape[1] < 2 or table.shape[1] != len(header):
        raise InvalidInput(f"expected rows of probes and a label, at least two columns; got shape {table.shape}")
    column = _label_column(header, target)
    rest = [k for k in range(len(header)) if k != column]
    return table[:, rest], table[:, column], [header[k] for k in rest]


def _label_column(header: list[str], target: str) -> int:
    if not target:
        return header.index("y") if "y" in header else len(header) - 1
    if target in header:
        return header.index(target)
    if target.lstrip("-").isdigit() and -len(header) <= int(target) < len(header):
        return int(target) % len(header)
    raise InvalidInput(
        f"no column {target!r}; the columns are {', '.join(header[:10])}{', …' if len(header) > 10 else ''}"
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


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
    partial = out.with_name(out.name + ".partial")
    with partial.open("w", newline="", encoding="utf-8") as file:
        if out.suffix.lower() == ".json":
            vectors = {"w": found.w.tolist(), "standard_errors": None if errors is None else errors.tolist()}
            json.dump({**_decoding_summary(found), "names": names, **vectors}, file)
        else:
            rows = csv.writer(file)
            rows.writerow(["coordinate", "w", "standard_error"])
            for k, (name, value) in enumerate(zip(names, found.w, strict=True)):
                rows.writerow([name, repr(float(value)), "" if errors is None else repr(float(errors[k]))])
    partial.replace(out)
