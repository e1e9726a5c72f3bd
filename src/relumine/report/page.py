"""A recovery as one HTML file that needs nothing but a browser."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

import relumine
from relumine.report import drawings, story
from relumine.report.saved import write_text
from relumine.results import InvalidInput, Recovery, Status

__all__ = ["render", "write"]

# what a page shows at most; a larger network is cut, and the page says so
_MAP_UNITS, _MAP_INPUTS, _IMAGES, _TABLE_UNITS, _TABLE_INPUTS, _POINTS_UNITS = 200, 400, 100, 200, 24, 500


def write(
    found: Recovery,
    path: str | os.PathLike[str],
    *,
    features: Sequence[str] | None = None,
    target: str | None = None,
    image_shape: tuple[int, int] | None = None,
    title: str = "",
    network_file: str | None = None,
) -> None:
    """Write the report on a recovery, atomically: one self-contained HTML file.

    Parameters
    ----------
    found : Recovery
    path : path
        Where the page goes.
    features, target : names, optional
        Names of the d inputs and of the output; by default those in ``found.origin``, or x0, x1, …
    image_shape : (height, width), optional
        Show every unit as an image of this shape (height·width = d).
    title : str, optional
        What the data are, for the top of the page.
    network_file : str, optional
        Name of the saved network, for the lines that show how to load it.

    Examples
    --------
    >>> import relumine as rl, tempfile, pathlib
    >>> X, y = rl.planted.sample(rl.planted.network(d=2, m=1, rng=0), n=40, rng=1)
    >>> page = pathlib.Path(tempfile.mkdtemp()) / "report.html"
    >>> write(rl.recover(X, y, width=1, rng=0), page, features=["speed", "load"])
    >>> "Recovered exactly: " in page.read_text(encoding="utf-8")
    True
    """
    write_text(
        path,
        render(
            found, features=features, target=target, image_shape=image_shape, title=title, network_file=network_file
        ),
    )


def render(
    found: Recovery,
    *,
    features: Sequence[str] | None = None,
    target: str | None = None,
    image_shape: tuple[int, int] | None = None,
    title: str = "",
    network_file: str | None = None,
) -> str:
    """The page as text; see :func:`write`."""
    if hasattr(found.network, "layers"):  # a DeepNetwork
        raise InvalidInput(
            f"the page shows networks with one hidden layer, and this one has {len(found.network.layers) + 1}",
            argument="report",
            remedy="keep the network (found.network.save) or the whole result (relumine.report.save)",
        )
    net, here = found.network, files("relumine.report")
    names = story.features(found, features)
    if image_shape is not None and image_shape[0] * image_shape[1] != net.d:
        raise InvalidInput(
            f"image_shape {image_shape} has {image_shape[0] * image_shape[1]} pixels, not {net.d} inputs"
        )
    # autoescape: names of columns and messages are other people's text
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(here.joinpath("page.html.j2").read_text(encoding="utf-8"))
    tone, sign = story.tone(found)
    target = target or found.origin.target or "y"
    return template.render(
        style=Markup(here.joinpath("page.css").read_text(encoding="utf-8")),
        script=Markup(here.joinpath("page.js").read_text(encoding="utf-8")),
        title=title,
        status=story.title(found),
        found=found,
        net=net,
        tone=tone,
        sign=sign,
        headline=found.headline,
        sure=story.sure(found),
        cards=story.cards(found),
        target=target,
        stages=[
            (s, story.duration(s.seconds), None if s.loss is None else story.scientific(s.loss)) for s in found.stages
        ],
        advice=story.advice(found),
        version=relumine.__version__,
        usable=found.ok or found.status is Status.INTERRUPTED,
        network_file=network_file or "net.safetensors",
        **_pictures(found, names, image_shape, target),
        **_tables(found, names),
    )


def _pictures(found: Recovery, names: list[str], image_shape: tuple[int, int] | None, target: str) -> dict[str, Any]:
    net, se = found.network, found.standard_errors
    # inputs in different units of measurement are compared by what a typical change of each does
    spread = None if image_shape is not None else story.spread(found)
    W = net.W if spread is None else net.W * spread
    size = np.linalg.norm(np.atleast_2d(net.a), axis=0)
    units = story.choose(size, _MAP_UNITS, "units", "those of largest output weight")
    columns = story.choose(np.abs(W).max(axis=0, initial=0.0), _MAP_INPUTS, "inputs", "those of largest weight")
    points = story.choose(size, _POINTS_UNITS, "units", "those of largest output weight")
    p = points.kept
    single = np.atleast_2d(net.a).shape[0] == 1
    a = np.atleast_2d(net.a)[0] if single else size
    se_a = None if se is None or not single else np.atleast_2d(se.a)[0]
    pictures: dict[str, Any] = {"heat_map": None, "images": [], "units_plot": None, "loss": None, "residuals": None}
    if net.m and image_shape is not None:
        chosen = story.choose(size, _IMAGES, "units", "those of largest output weight")
        pictures["images"] = drawings.images(net.W[chosen.kept], [str(i) for i in chosen.kept], image_shape)
        units, columns = chosen, story.Cut(np.arange(net.d))
    elif net.m:
        pictures["heat_map"] = drawings.heat_map(
            W[np.ix_(units.kept, columns.kept)], [str(i) for i in units.kept], [names[j] for j in columns.kept]
        )
    if net.m:
        pictures["units_plot"] = drawings.units_plot(
            net.b[p],
            a[p],
            [str(i) for i in p],
            None if se is None else se.b[p],
            None if se_a is None else se_a[p],
            "output weight a" if single else "size of output weights ‖a‖",
        )
    pictures["cut"] = [cut for cut in (units.sentence, columns.sentence) if cut]
    pictures["largest"] = f"{np.abs(W).max(initial=0.0):.3g}"
    pictures["per"] = "per unit of each input" if spread is None else "per standard deviation of the input"
    stages = story.trace(found)
    if sum(len(losses) for _, losses in stages) > 1:
        pictures["loss"] = drawings.loss_curve(stages)
    pictures["residuals"] = _residuals(found, target)
    return pictures


def _residuals(found: Recovery, target: str, most: int = 4) -> dict[str, Any] | None:
    rows = story.shown(found)
    if rows is None:
        return None
    residual = rows.truth - rows.predicted
    q = residual.shape[1]
    noise = found.certificate.noise if q == 1 else 0.0
    names = [target] if q == 1 else target.split(", ")
    if len(names) != q:
        names = [f"output {k}" for k in range(q)]
    outputs = [
        {
            "name": "" if q == 1 else names[k],
            "scatter": drawings.predicted_against_true(rows.truth[:, k], rows.predicted[:, k], names[k]),
            "histogram": drawings.histogram(residual[:, k], noise),
        }
        for k in range(min(q, most))
    ]
    return {
        "rows": len(residual),
        "unseen": rows.unseen,
        "largest": story.scientific(float(np.abs(residual).max())),
        "rms": story.scientific(float(np.sqrt(np.mean(residual**2)))),
        "outputs": outputs,
        "left": q - len(outputs),
    }


def _tables(found: Recovery, names: list[str]) -> dict[str, Any]:
    net = found.network
    size = np.linalg.norm(np.atleast_2d(net.a), axis=0)
    rows = story.choose(size, _TABLE_UNITS, "units", "those of largest output weight")
    columns = story.choose(np.abs(net.W).max(axis=0, initial=0.0), _TABLE_INPUTS, "inputs", "those of largest weight")
    affine = []
    if np.any(net.v) or np.any(net.c):
        se = found.standard_errors
        V, c = np.atleast_2d(net.v)[0], np.atleast_1d(net.c)[0]
        sV, sc = (None, None) if se is None else (np.atleast_2d(se.v)[0], np.atleast_1d(se.c)[0])
        kept = story.choose(np.abs(V), _TABLE_INPUTS, "inputs", "").kept
        affine = [("c", story.fixed(float(c)), None if sc is None or not np.isfinite(sc) else f"{sc:.2g}")]
        affine += [
            (names[j], story.fixed(float(V[j])), None if sV is None or not np.isfinite(sV[j]) else f"{sV[j]:.2g}")
            for j in (kept if np.any(net.v) else ())
        ]
    return {
        "table": story.parameter_table(found, rows.kept, columns.kept, names),
        "table_cut": [cut for cut in (rows.sentence, columns.sentence) if cut],
        "affine": affine,
    }
