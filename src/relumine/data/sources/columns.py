"""Which columns are inputs, targets and weight, by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from relumine.results import InvalidInput

TEXT = "turn its categories into columns with one_hot=True"
EMPTY = "it has no values"
PLAINLY = "write its numbers plainly, without units, percent or currency signs and without marks between thousands"
MOST = 50  # categories of a column; more are names, notes or numbers with something beside them


class Text(NamedTuple):
    """Why a column is not numeric: what it ``holds``, and what makes numbers of it, if anything does."""

    holds: str
    remedy: str = TEXT


class Named(NamedTuple):
    """Columns by name, as a user gives them (see ``open_source``); without ``features`` all others are inputs."""

    target: str | Sequence[str] | None = None
    features: Sequence[str] | None = None
    ignore: Sequence[str] = ()
    weight: Any = None


@dataclass(frozen=True)
class Columns:
    """Names of the inputs, the targets (none: there is no target) and the weight; ``vector``: y is (n,)."""

    features: tuple[str, ...]
    targets: tuple[str, ...]
    weight: str | None
    vector: bool

    @property
    def all(self) -> list[str]:
        """Every column that is read."""
        return [*self.features, *self.targets, *([] if self.weight is None else [self.weight])]


def pick(where: str, schema: dict[str, Text | None], named: Named) -> Columns:
    """Columns by name from those that there are (name: None, or why a column is not numeric).

    Examples
    --------
    >>> pick("a.csv", {"u": None, "v": None, "y": None}, Named("y")).features
    ('u', 'v')
    """
    target, features, ignore, weight = named
    if target is None:
        raise InvalidInput(f"name the target= column of {where}; it has: {listed(schema)}", argument="target")
    if weight is not None and not isinstance(weight, str):
        raise InvalidInput("sample_weight for files and dataframes is the name of a column", argument="sample_weight")
    targets = (target,) if isinstance(target, str) else tuple(target)
    others = tuple(c for c in schema if c not in targets and c != weight and c not in ignore)
    inputs = others if features is None else tuple(features)
    columns = Columns(inputs, targets, weight, isinstance(target, str))
    groups = {"features": inputs, "target": targets, "sample_weight": () if weight is None else (weight,)}
    argument = {c: name for name, group in groups.items() for c in group}
    missing = [c for c in (*columns.all, *ignore) if c not in schema]
    if missing:
        raise InvalidInput(
            f"{where} has no column {missing[0]!r}; it has: {listed(schema)}",
            argument=argument.get(missing[0], "ignore"),
        )
    if not inputs:
        raise InvalidInput(f"at least one feature column is needed; {where} has: {listed(schema)}")
    twice = [c for c, times in Counter(columns.all).items() if times > 1]
    if twice:
        raise InvalidInput(f"column {twice[0]!r} is named twice among features, target and sample_weight")
    for c in columns.all:
        if (text := schema[c]) is not None:
            other = f"leave it out with ignore=[{c!r}]" if c in inputs else f"choose another {argument[c]}="
            alone = not text.remedy or (text.remedy == TEXT and c not in inputs)
            remedy = other if alone else f"{other}, or {text.remedy}"
            raise InvalidInput(
                f"{where}: column {c!r} is not numeric ({text.holds})", argument=argument[c], remedy=remedy
            )
    return columns


def frame_schema(frame: Any) -> dict[str, Text | None]:
    """The columns of a dataframe, of pandas or dask, for :func:`pick`."""
    return {str(c): None if getattr(t, "kind", "O") in "fiub" else Text(str(t)) for c, t in frame.dtypes.items()}


def listed(names: Iterable[str]) -> str:
    """The first dozen names, and how many there are."""
    names = list(names)
    return ", ".join(names[:12]) + (f", … ({len(names)} in all)" if len(names) > 12 else "")
