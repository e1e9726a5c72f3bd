"""The command: run, tables, compare, tune."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.compare import compare, show
from benchmarks.measures import MEASURES
from benchmarks.results import RESULTS
from benchmarks.run import run
from benchmarks.tables import write
from benchmarks.tune import tune


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="measure what has not been measured yet")
    running.add_argument("--quick", action="store_true", help="small sizes, few seeds: minutes")
    running.add_argument("--only", nargs="+", choices=list(MEASURES), help="only these measures")
    running.add_argument("--without", nargs="+", choices=list(MEASURES), default=[], help="all but these")
    running.add_argument("--seeds", type=int, help="number of seeds, where a measure has one number")
    running.add_argument("--first", type=int, help="first seed")
    running.add_argument("--limit", type=float, help="most wall seconds of one extraction")
    running.add_argument("--again", action="store_true", help="repeat what is there")
    running.add_argument("--jobs", type=int, default=1, help="so many of the measures that count CPU time at a time")
    running.add_argument("--out", type=Path, default=RESULTS, help="folder of the results (docs/results)")
    writing = commands.add_parser("tables", help="write docs/benchmarks.md, the figures and the README's table")
    writing.add_argument("--results", type=Path, default=RESULTS)
    writing.add_argument("--root", type=Path, default=RESULTS.parents[1], help="where README.md and docs are")
    comparing = commands.add_parser("compare", help="what got slower or less exact; exit code 1 if something did")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    commands.add_parser("tune", help="how the step sizes of the alternatives were chosen")
    args = parser.parse_args(arguments)
    if args.command == "run" and args.jobs < 1:
        parser.error(f"--jobs must be at least 1, got {args.jobs}")
    if args.command == "run":
        return run(args)
    if args.command == "tables":
        print("written from:", ", ".join(write(args.results, args.root)) or "nothing: run first")
        return 0
    if args.command == "compare":
        return show(compare(args.old, args.new))
    tune()
    return 0


if __name__ == "__main__":
    sys.exit(main())
