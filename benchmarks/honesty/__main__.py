"""`python -m benchmarks.honesty run` draws problems and records claims and truths; `table` writes what came out.

A run that was stopped goes on where it was: every problem is a line of the record, known by family and seed.
"""

from __future__ import annotations

import argparse
import json
from itertools import islice
from pathlib import Path

from benchmarks.honesty.measure import SECONDS, measure, names
from benchmarks.honesty.table import FULL, PAGE, SINCE, claims, summary
from benchmarks.tables import put

RECORD = Path("build/honesty.jsonl")


def run(record: Path, problems: int, first: int, seconds: float) -> None:
    """Family after family, seed after seed, until so many problems are on record; those there already count."""
    record.parent.mkdir(parents=True, exist_ok=True)
    done = {(row["family"], row["seed"]) for row in load(record)}
    wanted = ((name, seed) for seed in range(first, first + problems) for name in names())
    with record.open("a") as file:
        for name, seed in islice(wanted, problems):
            if (name, seed) not in done:
                print(json.dumps(measure(name, seed, seconds=seconds)), file=file, flush=True)


def load(record: Path) -> list[dict[str, object]]:
    """Lines of a record; the last may be torn by a run that was killed."""
    rows = []
    for line in record.read_text().splitlines() if record.exists() else []:
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.honesty", description=__doc__)
    parser.add_argument("what", choices=["run", "table", "show"])
    parser.add_argument("--record", type=Path, default=RECORD)
    parser.add_argument("--problems", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=500_000, help="first seed")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="processor time of one recovery")
    parser.add_argument("--since", action="store_true", help="the table of a shorter run, beside that of ten thousand")
    options = parser.parse_args()
    if options.what == "run":
        run(options.record, options.problems, options.first, options.seconds)
        return
    rows = load(options.record)
    if options.what == "show":
        print(summary(rows))
    elif options.since:
        put(PAGE, SINCE, claims(rows))
    else:
        put(PAGE, FULL, summary(rows))


if __name__ == "__main__":
    main()
