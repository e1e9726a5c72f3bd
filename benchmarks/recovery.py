"""How often `recover` finds the planted network, and what it costs: one JSON file, one table.

python -m benchmarks.recovery [--seeds 20] [--first 5000] [--only NAME] [--out docs/results/recovery.json]
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import relumine as rl

Problem = tuple[rl.Network, np.ndarray, np.ndarray]


def generic(d: int, m: int, ratio: float, **kw: object) -> Callable[[int], Problem]:
    def make(seed: int) -> Problem:
        net = rl.planted.network(d, m, rng=seed, **kw)
        return net, *rl.planted.sample(net, int(ratio * max(m, 1) * (d + 1)), rng=seed + 1)

    return make


def small_weight(seed: int) -> Problem:
    net = rl.planted.network(10, 5, rng=seed)
    a = net.a.copy()
    a[0] = 0.01
    net = net.replace(a=a)
    return net, *rl.planted.sample(net, 20 * 55, rng=seed + 1)


def repeated_biases(seed: int) -> Problem:
    net = rl.planted.network(10, 6, rng=seed)
    net = net.replace(b=np.repeat(net.b[:2], 3))
    return net, *rl.planted.sample(net, 20 * 66, rng=seed + 1)


def affine_target(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    net = rl.Network(np.zeros((0, 10)), np.zeros(0), np.zeros(0), v=rng.normal(size=10), c=rng.normal())
    return net, *rl.planted.sample(net, 220, rng=rng)


def uniform_inputs(seed: int) -> Problem:
    net = rl.planted.network(10, 10, rng=seed)
    X = np.random.default_rng(seed + 1).uniform(-np.sqrt(3), np.sqrt(3), size=(1100, 10))
    return net, X, net(X)


def shifted_inputs(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(10, 10)))[0]
    cov = (Q * np.geomspace(1.0, 100.0, 10)) @ Q.T
    net = rl.planted.network(10, 10, rng=rng)
    # kinks pass through the data: the bias is measured from the mean of the inputs
    net = net.replace(b=net.b - net.W @ np.full(10, 3.0))
    return net, *rl.planted.sample(net, 1100, rng=rng, mean=np.full(10, 3.0), cov=cov)


def shipped(name: str) -> Callable[[int], Problem]:
    def make(seed: int) -> Problem:
        with np.load(Path(__file__).parents[2] / "shared" / "nets" / f"{name}.npz") as file:
            net = rl.Network(file["W"], file["b"], file["a"], c=file["c"])
        return net, *rl.planted.sample(net, 6 * net.m * (net.d + 1), rng=seed)

    return make


CASES: dict[str, tuple[Callable[[int], Problem], float, int]] = {
    # name: (problem of a seed, share that must be exact, most seeds worth running)
    "(10,5) n/p=5": (generic(10, 5, 5), 0.95, 100),
    "(10,10) n/p=5": (generic(10, 10, 5), 0.95, 100),
    "(20,20) n/p=5": (generic(20, 20, 5), 0.95, 100),
    "(10,20) n/p=5": (generic(10, 20, 5), 0.95, 100),
    "(50,20) n/p=5": (generic(50, 20, 5), 0.95, 40),
    "(100,10) n/p=5": (generic(100, 10, 5), 0.95, 40),
    "(10,40) n/p=8": (generic(10, 40, 8), 0.95, 40),
    "(10,20)x5 n/p=4": (generic(10, 20, 4, outputs=5), 0.95, 40),
    "(50,50) n/p=6": (generic(50, 50, 6), 0.90, 10),
    "(10,5) n/p=3": (generic(10, 5, 3), 0.80, 100),
    "(10,10) n/p=3": (generic(10, 10, 3), 0.80, 100),
    "(10,5) |b|<2.5 n/p=40": (generic(10, 5, 40, bias=2.5), 0.95, 100),
    "(20,10) |b|<2.5 n/p=40": (generic(20, 10, 40, bias=2.5), 0.95, 40),
    "orthonormal 6 n/p=20": (generic(6, 6, 20, family="orthonormal"), 1.0, 100),
    "orthonormal 10 n/p=20": (generic(10, 10, 20, family="orthonormal"), 1.0, 100),
    "orthonormal 20 n/p=20": (generic(20, 20, 20, family="orthonormal"), 1.0, 40),
    "5 degrees (10,5) n/p=20": (generic(10, 5, 20, family="nearly_parallel"), 0.95, 100),
    "one |a|=0.01 (10,5) n/p=20": (small_weight, 0.95, 100),
    "repeated biases (10,6) n/p=20": (repeated_biases, 0.95, 100),
    "m=1 (10,1) n/p=20": (generic(10, 1, 20), 0.95, 100),
    "m=0 affine": (affine_target, 0.95, 100),
    "uniform inputs (10,10) n/p=10": (uniform_inputs, 0.95, 40),
    "mean 3, condition 100 (10,10) n/p=10": (shifted_inputs, 0.95, 40),
    "mnist_0vs1 784-2-1 n/p=6": (shipped("mnist_0vs1_784_2_1"), 1.0, 3),
    "mnist_2vs3 784-2-1 n/p=6": (shipped("mnist_2vs3_784_2_1"), 1.0, 3),
    "simulated 2048-4-1 n/p=6": (shipped("simulated_2048_4_1"), 1.0, 1),
    "cifar10 3072-2-1 n/p=6": (shipped("cifar10_0vs1_3072_2_1"), 1.0, 1),
    "(100,100) n/p=8": (generic(100, 100, 8), 1.0, 1),
}


def run(name: str, seeds: range, *, width_known: bool = True) -> dict[str, object]:
    make, bar, most = CASES[name]
    errors, times, starts, statuses, widths = [], [], [], [], []
    for seed in seeds[:most]:
        truth, X, y = make(seed)
        began = time.perf_counter()
        found = rl.recover(X, y, width=truth.m if width_known else None, rng=seed + 2, on_failure="return")
        times.append(time.perf_counter() - began)
        errors.append(rl.metrics.parameter_error(truth, found.network))
        statuses.append(found.status.value)
        starts.append(int(found.details.get("starts", 0)))
        widths.append(found.network.m == truth.m)
    exact = float(np.mean(np.array(errors) <= 1e-8))
    row: dict[str, object] = {"case": name, "width_known": width_known, "bar": bar, "exact": exact, "runs": len(errors)}
    row |= {"median_error": float(np.median(errors)), "median_seconds": float(np.median(times))}
    row |= {"mean_starts": float(np.mean(starts)), "right_width": float(np.mean(widths)), "seeds": [*seeds[:most]]}
    # said exact and was not: must never happen
    row["confident_and_wrong"] = sum(s == "exact" and e > 1e-6 for s, e in zip(statuses, errors))
    # of the whole process so far: meaningful for a case run alone (--only)
    row["peak_megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    row["data_megabytes"] = (X.nbytes + y.nbytes) / 2**20
    row["statuses"] = {s: statuses.count(s) for s in sorted(set(statuses))}
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=5000)
    parser.add_argument("--only", default="", help="substring of the case names")
    parser.add_argument("--width-unknown", action="store_true")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    rows = []
    for name in CASES:
        if args.only not in name:
            continue
        row = run(name, range(args.first, args.first + args.seeds), width_known=not args.width_unknown)
        rows.append(row)
        print(
            f"{name:40s} exact {row['exact']:.2f} (bar {row['bar']:.2f}, {row['runs']} runs) "
            f"error {row['median_error']:.0e} {row['median_seconds']:.2f} s, {row['mean_starts']:.1f} starts, "
            f"width {row['right_width']:.2f}, wrong {row['confident_and_wrong']}, {row['statuses']}",
            flush=True,
        )
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        machine = {"python": platform.python_version(), "numpy": np.__version__, "relumine": rl.__version__}
        temporary = args.out.with_suffix(".tmp")
        temporary.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1))
        temporary.replace(args.out)


if __name__ == "__main__":
    main()
