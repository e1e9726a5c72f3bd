"""A journal of the minimisations of a run, kept on disk, so that a run that was killed goes on where it was.

A search is a fixed sequence of minimisations once its random numbers are fixed. The journal notes the state in which
each one ended and that of the present one; a run that is started again replays it: finished minimisations return what
they returned, the unfinished one continues from its last step, and everything after is as it would have been.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from relumine.arrays import Array
from relumine.data.sources import Source
from relumine.fit.levenberg import State
from relumine.formats.files import write_atomically
from relumine.results import InvalidInput

_VERSION = "relumine-journal-2"
_COST = 10.0  # writes at the end of short minimisations are so many times their own duration apart: a tenth of the time


def digest(data: Source) -> str:
    """A fingerprint of every row: inputs, outputs and weights, however they are cut into chunks.

    Examples
    --------
    >>> from relumine.data.sources import Samples
    >>> X, y = np.ones((3, 2)), np.arange(3.0)
    >>> digest(Samples(X, y)) == digest(Samples(X, y + 1e-12))
    False
    """
    X, Y, weight, rows = sha256(), sha256(), sha256(), 0
    for chunk in data.chunks():
        rows += len(chunk.Y)
        for sha, part in ((X, chunk.X), (Y, chunk.Y), (weight, chunk.weight)):
            if part is not None and part.size:
                sha.update(np.ascontiguousarray(part, dtype=np.float64).data.cast("B"))
    parts = f"{rows} {data.d} {data.vector} {X.hexdigest()} {Y.hexdigest()} {weight.hexdigest()}"
    return sha256(parts.encode()).hexdigest()


@dataclass
class Entry:
    """One minimisation: the directions (m, d+1) it began from, and its state."""

    start: Array
    state: State | None = None


@dataclass
class Journal:
    """Entries in the order of the minimisations, written to ``path`` at the end of each and every ``every`` seconds.

    ``task`` says what run this is (options, version, a digest of all rows): a journal of another one is refused.
    ``random``: state of the random numbers at its beginning.
    """

    path: Path
    task: dict[str, str]
    random: Mapping[str, Any]
    every: float
    entries: list[Entry] = field(default_factory=list)
    position: int = 0
    written: float = field(default_factory=time.monotonic)
    cost: float = 0.0

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], task: dict[str, str], random: Mapping[str, Any], every: float
    ) -> Journal:
        """The journal at ``path``, or a new one."""
        journal = cls(Path(path), task, random, every)
        if not journal.path.parent.is_dir():
            raise InvalidInput(
                f"checkpoint {journal.path}: there is no folder {journal.path.parent}",
                argument="checkpoint",
                remedy="make it, or name another file",
            )
        if journal.path.is_dir():
            raise InvalidInput(f"checkpoint {path} is a folder", argument="checkpoint", remedy="name a file in it")
        if journal.path.exists():
            journal._read()
        else:
            journal.write()  # a file that cannot be written is better said now
        return journal

    def next(self, start: Array) -> State | None:
        """The state of the next minimisation, which begins at ``start`` (m, d+1), if the journal knows it."""
        self.position += 1
        if self.position > len(self.entries):
            self.entries.append(Entry(start))
            return None
        entry = self.entries[self.position - 1]
        if entry.start.shape != start.shape or not np.allclose(entry.start, start, rtol=1e-6, atol=1e-9):
            raise InvalidInput(
                f"checkpoint {self.path} does not fit these data and options",
                argument="checkpoint",
                remedy="remove it to start afresh",
            )
        return entry.state

    def note(self, state: State) -> None:
        """Where the present minimisation is; written to disk if it has ended, or if it is time to."""
        self.entries[self.position - 1].state = state
        wait = min(self.every, _COST * self.cost) if state.reason else self.every
        if time.monotonic() - self.written >= wait:
            self.write()

    def write(self) -> None:
        """Write all entries to disk now."""
        began = time.monotonic()
        arrays: dict[str, Array] = {"nothing": np.zeros(1)}
        facts = []
        for k, entry in enumerate(self.entries):
            if (state := entry.state) is None:  # not a step yet: it begins again
                break
            arrays[f"{k}.start"], arrays[f"{k}.U"] = np.ascontiguousarray(entry.start), np.ascontiguousarray(state.U)
            arrays[f"{k}.history"] = np.array(state.history)
            arrays[f"{k}.damping"] = np.array([state.damping, state.growth])
            facts.append({"products": state.products, "reason": state.reason})
        content = {"task": self.task, "random": self.random, "entries": facts}
        metadata = {"format": _VERSION, **{key: json.dumps(value, default=_listed) for key, value in content.items()}}
        try:
            write_atomically(self.path, save(arrays, metadata))
        except (SafetensorError, OSError) as error:
            raise InvalidInput(
                f"checkpoint {self.path} cannot be written: {error}", argument="checkpoint", remedy="name another file"
            ) from None
        self.written = time.monotonic()
        self.cost = self.written - began

    def _read(self) -> None:
        try:
            with safe_open(self.path, framework="numpy") as file:
                metadata = file.metadata() or {}
                if metadata.get("format") != _VERSION:
                    raise InvalidInput(
                        f"{self.path} is not a checkpoint of this version of relumine",
                        argument="checkpoint",
                        remedy="remove it, or name another file",
                    )
                theirs, facts = json.loads(metadata["task"]), json.loads(metadata["entries"])
                self.random = json.loads(metadata["random"])
                for k, fact in enumerate(facts):
                    start, U, history, damping = (
                        file.get_tensor(f"{k}.{x}") for x in ("start", "U", "history", "damping")
                    )
                    lam, growth = damping.tolist()
                    self.entries.append(Entry(start, State(U, lam, growth, tuple(history.tolist()), **fact)))
        except (SafetensorError, KeyError, ValueError, TypeError, OSError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput(
                f"checkpoint {self.path} cannot be read ({error})",
                argument="checkpoint",
                remedy="remove it to start afresh",
            ) from None
        other = [key for key in {**theirs, **self.task} if theirs.get(key) != self.task.get(key)]
        if other:
            raise InvalidInput(
                f"checkpoint {self.path} is of another run (its {', '.join(other)} differ)",
                argument="checkpoint",
                remedy="remove it, or name another file",
            )


def _listed(value: Any) -> Any:
    """Arrays in the state of a bit generator as lists, which it takes as well."""
    return value.tolist()
