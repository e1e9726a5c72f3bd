"""How `recover` and `extract` end: files are written, the result is told, the exit code says how it went."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from relumine import formats, report
from relumine.cli.exits import FAILED, STOPPED
from relumine.cli.talk import Talk
from relumine.cli.words import advice, spoken
from relumine.results import InvalidInput, Recovery, Status

_INNER = ("format", "version", "search", "shown", "origin", "asked")  # of the result file, not of a summary


@dataclass(frozen=True)
class Outputs:
    """Files asked for: the network, the page, the whole result. ``force``: also a network that is not to be trusted."""

    network: Path | None = None
    page: Path | None = None
    result: Path | None = None
    force: bool = False

    def check(self, *sources: Path) -> None:
        """Before any long work: can the files be written, each by itself, and beside what is read?"""
        kinds = ((self.network, formats.SUFFIXES), (self.page, (".html", ".htm")), (self.result, (".json",)))
        taken = list(sources)
        for path, endings in kinds:
            if path is not None:
                check_file(path, endings, taken)
                taken.append(path)


def check_file(path: Path, endings: Sequence[str], sources: Sequence[Path] = ()) -> None:
    """A file to be written: of a known kind, in a folder that exists, and none of those that are read or written."""
    if path.suffix.lower() not in endings:
        raise InvalidInput(f"{path}: the name should end in {' or '.join(sorted(endings))}")
    if path.is_dir() or not path.parent.is_dir():
        raise InvalidInput(f"{path}: {'is a folder' if path.is_dir() else 'there is no such folder'}")
    for other in sources:
        if os.path.realpath(path) == os.path.realpath(other):
            raise InvalidInput(f"{path} would overwrite a file that is also read or written; name another")


def read_files(name: str) -> list[Path]:
    """The files behind a name, which may be a pattern or a folder: none of them may be written over."""
    if not name or "\0" in name:
        return []  # whoever opens it has the words for that
    folder = Path(name)
    try:
        return [folder, *folder.iterdir()] if folder.is_dir() else [folder, *map(Path, glob.glob(name))]
    except OSError:
        return [folder]


def check_seconds(seconds: float | None) -> None:
    """A time limit is a positive number."""
    if seconds is not None and not 0.0 < seconds < 1e9:
        raise InvalidInput(f"--seconds must be a positive number, got {seconds}")


def finish(
    found: Recovery,
    talk: Talk,
    outputs: Outputs,
    shape: tuple[int, int] | None = None,
    names: Sequence[str] = (),
) -> None:
    """Write what was asked for, say how it ended, leave with the code of the status; ``names``: of the inputs."""
    # from here on the result speaks the language of the command line
    origin = replace(found.origin, advice=(advice(found), *found.origin.advice))
    found = replace(found, origin=origin, message=spoken(found.message))
    written = _written(found, talk, outputs, shape, names)
    content = report.as_dict(found)
    summary = {key: value for key, value in content.items() if key not in _INNER} | (content["asked"] or {})
    summary |= {"advice": advice(found), "features": list(found.origin.features), "target": found.origin.target}
    talk.answer(_words(found, written), {**summary, "written": written})
    if found.status is Status.INTERRUPTED:
        talk.warn("Stopped early: this is the best network so far, not a result.")
        raise typer.Exit(STOPPED)
    if not found.ok:
        if talk.quiet and not talk.as_json:
            talk.warn(f"{found.title}. {found.message}")
        raise typer.Exit(FAILED)


def _written(
    found: Recovery, talk: Talk, outputs: Outputs, shape: tuple[int, int] | None, names: Sequence[str]
) -> dict[str, str]:
    """The files, by what they hold."""
    written: dict[str, str] = {}
    if outputs.network is not None:
        if found.ok or found.status is Status.INTERRUPTED or outputs.force:
            found.network.save(outputs.network, labels=found.labels._replace(features=tuple(names)))
            written["network"] = str(outputs.network)
        else:
            talk.warn(f"{outputs.network} was not written: the network was not recovered (--force writes it anyway)")
    if outputs.result is not None:
        report.save(found, outputs.result)
        written["result"] = str(outputs.result)
    if outputs.page is not None:
        name = outputs.network.name if "network" in written and outputs.network is not None else None
        report.write(found, outputs.page, image_shape=shape, title=found.origin.source, network_file=name)
        written["report"] = str(outputs.page)
    return written


def _words(found: Recovery, written: dict[str, str]) -> str:
    lines = [found.told(found.origin.advice), "", *(f"{what}: {path}" for what, path in written.items())]
    if not written and found.ok:
        lines.append("(nothing was written: --out net.safetensors keeps the network, --report report.html shows it)")
    return "\n".join(lines)
