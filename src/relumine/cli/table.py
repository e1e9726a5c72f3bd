"""A user's own file as inputs and targets: which columns are which is worked out, and every assumption is said."""

from __future__ import annotations

import csv
import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from relumine.data.sources import Source, open_source
from relumine.data.sources.columns import EMPTY, TEXT, Text, listed
from relumine.results import InvalidInput


@dataclass
class Table:
    """Names of the columns and, once chosen, the source to read; ``assumed``: sentences for the user.

    ``text``: columns that are not numeric, and a cell that shows it; ``mixed``: those of them that hold numbers too;
    ``named``: the file itself has names for its columns.
    """

    path: str
    names: list[str]
    text: dict[str, Text] = field(default_factory=dict)
    assumed: list[str] = field(default_factory=list)
    mixed: frozenset[str] = frozenset()
    named: bool = True
    delimiter: str | None = None
    decimal: str | None = None
    one_hot: bool | dict[str, list[str]] = False
    impute: str | None = None

    def column(self, name: str) -> str:
        """The column meant: its name, its name but for case and spaces, or its number from 0."""
        if name in self.names:
            return name
        near = [c for c in self.names if c.strip().casefold() == name.strip().casefold()]
        if len(near) == 1:
            return near[0]
        if name.lstrip("-").isdigit() and len(name) < 10 and -len(self.names) <= int(name) < len(self.names):
            return self.names[int(name)]
        numbered = "" if self.named else " (its first row holds numbers, so its columns were numbered)"
        raise InvalidInput(f"{self.path} has no column {name!r}; it has: {listed(self.names)}{numbered}")

    def choose(
        self, target: str | None, features: Sequence[str], ignore: Sequence[str], skip_bad_rows: bool = False
    ) -> tuple[list[str], list[str]]:
        """Names of the inputs and of the targets."""
        ignored = {self.column(name) for name in ignore}
        useless = {name: why for name in self.names if name not in ignored and (why := self._of_no_use(name))}
        if target is not None:
            targets = [self.column(name) for name in target.split(",")] if target not in self.names else [target]
        else:
            targets = [self._target({*ignored, *features}, useless)]
        for name, why in () if features else useless.items():
            if name not in targets:
                self.assumed.append(f"left out: {why}")
        left_out = {*ignored, *useless}
        inputs = [self.column(n) for n in features] or [c for c in self.names if c not in left_out and c not in targets]
        for name in (*inputs, *targets):
            empty = name in self.text and self.text[name].holds == EMPTY
            handled = (name in self.mixed and skip_bad_rows) or (self.one_hot and name in inputs and not empty)
            if name in self.text and not handled:
                raise InvalidInput(self._not_numbers(name, name in targets))
        if not inputs:
            raise InvalidInput(f"{self.path} has no input columns besides the target {targets[0]!r}")
        return inputs, targets

    def _target(self, others: set[str], useless: dict[str, str]) -> str:
        """The column y, or the last one that is of use, which is then said."""
        rest = [c for c in self.names if c not in others]
        named = [c for c in rest if c.strip() in ("y", "Y")]
        found = named[:1] or [c for c in rest if c not in useless][-1:]
        if not found:
            raise InvalidInput(f"{self.path} leaves no column for the target; name it with --target")
        self.assumed.append(f"target: {found[0]}{'' if named else ', the last column'} (choose with --target)")
        return found[0]

    def _of_no_use(self, name: str) -> str:
        """Why a column is left out, if it is."""
        if name == self.names[0] and (not name.strip() or name == "Unnamed: 0"):
            return f"the column without a name ({name!r}), it looks like row numbers"
        if name in self.text and self.text[name].holds == EMPTY:
            return f"column {name!r}, which has no values"
        return ""

    def _not_numbers(self, name: str, target: bool) -> str:
        """What a column holds that is no number, and what to do about it."""
        holds, remedy = self.text[name]
        what = f"{self.path}: column {name!r} is not {'all numbers' if name in self.mixed else 'numeric'} ({holds})"
        other = (
            "choose another target with --target" if target else f"leave the column out with --ignore {_quoted(name)}"
        )
        if holds == EMPTY:
            return f"{self.path}: column {name!r} has no values; {other}"
        if remedy != TEXT:
            return f"{what}; {remedy}, or {other}"
        if name in self.mixed:
            return f"{what}; repair that cell, leave out such rows with --skip-bad-rows, or {other}"
        if target:
            return (
                f"{what}, but the target must be numbers: this is classification, and classes do not show the network "
                f"behind them; use scores or probabilities, or {other}"
            )
        return f"{what}; {other}, or use --one-hot to turn its categories into columns"

    def source(self, inputs: list[str], targets: list[str], skip_bad_rows: bool = False) -> Source:
        """The rows; no targets: inputs alone."""
        bad: Literal["skip", "raise"] = "skip" if skip_bad_rows else "raise"
        if self.path.lower().endswith(".npz"):
            if len(inputs) + 1 < len(self.names):
                raise InvalidInput(f"{self.path}: the columns of an npz file cannot be chosen; save those wanted as X")
            return open_source(self.path, target=None if targets else [], bad_rows=bad)
        return open_source(
            self.path,
            target=targets[0] if len(targets) == 1 else targets,
            features=inputs,
            one_hot=self.one_hot if any(name in self.text for name in inputs) else False,
            impute=self.impute,  # type: ignore[arg-type]  # checked there
            bad_rows=bad,
            delimiter=self.delimiter,
            decimal=self.decimal,  # type: ignore[arg-type]  # checked when the file was looked at
        )


