"""Write docs/benchmarks.md and the table in the README from the JSON in docs/results; nothing in them is typed.

python -m benchmarks.tables
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"


def load(name: str) -> dict[str, Any] | None:
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 10.0 else f"{seconds:.2g} s"


def recovery_rows(report: dict[str, Any]) -> list[list[str]]:
    return [
        [
            row["case"].replace("|", "\\|"),
            f"{round(row['exact'] * row['runs'])}/{row['runs']}",
            f"{row['median_error']:.0e}",
            duration(row["median_seconds"]),
            f"{row['mean_starts']:.1f}",
        ]
        for row in report["rows"]
    ]


HEADER = ["planted network (d, m)", "exact", "median error", "median time", "starts"]


def readme() -> str:
    report = load("recovery")
    if report is None:
        return ""
    shown = (
        "(10,20) n/p=5",
        "(50,50) n/p=6",
        "(10,10) n/p=3",
        "(10,20)x5",
        "orthonormal 20",
        "mnist_2vs3",
        "(100,100)",
    )
    rows = [r for r in recovery_rows(report) if r[0].startswith(shown)]
    return table(HEADER, rows)


def page() -> str:
    parts = [
        "# Benchmarks",
        "Written by `python -m benchmarks.tables` from `docs/results/*.json`; two shared cores, so times are rough and "
        "only ratios within a run mean much.",
    ]
    if (report := load("recovery")) is not None:
        seeds = report["rows"][0]["seeds"]
        parts += [
            "## Exact recovery",
            f"`python -m benchmarks.recovery --first {seeds[0]}`, one thread. *Exact*: every parameter within 1e-8 "
            "after matching. n/p: samples per parameter, p = m(d+1). Called exact but wrong by more than 1e-6: "
            f"{sum(row['confident_and_wrong'] for row in report['rows'])} of "
            f"{sum(row['runs'] for row in report['rows'])} runs.",
            table(HEADER, recovery_rows(report)),
        ]
        parts += [
            f"{row['case']}: run alone on all cores, {row['peak_megabytes']:.0f} MB peak memory of the process for "
            f"{row['data_megabytes']:.0f} MB of data."
            for row in report["rows"]
            if "peak_megabytes" in row and row["case"].startswith("(100,100)")
        ]
    if (report := load("width_unknown")) is not None:
        rows = [[*r, f"{row['right_width']:.0%}"] for r, row in zip(recovery_rows(report), report["rows"])]
        parts += ["## Width unknown", "The same with `width=None`.", table([*HEADER, "right width"], rows)]
    if (report := load("against_descent")) is not None:
        rows = [
            [str(r["seed"]), r["method"], f"{r['seconds']:.2f} s", f"{r['relative_loss']:.0e}", f"{r['error']:.0e}"]
            for r in report["rows"]
        ]
        parts += [
            "## Against descent",
            f"(d, m) = ({report['dim']}, {report['width']}), n/p = {report['ratio']}, one thread each, "
            "`python -m benchmarks.against_descent`.",
            table(["seed", "method", "time", "relative loss", "parameter error"], rows),
        ]
    if (report := load("scaling")) is not None:
        rows = [
            [f"{r['n']:,}", f"{r['seconds']:.2f} s", f"{r['extra_bytes'] / r['data_bytes']:.1f} ×"]
            for r in report["rows"]
        ]
        parts += [
            "## Time and memory against n",
            f"(d, m) = ({report['dim']}, {report['width']}): time grows like n^{report['exponent']:.2f}. Memory is "
            "what the run adds to the data.",
            table(["n", "time", "extra memory"], rows),
        ]
    if (report := load("hot_loop")) is not None:
        rows = [
            [f"({r['d']}, {r['m']}, {r['n']:,})", str(r["gemms"]), f"{r['gemm_share']:.0%}"] for r in report["rows"]
        ]
        parts += [
            "## The hot loop",
            "Speed of one conjugate gradient product relative to the large GEMMs it contains alone, one thread, "
            "`python -m benchmarks.hot_loop`.",
            table(["(d, m, n)", "GEMMs", "speed"], rows),
        ]
    return "\n\n".join(parts) + "\n"


PASSES = {
    "read": "reading alone",
    "whitening": "whitening",
    "subspace": "moments of order 4, regressed, in the 5-dimensional span (126 features)",
    "plain": "moments of order 4, plain, in all 20 dimensions (231 features)",
    "recover": "`recover`, exact data, width known",
    "width unknown": "`recover`, exact data, width unknown",
    "recover noisy": "`recover`, noisy data, width known",
}


def out_of_core() -> str:
    report = load("out_of_core")
    if report is None:
        return ""
    passes = {name: results for name, results in report["passes"].items() if results}
    rows = [
        [
            PASSES[name],
            duration(results[-1]["seconds"]),
            f"{results[-1]['fraction_of_gemm']:.0%}" if "fraction_of_gemm" in results[-1] else "",
            f"{results[-1]['peak_MB']:.0f} MB",
        ]
        for name, results in passes.items()
    ]
    largest = f"{passes['read'][-1]['n']:,} rows"
    growing = list(report.get("exponents", {}))
    sizes = [int(r["n"]) for r in passes[growing[0]]]
    growth = [
        [f"{n:,}", *(f"{duration(passes[k][i]['seconds'])}, {passes[k][i]['peak_MB']:.0f} MB" for k in growing)]
        for i, n in enumerate(sizes)
    ]
    growth.append(["grows like", *(f"n^{report['exponents'][k]:.2f}" for k in growing)])
    return "\n\n".join(
        [
            table([f"over {largest}", "time", "of same-flop GEMM", "peak memory"], rows),
            table(["rows", *(PASSES[k].split(" (")[0] for k in growing)], growth),
        ]
    )


def put(path: Path, mark: str, content: str) -> None:
    """Replace what stands between two comments."""
    begin, end = f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
    text = path.read_text()
    path.write_text(re.sub(f"{begin}.*{end}", lambda _: f"{begin}\n{content}\n{end}", text, flags=re.S))


if __name__ == "__main__":
    (ROOT / "docs" / "benchmarks.md").write_text(page())
    put(ROOT / "README.md", "recovery table", readme())
    put(ROOT / "docs" / "scale.md", "out of core", out_of_core())
