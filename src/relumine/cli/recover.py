"""`relumine recover`: a file of rows in; a network, a report, a result out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

import relumine as rl
from relumine.arrays import Array
from relumine.cli import options
from relumine.cli.outcome import Outputs, check_seconds, finish, read_files
from relumine.cli.table import columns_of, open_table
from relumine.cli.talk import Talk
from relumine.cli.watch import Watch
from relumine.data.sources import Source
from relumine.recovery.advice import advise
from relumine.recovery.door import patience
from relumine.results import InvalidInput, Origin, Predictions, Recovery

ROWS_SHOWN = 1000  # on a page, from which it also has the spread of the inputs: more points are one black cloud
_SEARCHED = 6.0  # times the rows needed, the most that a search uses at first

_File = Annotated[str, typer.Argument(help="Rows: csv, parquet, arrow, npz (X, y) or npy; a glob for several files.")]


def recover(
    file: _File,
    target: options.Target = None,
    features: options.Features = None,
    ignore: options.Ignore = None,
    width: options.Width = None,
    activation: options.ActivationName = "relu",
    link: options.Link = None,
    method: options.Method = "auto",
    out: options.Out = None,
    report_file: options.ReportFile = None,
    save: options.Save = None,
    force: options.Force = False,
    seed: options.Seed = 0,
    starts: options.Starts = None,
    seconds: options.Seconds = None,
    checkpoint: options.Checkpoint = None,
    checkpoint_every: options.CheckpointEvery = 10.0,
    skip_bad_rows: options.SkipBadRows = False,
    one_hot: options.OneHot = False,
    impute: options.Impute = None,
    delimiter: options.Delimiter = None,
    decimal: options.DecimalMark = None,
    images: options.Images = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Recover the network behind a file of inputs and outputs.

    relumine recover data.csv --target price --report report.html

    relumine recover data.csv --one-hot --impute median --ignore id

    --out is written if the network was recovered, or with the best so far if the search was stopped; --force writes it
    in any case. --report and --save are always written. The search ends after ten minutes at the latest (more for large
    problems); --seconds sets another limit. Losses are relative to that of the affine fit (a linear function and a
    constant), errors to the spread (standard deviation) of y.
    """
    talk, outputs = Talk(as_json, quiet), Outputs(out, report_file, save, force)
    outputs.check(*read_files(file))
    check_seconds(seconds)
    table = open_table(file, delimiter, decimal)
    table.one_hot, table.impute = one_hot, impute
    inputs, targets = table.choose(target, columns_of(features), columns_of(ignore), skip_bad_rows)
    shape = options.image_shape(images, len(inputs))
    for sentence in table.assumed:
        talk.note(sentence)
    with talk.listening(), Watch(seconds, quiet) as watch:
        source = table.source(inputs, targets, skip_bad_rows)
        if one_hot or impute:
            inputs = list(source.names or inputs)
            for sentence in source.assumed:
                talk.note(sentence)
        watch.expected = _expectation(source, width, activation)
        watch.limit = None if checkpoint else patience(source, width)
        how: dict[str, Any] = {"method": method, "activation": activation, "link": link, "rng": seed, "starts": starts}
        saved: dict[str, Any] = {"checkpoint": checkpoint, "checkpoint_every": checkpoint_every}
        found = rl.recover(source, None, width, seconds=seconds, on_failure="return", progress=watch, **how, **saved)
    if source.skipped:
        talk.note(f"left out: {source.skipped} rows with missing values or text")
    few = source.head(ROWS_SHOWN)
    origin = Origin(Path(file).name, tuple(inputs), ", ".join(targets), seed, advice=_hardness(source, found, width))
    found = with_rows(replace(found, origin=origin), *few[:2])
    finish(found, talk, outputs, shape, inputs if table.named else ())


def with_rows(found: Recovery, X: NDArray[np.floating[Any]], Y: Array) -> Recovery:
    """The result with what a page shows of some rows: their spread and, where none were kept out, predictions."""
    Y = Y.reshape(len(X), -1)
    if found.mapping is not None:
        Y = found.mapping.values(Y)
    good = np.isfinite(Y).all(axis=1)  # a link has no digits elsewhere
    X, Y = X[good], Y[good]
    predicted, noise = found.network(X).reshape(len(X), -1), found.certificate.noise
    if predicted.shape != Y.shape:  # nothing was found, not even how many outputs there are
        return found
    # from these rows alone the spread of y would be off by some percent, and with it the share that noise has of it
    of_target = float(np.sqrt((predicted if noise > 0.0 else Y).var(axis=0).mean() + noise**2))
    spread = tuple(np.std(X, axis=0).tolist())
    shown = found.shown or Predictions(Y, predicted, unseen=False)
    return replace(found, shown=shown, origin=replace(found.origin, spread=spread, target_spread=of_target))


def _expectation(source: Source, width: int | None, activation: str) -> Callable[[int], float]:
    """How long a search for so many units takes, about; known for the width asked for."""

    @cache
    def seconds(units: int) -> float:
        advice = advise(source.d, width or units, activation)
        return advice.seconds * (min(source.n / advice.samples, _SEARCHED) if source.n and advice.samples else 1.0)

    return seconds


def _hardness(source: Source, found: Recovery, width: int | None) -> tuple[str, ...]:
    """Why a network of this size cannot be recovered at all, if that is known, for the report of a failure."""
    if found.ok:
        return ()
    try:
        advice = advise(source.d, width or found.network.m or 1, found.network.activation)
    except InvalidInput:
        return ()
    return (advice.hardness,) if advice.verdict in ("hard", "not determined") else ()