def open_table(path: str, delimiter: str | None = None, decimal: str | None = None) -> Table:
    """Look at a file (or a glob, or a folder of files): its kind, its columns, its dialect."""
    if path.lower().endswith((".npy", ".npz")):
        return _arrays(path)
    if os.path.isdir(path):
        path = _inside(path)
    from relumine.data.sources.tables import look  # pyarrow, which --help need not load

    seen = look(path, delimiter, decimal)
    return Table(path, list(seen.names), seen.text, list(seen.said), seen.mixed, seen.named, delimiter, decimal)


def columns_of(text: str | None) -> list[str]:
    """Names separated by commas; quotes allow a comma in a name."""
    if text is None:
        return []
    try:
        names = next(csv.reader([text], skipinitialspace=True), [])
    except csv.Error as error:
        raise InvalidInput(f"cannot read the names {text[:60]!r}: {error}") from None
    return [name for name in names if name]


def _inside(folder: str) -> str:
    """The data files directly in a folder, as a glob; what lies deeper is not searched for."""
    from relumine.data.sources.tables import endings

    names = sorted(entry.name for entry in os.scandir(folder) if entry.is_file() and not entry.name.startswith("."))
    found = {ending for name in names for ending in endings() if name.lower().endswith(ending)}
    if len(found) != 1:
        kinds = (
            f"of several kinds ({', '.join(sorted(found))})" if found else f"({', '.join(endings())}) in this folder"
        )
        raise InvalidInput(
            f"{folder}: {'data files ' if found else 'no data files '}{kinds}; name them, as in 'folder/*.csv'"
        )
    return os.path.join(glob.escape(folder), f"*{found.pop()}")


def _arrays(path: str) -> Table:
    """Arrays have no names for their columns: they are called x0, x1, … here."""
    from relumine.data.sources.arrays import npy_names, npz_members

    if not Path(path).is_file():
        raise InvalidInput(f"no such file: {path}")
    if path.lower().endswith(".npz"):
        names = [f"x{j}" for j in range(open_source(path, target=[]).d)]
        return Table(path, [*names, *(["y"] if "y" in npz_members(Path(path)) else [])], named=False)
    names = npy_names(Path(path))
    said = f"an array has no names: its columns are called {names[0]} … {names[-1]}"
    return Table(path, names, assumed=[said], named=False)


def _quoted(name: str) -> str:
    return f"'{name}'" if any(c.isspace() or c in '"$&;()<>|*?' for c in name) else name
