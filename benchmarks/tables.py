"""docs/benchmarks.md, its figures and what other pages say of measurements, from JSON; nothing in them is typed.

``python -m benchmarks tables``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import bars, papers
from benchmarks.counting import Count
from benchmarks.measures import MEASURES, Measure, catalogue, frontier, rates
from benchmarks.measures.fair import gather
from benchmarks.methods import ALTERNATIVES, OURS
from benchmarks.results import LIBRARIES, RESULTS, ROOT, Row, load
from benchmarks.text import duration, table

ORDER = ("rates", "frontier", "beside", "trace", "ablation", "extraction", "hot", "scaling", "memory", "decomposition")
ORDER += ("decoding", "catalogue", "width_unknown", "evidence")
SHOWN = ("(10,20)x5", "(50,50) n/p=6", "(10,10) n/p=3", "orthonormal 20", "mnist_2vs3", "(100,100)")


def page(reports: dict[str, Row]) -> str:
    """All measures that have been run."""
    total = sum(report["seconds"] for report in reports.values())
    quick = sum(measure.MINUTES[1] for measure in MEASURES.values())
    parts = [
        "# Benchmarks",
        "How often `recover` finds a network exactly, how long it takes beside other methods, and how time and memory "
        "grow. Terms are in the [glossary](glossary.md). Everything on this page is written by `python -m benchmarks "
        "tables` from `docs/results/*.json`. "
        f"`make bench-quick` takes {quick:.0f} minutes, `make bench` took {duration(total)} of CPU time; "
        "`python -m benchmarks compare OLD NEW` says what got slower or less exact between two folders of results. "
        "Times are CPU seconds of one thread, which other work hardly changes, unless it says otherwise.",
        *_machines([reports[name]["machine"] for name in ORDER if name in reports]),
    ]
    parts += [short] if (short := bars.section(reports)) else []
    parts += [part(MEASURES[name], "section")(reports[name]) for name in ORDER if name in reports]
    return "\n\n".join(parts) + "\n"


def _machines(found: list[Row]) -> list[str]:
    """A line for each, with all versions of the libraries that were used there."""
    lines = []
    for place in dict.fromkeys((m["cpu"], m["cores"], m["memory_gb"], m["python"], m["blas"]) for m in found):
        here = [m for m in found if (m["cpu"], m["cores"], m["memory_gb"], m["python"], m["blas"]) == place]
        versions = {name: sorted({m[name] for m in here if m.get(name)}) for name in LIBRARIES[:4]}
        libraries = ", ".join(f"{name} {' and '.join(used)}" for name, used in versions.items() if used)
        cpu, cores, memory, python, blas = place
        lines.append(f"Machine: {cpu}, {cores} cores, {memory:g} GB; Python {python}, {libraries}, {blas}.")
    return lines


def part(measure: Measure, name: str) -> Callable[..., Any]:
    """What a measure has to say somewhere, or nothing."""
    return getattr(measure, name, lambda *_: {})


def elsewhere(reports: dict[str, Row]) -> Iterator[tuple[str, str, str]]:
    """Pages other than this one: path, measure, text."""
    for name, report in reports.items():
        for path, text in part(MEASURES[name], "elsewhere")(report).items():
            yield path, name, text
    if reports:
        yield "README.md", "recovery table", readme(reports)
    yield from papers.blocks(RESULTS.parent / "figures")


def readme(reports: dict[str, Row]) -> str:
    """Rates beside the best alternative, the frontier, and some of the catalogue."""
    parts = []
    if "rates" in reports:
        rows = []
        for problem, methods in gather(reports["rates"], "methods").items():
            others = {name: rates.count(methods[name]) for name in ALTERNATIVES if name in methods}
            best = max(others, key=lambda name: others[name].rate, default=None)
            descent = [others[name] for name in others if not name.startswith("scipy")]
            row = [problem, _short(rates.count(methods[OURS])), duration(rates.median(methods[OURS], "seconds"))]
            who = best if best is not None and others[best].hits else "all of them"
            row.append("" if best is None else f"{_short(others[best])} ({who})")
            rows.append([*row, _short(max(descent, key=lambda c: c.rate)) if descent else ""])
        header = ["planted network (d, m)", "relumine exact", "median time", "best alternative, 5 × the time"]
        parts.append(table([*header, "best of Adam and L-BFGS, 5 × the time"], rows))
    if "frontier" in reports:
        found = frontier.curves(reports["frontier"])
        words = []
        for size, methods in found.items():
            ours = frontier.smallest(methods.get(OURS, {}))
            theirs = {name: frontier.smallest(methods[name]) for name in methods if name != OURS}
            able = {name: ratio for name, ratio in theirs.items() if ratio is not None}
            name = min(able, key=lambda n: able[n], default=None)
            other = "no alternative does" if name is None else f"{name} {able[name]}"
            word = f"{size}: {ours if ours is not None else 'never'}"
            words.append(f"{word} ({other})" if theirs else word)
        parts.append(f"Samples per parameter for 95 % exact recovery: {'; '.join(words)}.")
    if "catalogue" in reports:
        lines = [line for name, line in catalogue.lines(reports["catalogue"]).items() if name.startswith(SHOWN)]
        parts.append(table(catalogue.HEADER, lines))
    return "\n\n".join(parts)


def _short(count: Count) -> str:
    return f"{count.hits}/{count.runs}"


def put(path: Path, mark: str, content: str) -> None:
    """Replace what stands between two comments."""
    begin, end = f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
    text = path.read_text()
    if begin not in text or end not in text:
        raise ValueError(f"{path} has no place for {mark}: {begin} … {end}")
    path.write_text(re.sub(f"{begin}.*{end}", lambda _: f"{begin}\n{content}\n{end}", text, flags=re.S))


def write(results: Path = RESULTS, root: Path = ROOT) -> list[str]:
    """Write pages and figures; returns the measures found."""
    reports = {name: report for name in MEASURES if (report := load(results / f"{name}.json")) is not None}
    reports = {name: report for name, report in reports.items() if "settings" in report and report["rows"]}
    (root / "docs").mkdir(parents=True, exist_ok=True)
    (root / "docs" / "benchmarks.md").write_text(page(reports))
    for name, report in reports.items():
        part(MEASURES[name], "figures")(report, root / "docs" / "figures")
    for path, name, text in elsewhere(reports):
        if (root / path).exists():
            put(root / path, name, text)
    return list(reports)
