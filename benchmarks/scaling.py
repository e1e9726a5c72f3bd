"""Time and memory of `recover` against n, with the fitted exponent. Each size runs in a process of its own.

python -m benchmarks.scaling [--dim 10] [--width 20] [--out docs/results/scaling.json]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

RUN = """
import json, resource, sys, time
import numpy as np
import relumine as rl
d, m, n = map(int, sys.argv[1:])
truth = rl.planted.network(d, m, rng=1)
rl.recover(*rl.planted.sample(truth, 6 * m * (d + 1), rng=5), width=m, rng=3)   # everything loaded and warm
X, y = rl.planted.sample(truth, n, rng=2)
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before, began = peak(), time.perf_counter()
found = rl.recover(X, y, width=m, rng=3)
seconds = time.perf_counter() - began
print(json.dumps({"n": n, "seconds": seconds, "starts": found.details["starts"], "data_bytes": X.nbytes + y.nbytes,
                  "extra_bytes": peak() - before, "error": rl.metrics.parameter_error(truth, found.network)}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dim", type=int, default=10)
    parser.add_argument("--width", type=int, default=20)
    parser.add_argument("--sizes", type=int, nargs="+", default=[5_000, 20_000, 80_000, 320_000])
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    rows = []
    for n in args.sizes:
        command = [sys.executable, "-c", RUN, str(args.dim), str(args.width), str(n)]
        row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        rows.append(row)
        print(
            f"n = {n:8d}  {row['seconds']:7.2f} s  {row['starts']} start(s)  error {row['error']:.0e}  "
            f"peak memory beyond the data {row['extra_bytes'] / row['data_bytes']:.2f} x the data",
            flush=True,
        )
    exponent = float(np.polyfit(np.log([r["n"] for r in rows]), np.log([r["seconds"] for r in rows]), 1)[0])
    print(f"time grows like n^{exponent:.2f}")
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        report = {"dim": args.dim, "width": args.width, "exponent": exponent, "rows": rows}
        args.out.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
