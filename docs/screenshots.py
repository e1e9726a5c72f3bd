"""Make the pictures of the report and of the demo in docs/figures: python docs/screenshots.py (needs chromium)."""

import html
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import relumine as rl

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

from browser import chromium  # noqa: E402

NAMES = ["temperature", "pressure", "flow rate", "humidity", "wind speed", "load", "vibration", "hour"]
TERMINAL = """<!doctype html><meta charset=utf-8><style>
body {{ margin: 0; padding: 26px; background: #e9e6df; width: 820px; box-sizing: border-box }}
div {{ background: #171b21; border-radius: 10px; box-shadow: 0 6px 24px rgb(0 0 0 / 30%); padding: 14px 20px 18px }}
i {{ display: inline-block; width: 11px; height: 11px; border-radius: 50%; margin: 0 7px 12px 0 }}
pre {{ margin: 0; color: #d9dee6; font: 13.5px/1.42 "DejaVu Sans Mono", monospace }} b {{ color: #7cc7a2 }}
</style><div><i style="background:#e0675c"></i><i style="background:#e0ae4a"></i><i style="background:#57c78f"></i>
<pre><b>$ relumine demo</b>
{}</pre></div>"""


def command(*words: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "relumine.cli", *words],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "80", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
    )
    return done.stdout


def data(path: Path) -> None:
    net = rl.planted.network(len(NAMES), 6, rng=5)
    X, y = rl.planted.sample(net, 1200, noise=0.05, rng=6)
    header = ",".join([*NAMES, "power"])
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", header=header, comments="", fmt="%.17g")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data(folder / "turbine.csv")
        command("recover", "turbine.csv", "--target", "power", "--report", "report.html", "-q", folder=folder)
        text = command("demo", "--out", str(HERE / "figures" / "demo.png"), folder=folder)
        text = text[text.index("A hidden") :]
        shown = "\n".join(line for line in text.splitlines() if not line.startswith("Picture")).rstrip()
        (folder / "terminal.html").write_text(TERMINAL.format(html.escape(shown)), encoding="utf-8")
        with chromium(folder / "profile") as window:
            for page, picture, width, height, dark in (
                ("report.html", "report.png", 1120, 1640, False),
                ("report.html", "report-phone.png", 390, 1640, True),
                ("terminal.html", "demo-terminal.png", 820, 100, False),
            ):
                window.look(width, height, dark)
                window.open(folder / page)
                if page == "terminal.html":
                    window.look(width, window.run("return document.body.scrollHeight"))
                window.picture(HERE / "figures" / picture, whole=False)


if __name__ == "__main__":
    main()
