"""Exact recovery against what people use today, on the same data in one run.

    python -m benchmarks.against_descent [--dim 10] [--width 20] [--ratio 10] [--seeds 3]

PyTorch (Adam, 4000 full-batch steps) is used where it is installed;
scikit-learn's MLPRegressor (lbfgs, best of five seeds) always.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.neural_network import MLPRegressor
from threadpoolctl import threadpool_limits

import relumine as rl

RATE = 3e-3


def relumine(X: np.ndarray, y: np.ndarray, width: int, seed: int) -> rl.Network:
    return rl.recover(X, y, width=width, rng=seed, on_failure="return").network


def sklearn_lbfgs(X: np.ndarray, y: np.ndarray, width: int, seed: int) -> rl.Network:
    fits = []
    for start in range(5):
        model = MLPRegressor(
            hidden_layer_sizes=(width,),
            solver="lbfgs",
            alpha=0.0,
            max_iter=5000,
            max_fun=10**6,
            random_state=5 * seed + start,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fits.append(model.fit(X, y))
    best = min(fits, key=lambda model: float(np.mean((model.predict(X) - y) ** 2)))
    (W, a), (b, c) = best.coefs_, best.intercepts_
    return rl.Network(W.T, b, a[:, 0], c=c[0])


def torch_adam(X: np.ndarray, y: np.ndarray, width: int, seed: int, steps: int = 4000) -> rl.Network:
    """The step size 3e-3 ended lowest of 1e-3, 3e-3, 1e-2 and 3e-2 at (10, 20), n/p = 10."""
    import torch

    torch.manual_seed(seed)
    inputs, targets = torch.tensor(X), torch.tensor(y)
    hidden, out = (torch.nn.Linear(*shape, dtype=torch.float64) for shape in ((X.shape[1], width), (width, 1)))
    optimiser = torch.optim.Adam([*hidden.parameters(), *out.parameters()], lr=RATE)
    for _ in range(steps):
        optimiser.zero_grad()
        loss = ((out(torch.relu(hidden(inputs)))[:, 0] - targets) ** 2).mean()
        loss.backward()
        optimiser.step()
    W, b, a, c = (p.detach().numpy() for p in (*hidden.parameters(), *out.parameters()))
    return rl.Network(W, b, a[0], c=c[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in (("--dim", 10), ("--width", 20), ("--ratio", 10), ("--seeds", 3)):
        parser.add_argument(name, type=int, default=value)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    methods = {"relumine": relumine, "scikit-learn lbfgs, best of 5": sklearn_lbfgs}
    try:
        import torch

        torch.set_num_threads(1)
        methods["PyTorch Adam, 4000 steps"] = torch_adam
    except ImportError:
        print("PyTorch is not installed: its rows are left out")
    rows = []
    for seed in range(100, 100 + args.seeds):
        truth = rl.planted.network(args.dim, args.width, rng=seed)
        X, y = rl.planted.sample(truth, args.ratio * args.width * (args.dim + 1), rng=seed + 1)
        for name, method in methods.items():
            with threadpool_limits(1):
                began = time.perf_counter()
                found = method(X, y, args.width, seed)
                seconds = time.perf_counter() - began
            loss = float(np.mean((found(X) - y) ** 2) / np.var(y))
            error = rl.metrics.parameter_error(truth, found)
            rows.append({"method": name, "seed": seed, "seconds": seconds, "relative_loss": loss, "error": error})
            print(
                f"seed {seed} {name:32s} {seconds:7.2f} s  relative loss {loss:.1e}  parameter error {error:.1e}",
                flush=True,
            )
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(
            json.dumps({"dim": args.dim, "width": args.width, "ratio": args.ratio, "rows": rows}, indent=1)
        )


if __name__ == "__main__":
    main()
