"""`relumine predict`: a network and a file of inputs in, predictions out."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from relumine.arrays import Array
from relumine.cli.names import opened
from relumine.cli.options import AsJson, DecimalMark, Delimiter, Quiet, SkipBadRows
from relumine.cli.outcome import check_file, read_files
from relumine.cli.table import Table, columns_of, open_table
from relumine.cli.talk import Talk
from relumine.data.sources import Samples, Source, materialise
from relumine.data.sources.columns import listed
from relumine.formats.files import write_atomically
from relumine.links import form_of
from relumine.network import Network
from relumine.report import write_text
from relumine.results import InvalidInput, Status, counted


def predict(
    network: Annotated[Path, typer.Argument(help="A network (.safetensors, .onnx, .npz, .json) or a saved result.")],
    file: Annotated[str, typer.Argument(help="Rows of inputs: csv, parquet, arrow, npz or npy.")],
    features: Annotated[
        str | None, typer.Option(help="Input columns in the network's order; default: as recovered.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where predictions go, .csv or .npy; default: stdout.")
    ] = None,
    skip_bad_rows: SkipBadRows = False,
    delimiter: Delimiter = None,
    decimal: DecimalMark = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Predict with a network. Columns are found by name (.safetensors, a saved result), else by position."""
    talk = Talk(as_json, quiet)
    if out is not None:
        check_file(out, (".csv", ".npy"), sources=(network, *read_files(file)))
    (net, labels), table = opened(network), open_table(file, delimiter, decimal)
    if labels.status and not Status(labels.status).ok:
        talk.warn(f"warning: {network} holds a network that was not recovered (status: {labels.status})")
    inputs, truth = _columns(table, net, columns_of(features) or _remembered(labels.features, table))
    for sentence in table.assumed:
        talk.note(sentence)
    source, samples = _rows(table, inputs, [] if truth is None else [truth], skip_bad_rows)
    if source.skipped:
        talk.note(f"left out: {source.skipped} rows with missing values or text")
    X = samples.X
    predicted = net(X) if not labels.link else form_of(labels.link).answers(net(X))
    if labels.link:
        talk.note(f"predictions are what was observed, through the link ({labels.link}) kept with the network")
    content: dict[str, Any] = {"rows": len(X), "features": inputs, "written": {}}
    words = counted(len(X), "row")
    if truth and predicted.ndim == 1:
        error, spread = float(np.sqrt(np.mean((samples.Y[:, 0] - predicted) ** 2))), float(samples.Y.std())
        content["rms_error"] = error
        words += f"; root mean square error against {truth}: {error:.3g}"
        words += f" ({error / spread:.2g} of its spread)" if spread > 0.0 else ""
    if out is not None:
        _write(predicted, out)
        content["written"] = {"predictions": str(out)}
        talk.answer(f"{words}\npredictions: {out}", content)
    elif as_json:
        talk.answer("", {**content, "predictions": predicted.tolist()})
    else:
        talk.note(words)
        typer.echo(_csv(predicted), nl=False)


def _rows(table: Table, inputs: list[str], truth: list[str], skip: bool) -> tuple[Source, Samples]:
    """The rows to predict; how gaps were filled for the fit is not kept with the network, so they are an error here."""
    try:
        source = table.source(inputs, truth, skip)
        return source, materialise(source)
    except InvalidInput as gap:
        if "impute" not in (gap.remedy or ""):
            raise
        remedy = "fill gaps as for the rows the network was found from, or leave such rows out with bad_rows='skip'"
        raise InvalidInput(gap.problem, argument=gap.argument, remedy=remedy) from None


def _columns(table: Table, net: Network, wanted: list[str]) -> tuple[list[str], str | None]:
    """The d input columns, and a target if the file holds one."""
    if wanted:
        inputs = _categories(table, wanted)
    else:
        numeric = [name for name in table.names if name not in table.text]
        # as many numeric columns as inputs; one more, if it is the target: the one called y, or else the last
        left = [name for name in numeric if name.strip() not in ("y", "Y")]
        inputs = numeric if len(numeric) == net.d else left if len(left) == net.d else numeric[: net.d]
        if len(numeric) not in (net.d, net.d + 1):
            raise InvalidInput(
                f"{table.path} has {len(numeric)} numeric columns for {net.d} inputs; name the inputs with --features"
            )
        if len(numeric) == net.d + 1:
            rest = next(name for name in numeric if name not in inputs)
            table.assumed.append(f"inputs: all columns but {rest} (choose with --features)")
        if table.named:
            table.assumed.append(f"columns taken by position: {listed(inputs)}")
    if not table.one_hot and len(inputs) != net.d:
        raise InvalidInput(f"the network has {net.d} inputs, but {len(inputs)} columns are named")
    others = [name for name in table.names if name not in inputs and name not in table.text]
    return inputs, others[0] if len(others) == 1 else None


def _categories(table: Table, wanted: list[str]) -> list[str]:
    """The columns meant; of inputs called "city=Rome" the column of text, whose categories the table is told."""
    inputs: dict[str, list[str]] = {}
    for name in wanted:
        column = next((c for c in table.text if name.startswith(f"{c}=") and name not in table.names), None)
        inputs.setdefault(table.column(name) if column is None else column, [])
        if column is not None:
            inputs[column].append(name.removeprefix(f"{column}="))
    table.one_hot = {column: levels for column, levels in inputs.items() if levels}
    return list(inputs)


def _remembered(names: Sequence[str], table: Table) -> list[str]:
    """Names of the inputs kept with the network; none where it or the file has only made-up ones."""
    made_up = all(re.fullmatch(r"x\d+", name) for name in names) and not set(names) <= set(table.names)
    return [] if made_up or not table.named else [*names]


def _csv(predicted: Array) -> str:
    lines = io.StringIO()
    rows = csv.writer(lines, lineterminator="\n")
    columns = predicted.reshape(len(predicted), -1)
    rows.writerow(["prediction"] if predicted.ndim == 1 else [f"prediction_{k}" for k in range(columns.shape[1])])
    rows.writerows([repr(value) for value in row] for row in columns.tolist())
    return lines.getvalue()


def _write(predicted: Array, out: Path) -> None:
    if out.suffix.lower() == ".csv":
        write_text(out, _csv(predicted))
        return
    write_atomically(out, lambda file: np.save(file, predicted))
