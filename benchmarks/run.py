"""Measuring: what is missing, several measures at a time where that is harmless, every row on disk at once."""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from threadpoolctl import threadpool_limits

from benchmarks.clock import now
from benchmarks.measures import MEASURES, TOGETHER
from benchmarks.results import Row, Store


def settings_of(name: str, args: argparse.Namespace) -> Row:
    """The settings of a measure, with the seeds asked for."""
    chosen = dict(MEASURES[name].QUICK if args.quick else MEASURES[name].FULL)
    given = {"seeds": args.seeds, "first": args.first, "limit": args.limit}
    return chosen | {key: value for key, value in given.items() if value is not None and key in chosen}


def run(args: argparse.Namespace) -> int:
    """Measure what is missing: ``jobs`` at a time where that is harmless, then one by one."""
    names = args.only or [name for name in MEASURES if name not in args.without]
    minutes = {name: MEASURES[name].MINUTES[args.quick] for name in names}
    together = sorted(set(names) & set(TOGETHER), key=lambda name: -minutes[name]) if args.jobs > 1 else []
    alone = [name for name in names if name not in together]
    about = sum(minutes[name] for name in together) / args.jobs + sum(minutes[name] for name in alone)
    print(f"{', '.join(names)}: about {about:.0f} minutes", flush=True)
    if together:
        with ProcessPoolExecutor(args.jobs, get_context("spawn"), max_tasks_per_child=1) as pool:
            list(pool.map(partial(measured, args=args), together))
    for name in alone:
        measured(name, args)
    return 0


def measured(name: str, args: argparse.Namespace) -> None:
    """One measure; every row is on disk as soon as it is known."""
    measure, settings = MEASURES[name], settings_of(name, args)
    store = Store(args.out / f"{name}.json", name, settings, again=args.again)
    if store.complete:
        print(f"{name}: done already ({args.out / name}.json); --again repeats it", flush=True)
        return
    # extraction and scaling work in processes of their own, and use as many threads as they are given
    with threadpool_limits(1):
        for key, work in measure.cells(settings, store.rows):
            if key in store.rows:
                continue
            began = _clock()
            store.add(key, work(), _clock() - began)
            print(f"{name}: {key}  {_brief(store.rows[key])}  {store.seconds:.0f} s so far", flush=True)
    store.finish()


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
