"""A recovery as one HTML file that needs nothing but a browser."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.resources import files
from itertools import pairwise
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

import relumine
from relumine.arrays import Array
from relumine.deep import DeepNetwork
from relumine.report import drawings, story
from relumine.report.saved import write_text
from relumine.results import InvalidInput, Recovery, Status

# what a page shows at most; a larger network is cut, and the page says so
_MAP_UNITS, _MAP_INPUTS, _IMAGES, _TABLE_UNITS, _TABLE_INPUTS, _POINTS_UNITS = 200, 400, 100, 200, 24, 500

_NO_TABLES: dict[str, Any] = {
    "table": None,
    "table_cut": [],
    "affine": [],
}  # of a deep network: it has too many numbers


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
    if not isinstance(found, Recovery):
        raise InvalidInput(
            f"a report is about a result, such as rl.recover returns; got {type(found).__name__}",
            argument="found",
            remedy="a network alone is shown by its table in a notebook",
        )
    net, here, deep = found.network, files("relumine.report"), story.deep(found)
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
        observed=story.observed(found),
        residuals=_residuals(found, target),
        **(_layers(deep, names, image_shape) if deep else _pictures(found, names, image_shape)),
        **(_NO_TABLES if deep else _tables(found, names)),
    )


def _pictures(found: Recovery, names: list[str], image_shape: tuple[int, int] | None) -> dict[str, Any]:
    net, se = found.network, found.standard_errors
    # inputs in different units of measurement are compared by what a typical change of each does
    spread = None if image_shape is not None else story.spread(found)
    size = np.linalg.norm(np.atleast_2d(net.a), axis=0)
    points = story.choose(size, _POINTS_UNITS, "units", "those of largest output weight")
    p = points.kept
    single = np.atleast_2d(net.a).shape[0] == 1
    a = np.atleast_2d(net.a)[0] if single else size
    se_a = None if se is None or not single else np.atleast_2d(se.a)[0]
    pictures: dict[str, Any] = {"layers": [], "units_plot": None, "loss": None}
    if net.m:
        W = net.W if spread is None else net.W * spread
        pictures["layers"] = [_weights("The units", W, size, names, image_shape)]
        pictures["units_plot"] = drawings.units_plot(
            net.b[p],
            a[p],
            [str(i) for i in p],
            None if se is None else se.b[p],
            None if se_a is None else se_a[p],
            "output weight a" if single else "size of output weights ‖a‖",
        )
    pictures["per"] = "per unit of each input" if spread is None else "per standard deviation of the input"
    stages = story.trace(found)
    if sum(len(losses) for _, losses in stages) > 1:
        pictures["loss"] = drawings.loss_curve(stages)
    return pictures


def _layers(net: DeepNetwork, names: list[str], image_shape: tuple[int, int] | None) -> dict[str, Any]:
    """A picture for each layer of a deep network, input side first; units that count most behind them come first."""
    maps = [np.atleast_2d(W) for W, _ in net.maps]
    layers, columns = [], names
    for k, (W, behind) in enumerate(pairwise(maps)):
        title = f"Layer {k + 1}: {len(W)} units of {W.shape[1]} {'units' if k else 'inputs'}"
        shape = image_shape if k == 0 else None
        layers.append(_weights(title, W, np.linalg.norm(behind, axis=0), columns, shape))
        columns = [f"unit {i}" for i in range(len(W))]
    outputs = f"The output: {net.q or 1} of {maps[-1].shape[1]} units"
    layers.append(_weights(outputs, maps[-1], np.linalg.norm(maps[-1], axis=1), columns, None))
    return {"layers": layers, "units_plot": None, "loss": None, "per": "per unit of what goes in"}


def _weights(
    title: str, W: Array, size: Array, names: Sequence[str], image_shape: tuple[int, int] | None
) -> dict[str, Any]:
    """W (m, k) as a heat map, or each row as an image; ``size`` (m,): which rows count most."""
    reason = "those of largest output weight"
    units = story.choose(size, _IMAGES if image_shape is not None else _MAP_UNITS, "units", reason)
    columns = story.choose(np.abs(W).max(axis=0, initial=0.0), _MAP_INPUTS, "inputs", "those of largest weight")
    rows = [str(i) for i in units.kept]
    pictures: list[dict[str, str]] = []
    heat_map = None
    if image_shape is not None:
        pictures, columns = drawings.images(W[units.kept], rows, image_shape), story.Cut(np.arange(W.shape[1]))
    else:
        heat_map = drawings.heat_map(W[np.ix_(units.kept, columns.kept)], rows, [names[j] for j in columns.kept])
    cut = [sentence for sentence in (units.sentence, columns.sentence) if sentence]
    largest = f"{np.abs(W).max(initial=0.0):.3g}"
    return {"title": title, "heat_map": heat_map, "images": pictures, "cut": cut, "largest": largest}


def _residuals(found: Recovery, target: str, most: int = 4) -> dict[str, Any] | None:
    rows = story.shown(found)
    if rows is None:
        return None
    residual = rows.truth - rows.predicted
    q = residual.shape[1]
    noise = found.certificate.noise if q == 1 else 0.0  # of several outputs only one number is known
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
