"""A journal of the minimisations of a run, kept on disk, so that a run that was killed goes on where it was.

A search is a fixed sequence of minimisations once its random numbers are fixed. The journal notes where each one ended
and how far the present one is; a run that is started again replays it: finished minimisations return what they
returned, the unfinished one continues from its last step, and everything after is as it would have been.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from relumine.results import InvalidInput

Array = NDArray[np.float64]

__all__ = ["Entry", "Journal", "current", "kept"]

_VERSION = "relumine-journal-1"


@dataclass
class Entry:
    """One minimisation: where it began and where it is; ``reason`` is empty while it goes on."""

    start: Array
    U: Array
    damping: float
    growth: float
    history: list[float]
    products: int = 0
    reason: str = ""


@dataclass
class Journal:
    """Entries in the order of the calls, written to ``path`` at most every ``every`` seconds.

    ``task`` says what run this is (sizes, options, a digest of some rows): a journal of another one is refused.
    ``random``: state of the random numbers at its beginning.
    """

    path: Path
    task: dict[str, str]
    random: Mapping[str, Any]
    every: float
    entries: list[Entry] = field(default_factory=list)
    position: int = 0
    written: float = field(default_factory=time.monotonic)

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], task: dict[str, str], random: Mapping[str, Any], every: float
    ) -> Journal:
        """The journal at ``path``, or a new one."""
        journal = cls(Path(path), task, random, every)
        if not journal.path.parent.is_dir():
            raise InvalidInput(f"checkpoint: there is no folder {journal.path.parent}")
        if journal.path.exists():
            journal._read()
        else:
            journal._write()  # a file that cannot be written is better said now
        return journal

    def next(self, start: Array) -> Entry | None:
        """The entry of the next minimisation if the journal knows it; None, and a new entry to come, otherwise."""
        self.position += 1
        if self.position > len(self.entries):
            return None
        entry = self.entries[self.position - 1]
        if entry.start.shape != start.shape or not np.allclose(entry.start, start, rtol=1e-6, atol=1e-9):
            raise InvalidInput(f"checkpoint {self.path} does not fit these data and options; remove it to start afresh")
        return entry

    def begin(self, entry: Entry) -> Entry:
        """A new entry for the present minimisation."""
        self.entries[self.position - 1 :] = [entry]
        return entry

    def note(self, *, now: bool = False) -> None:
        """Write if it is time to, or ``now``."""
        if now or time.monotonic() - self.written >= self.every:
            self._write()
            self.written = time.monotonic()

    def _write(self) -> None:
        arrays: dict[str, Array] = {}
        facts = []
        for k, entry in enumerate(self.entries):
            arrays[f"{k}.start"], arrays[f"{k}.U"] = np.ascontiguousarray(entry.start), np.ascontiguousarray(entry.U)
            arrays[f"{k}.history"] = np.array(entry.history)
            arrays[f"{k}.state"] = np.array([entry.damping, entry.growth])
            facts.append({"products": entry.products, "reason": entry.reason})
        content = {"task": self.task, "random": self.random, "entries": facts}
        metadata = {"format": _VERSION, **{key: json.dumps(value, default=_listed) for key, value in content.items()}}
        partial = self.path.with_name(f"{self.path.name}.{os.getpid()}.partial")
        try:
            save_file(arrays or {"nothing": np.zeros(1)}, partial, metadata)
            with open(partial, "rb") as file:
                os.fsync(file.fileno())
            os.replace(partial, self.path)  # readers see the old file or the new one, never half of one
        except (SafetensorError, OSError) as error:
            raise InvalidInput(f"checkpoint {self.path} cannot be written: {error}") from None

    def _read(self) -> None:
        try:
            with safe_open(self.path, framework="numpy") as file:
                metadata = file.metadata() or {}
                if metadata.get("format") != _VERSION:
                    raise InvalidInput(f"{self.path} is not a checkpoint of this version of relumine")
                theirs, facts = json.loads(metadata["task"]), json.loads(metadata["entries"])
                self.random = json.loads(metadata["random"])
                for k, fact in enumerate(facts):
                    start, U, history, state = (file.get_tensor(f"{k}.{x}") for x in ("start", "U", "history", "state"))
                    self.entries.append(Entry(start, U, float(state[0]), float(state[1]), history.tolist(), **fact))
        except (SafetensorError, KeyError, ValueError, TypeError, OSError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput(f"checkpoint {self.path} cannot be read ({error}); remove it to start afresh") from None
        other = [key for key in self.task if theirs.get(key) != self.task[key]]
        if other:
            raise InvalidInput(
                f"checkpoint {self.path} is of another run (its {', '.join(other)} differ); "
                "remove it, or name another file"
            )


def _listed(value: Any) -> Any:
    """Arrays in the state of a bit generator as lists, which it takes as well."""
    return value.tolist()


_journal: ContextVar[Journal | None] = ContextVar("journal", default=None)


@contextmanager
def kept(journal: Journal | None) -> Iterator[None]:
    """Within: minimisations are noted in the journal."""
    token = _journal.set(journal)
    try:
        yield
    finally:
        _journal.reset(token)


def current() -> Journal | None:
    """The journal in use."""
    return _journal.get()
