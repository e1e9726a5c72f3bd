"""The command: run, tables, compare, tune."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks.clock import now
from benchmarks.compare import compare, show
from benchmarks.measures import MEASURES
from benchmarks.results import RESULTS, Row, Store
from benchmarks.tables import write
from benchmarks.tune import tune


def settings_of(name: str, args: argparse.Namespace) -> Row:
    """The settings of a measure, with the seeds asked for."""
    chosen = dict(MEASURES[name].QUICK if args.quick else MEASURES[name].FULL)
    given = {"seeds": args.seeds, "first": args.first, "limit": args.limit}
    return chosen | {key: value for key, value in given.items() if value is not None and key in chosen}


def run(args: argparse.Namespace) -> int:
    """Measure what is missing; every row is on disk as soon as it is known."""
    names = args.only or [name for name in MEASURES if name not in args.without]
    print(
        f"{', '.join(names)}: about {sum(MEASURES[name].MINUTES[args.quick] for name in names):.0f} minutes", flush=True
    )
    for name in names:
        measure, settings = MEASURES[name], settings_of(name, args)
        store = Store(args.out / f"{name}.json", name, settings, again=args.again)
        if store.complete:
            print(f"{name}: done already ({args.out / name}.json); --again repeats it", flush=True)
            continue
        # extraction and scaling work in processes of their own, and use as many threads as they are given
        with threadpool_limits(1):
            for key, work in measure.cells(settings, store.rows):
                if key in store.rows:
                    continue
                began = _clock()
                store.add(key, work(), _clock() - began)
                print(f"{name}: {key}  {_brief(store.rows[key])}  {store.seconds:.0f} s so far", flush=True)
        store.finish()
    return 0


def _clock() -> float:
    """CPU seconds of this process and of the ones it waited for."""
    times = os.times()
    return now() + times.children_user + times.children_system


def _brief(row: Row) -> str:
    if "methods" in row:
        return ", ".join(f"{k} {v['error']:.0e}" for k, v in row["methods"].items() if v["error"] is not None)
    shown = ("gemm_share", "exact", "runs", "error", "losses", "queries", "wall_seconds")
    return ", ".join(
        f"{k} {row[k]}" if not isinstance(row[k], float) else f"{k} {row[k]:.3g}" for k in shown if k in row
    )


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
    running.add_argument("--out", type=Path, default=RESULTS, help="folder of the results (docs/results)")
    writing = commands.add_parser("tables", help="write docs/benchmarks.md, the figures and the README's table")
    writing.add_argument("--results", type=Path, default=RESULTS)
    writing.add_argument("--root", type=Path, default=RESULTS.parents[1], help="where README.md and docs are")
    comparing = commands.add_parser("compare", help="what got slower or less exact; exit code 1 if something did")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    commands.add_parser("tune", help="how the step sizes of the alternatives were chosen")
    args = parser.parse_args(arguments)
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
