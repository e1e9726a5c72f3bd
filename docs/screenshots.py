"""Pictures of the report, the demo, a notebook and the site for docs/figures: make pictures.

Needs chromium, and the site itself (`make docs`). On the way every page of the site is opened once without a network,
in a window as narrow as a phone: it must load nothing from elsewhere, leave no error on the console, and fit.
"""

import html
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import relumine as rl

HERE = Path(__file__).parent
SITE = HERE / "_build" / "html"
sys.path.insert(0, str(HERE.parent))

from tests.report.browser import Browser, chromium  # noqa: E402

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


NOTEBOOK = """<!doctype html><meta charset=utf-8><style>
body {{ margin: 0; padding: 22px 26px; background: #fff; width: 900px; box-sizing: border-box; font: 14px sans-serif }}
pre {{ background: #f6f6f4; border: 1px solid #ddd; border-radius: 3px; padding: 9px 12px; margin: 0 0 14px 62px;
       font: 13px/1.45 "DejaVu Sans Mono", monospace }}
u {{ float: left; text-decoration: none; color: #7a8794; font: 13px "DejaVu Sans Mono", monospace; padding-top: 10px }}
div.out {{ margin-left: 62px }}
</style><u>In [1]:</u><pre>{}</pre><u>Out[1]:</u><div class=out>{}</div>"""
CELL = """import relumine as rl

truth = rl.planted.network(d=4, m=3, rng=0)
X, y = rl.planted.sample(truth, n=600, noise=0.05, rng=1)
rl.recover(X, y, rng=0)"""


def notebook(path: Path) -> None:
    """A cell and what it shows."""
    names: dict[str, object] = {}
    *lines, last = CELL.splitlines()
    exec("\n".join(lines), names)
    shown = eval(last, names)._repr_html_()
    path.write_text(NOTEBOOK.format(html.escape(CELL), shown), encoding="utf-8")


def browse(window: Browser) -> list[str]:
    """What is wrong with the pages of the site, opened without a network in a narrow window."""
    window.look(390)
    window.cdp("Network.enable")
    window.cdp("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)
    complaints = []
    for page in sorted(SITE.rglob("*.html")):
        if "_static" not in page.parts:
            window.open(page)
            complaints += [f"{page.relative_to(SITE)}: {message}" for message in window.console()]
            if window.run("return document.documentElement.scrollWidth > window.innerWidth"):
                complaints.append(f"{page.relative_to(SITE)}: wider than a phone")
    return complaints


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data(folder / "turbine.csv")
        command("recover", "turbine.csv", "--target", "power", "--report", "report.html", "-q", folder=folder)
        text = command("demo", "--out", str(HERE / "figures" / "demo.png"), folder=folder)
        text = text[text.index("A hidden") :]
        shown = "\n".join(line for line in text.splitlines() if not line.startswith("Picture")).rstrip()
        (folder / "terminal.html").write_text(TERMINAL.format(html.escape(shown)), encoding="utf-8")
        notebook(folder / "notebook.html")
        with chromium(folder / "profile") as window:
            complaints = browse(window) if SITE.exists() else ["there is no site: run `make docs` first"]
            for page, picture, width, height, dark in (
                ("report.html", "report.png", 1120, 1640, False),
                ("report.html", "report-phone.png", 390, 1640, True),
                ("terminal.html", "demo-terminal.png", 820, 100, False),
                ("notebook.html", "notebook.png", 900, 100, False),
                (str(SITE / "index.html"), "site.png", 1280, 900, False),
                (str(SITE / "examples" / "index.html"), "site-examples.png", 1280, 900, False),
            ):
                window.look(width, height, dark)
                window.open(folder / page)
                if page in ("terminal.html", "notebook.html"):
                    window.look(width, window.run("return document.body.scrollHeight"))
                window.picture(HERE / "figures" / picture, whole=False)
    sys.exit("\n".join(complaints) or 0)


if __name__ == "__main__":
    main()
