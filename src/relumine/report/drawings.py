"""The pictures of the report, as SVG; colours come from the page's style sheet, so that they follow light and dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import log10
from typing import TypeVar

import numpy as np
from markupsafe import Markup

from relumine.arrays import Array
from relumine.report.axes import Axes, element, label, linear_ticks, log_ticks, number, svg
from relumine.report.png import data_uri, strength

Item = TypeVar("Item")


_CELLS = 1600  # entries up to which each is a rectangle that tells its value
_POINTS = 800  # of a scatter plot: 60 kB of the page, and more hide each other


def heat_map(W: Array, rows: Sequence[str], columns: Sequence[str]) -> Markup:
    """W (units × inputs): orange positive, blue negative, stronger is larger."""
    m, d = W.shape
    largest = float(np.abs(W).max(initial=0.0))
    title = f"Heat map of the hidden weights: {m} units by {d} inputs; largest magnitude {largest:.3g}"
    named = d <= 48
    cell = float(np.clip(760.0 / max(d, 1), 2.0 if d > 120 else 8.0, 46.0))
    tall = float(np.clip(560.0 / max(m, 1), 2.0, 32.0))
    left, top = 46.0, 10.0
    if named:
        top += min(max((len(_short(c)) for c in columns), default=1) * 6.2 * (0.72 if cell < 60 else 1.0) + 14.0, 110.0)
    width, height = left + d * cell + 34.0, top + m * tall + 4.0
    body: list[Markup] = []
    for j, name in enumerate(columns if named else ()):
        place = f"translate({number(left + (j + 0.5) * cell + 3)},{number(top - 6)}) rotate(-48)"
        body.append(element("text", _short(name), class_="tick start", transform=place))
    if m <= 60:
        ys = [top + (i + 0.5) * tall + 3.5 for i in range(m)]
        body += [element("text", name, class_="tick", x=left - 7, y=y) for name, y in zip(rows, ys)]
    if W.size <= _CELLS:
        body += [
            _cell(W[i, j], left + j * cell, top + i * tall, cell, tall, largest, f"unit {rows[i]}, {columns[j]}")
            for i in range(m)
            for j in range(d)
        ]
    else:
        size = {"x": left, "y": top, "width": d * cell, "height": m * tall}
        body.append(element("image", class_="pixels", **size, preserveAspectRatio="none", href=data_uri(W, largest)))
    size = {"x": left - 1, "y": top - 1, "width": d * cell + 1, "height": m * tall + 1}
    body.append(element("rect", class_="outline", **size))
    return svg(width, height, title, Markup("").join(body), "wide" if width > 560 else "", natural=True)


def _cell(value: float, x: float, y: float, width: float, height: float, largest: float, name: str) -> Markup:
    """One weight as a rectangle that tells its value; small rectangles leave no gap between them."""
    gap = 1.0 if min(width, height) > 6 else 0.0
    return element(
        "rect",
        element("title", f"{name}: {value:+.4g}"),
        class_=_sign(value),
        x=x,
        y=y,
        width=width - gap,
        height=height - gap,
        fill_opacity=f"{strength(np.array(value), largest):.2f}",
    )


def _sign(value: float) -> str:
    """The class of what is drawn in the colour of a sign."""
    return "pos" if value >= 0.0 else "neg"


def images(W: Array, rows: Sequence[str], shape: tuple[int, int]) -> list[dict[str, str]]:
    """Each unit as a small image, all on one scale: [{"src", "name"}]."""
    largest = float(np.abs(W).max(initial=0.0))
    return [{"src": data_uri(row.reshape(shape), largest), "name": name} for row, name in zip(W, rows, strict=True)]


def units_plot(b: Array, a: Array, names: Sequence[str], se_b: Array | None, se_a: Array | None, aname: str) -> Markup:
    """Bias against output weight, a point per unit, whiskers of two standard errors."""
    xs, ys = _covering(b, se_b), _covering(a, se_a)
    axes = Axes(xs, ys, "bias b", aname)
    body = [axes.frame()]
    if ys[0] < 0.0 < ys[-1]:
        zero = axes.y(0.0)
        body.append(_line("zero", axes.left, axes.width - axes.right, zero, zero))
    for i, name in enumerate(names):
        x, y = axes.x(b[i]), axes.y(a[i])
        for se, across in ((se_b, True), (se_a, False)):
            if se is not None and np.isfinite(se[i]):
                reach = 2.0 * se[i]
                ends = (
                    (axes.x(b[i] - reach), axes.x(b[i] + reach))
                    if across
                    else (axes.y(a[i] - reach), axes.y(a[i] + reach))
                )
                # a whisker longer than the plot ends at its frame
                first, last = (axes.left, axes.width - axes.right) if across else (axes.top, axes.height - axes.bottom)
                ends = float(np.clip(ends[0], first, last)), float(np.clip(ends[1], first, last))
                x1, x2, y1, y2 = (*ends, y, y) if across else (x, x, *ends)
                body.append(_line("whisker", x1, x2, y1, y2))
        told = element("title", f"unit {name}: b = {b[i]:+.4g}, {aname} = {a[i]:+.4g}")
        body.append(element("circle", told, class_=_sign(a[i]), cx=x, cy=y, r=5))
    return svg(axes.width, axes.height, f"Bias and output weight of {len(names)} units", Markup("").join(body))


def loss_curve(trace: Sequence[tuple[str, Sequence[float]]]) -> Markup:
    """Loss, over that of the affine fit, against iteration, log scale; each stage a band with its name."""
    stages = [(name, [log10(max(v, 1e-32)) for v in losses]) for name, losses in trace if len(losses)]
    total = sum(len(losses) for _, losses in stages)
    values = [v for _, losses in stages for v in losses]
    last, low_power = float(max(total, 2)), min(values)
    axes = Axes(
        [t for t in linear_ticks(0, last) if t <= last],
        log_ticks(low_power, max(max(values), low_power + 1.0)),
        "iteration",
        "loss (affine fit: 1)",
        width=760,
        height=300,
        powers=True,
        top=34,
        xmost=last,
    )
    starts = np.cumsum([0, *(len(losses) for _, losses in stages)])
    low = axes.height - axes.bottom
    bands, named = [], -1e9
    for k, ((name, losses), (begin, end)) in enumerate(zip(stages, pairwise(starts), strict=True)):
        x1, x2 = axes.x(float(begin)), axes.x(float(end))
        told = element("title", f"{name}: {len(losses)} steps to {label(10.0 ** losses[-1])}")
        size = {"x": x1, "y": axes.top, "width": x2 - x1, "height": low - axes.top}
        bands.append(element("rect", told, class_=f"band{k % 2}", **size))
        if x1 > named and x2 - x1 > 5.6 * len(name) * 0.5:
            bands.append(element("text", name, class_="stage", x=x1 + 3, y=27))
            named = x1 + 6.2 * len(name)
        elif k == len(stages) - 1 and x2 - 6.2 * len(name) > named:  # the end is named, however short
            bands.append(element("text", name, class_="stage tick", x=x2, y=27))
    most = max(3000 // len(stages), 2)
    curves = []
    before: list[tuple[int, float]] = []
    for (_, losses), begin in zip(stages, starts, strict=False):
        steps = _thin(list(enumerate(losses, start=int(begin))), most)
        # a stage of one step is seen as the way to it
        steps, before = [*(before if len(steps) == 1 else []), *steps], steps[-1:]
        curves.append(_curve((axes.x(k + 0.5), axes.y(v)) for k, v in steps))
    body = Markup("").join([*bands, axes.frame(), *curves])
    title = f"Relative loss over {total} iterations in {len(stages)} stages, ending at {10.0 ** values[-1]:.1e}"
    return svg(axes.width, axes.height, title, body, "wide")


def predicted_against_true(truth: Array, predicted: Array, name: str = "y") -> Markup:
    """A point per row; on the diagonal the prediction is right."""
    ticks = linear_ticks(*_limits(np.concatenate([truth, predicted])))
    axes = Axes(ticks, ticks, f"true {_short(name, 30)}", f"predicted {_short(name, 30)}")
    body = [axes.frame(), _line("zero", axes.x(ticks[0]), axes.x(ticks[-1]), axes.y(ticks[0]), axes.y(ticks[-1]))]
    body += [
        element("circle", class_="point", cx=axes.x(t), cy=axes.y(p), r=2.4)
        for t, p in _thin(list(zip(truth.tolist(), predicted.tolist(), strict=True)), _POINTS)
    ]
    title = f"Predicted against true {name} on {len(truth)} rows"
    return svg(axes.width, axes.height, title, Markup("").join(body))


def histogram(residual: Array, noise: float = 0.0) -> Markup:
    """How the residuals are spread; the curve is the normal density of the estimated noise."""
    low, high = _limits(residual)
    reach = max(abs(low), abs(high), 1e-300)
    unit = 10.0 ** np.floor(np.log10(reach)) if reach < 1e-3 else 1.0  # tick labels stay short
    bins = int(np.clip(np.sqrt(len(residual)) * 1.5, 8, 41)) | 1
    counts, edges = np.histogram(residual / unit, bins=bins, range=(-reach / unit, reach / unit))
    name = "true − predicted" if unit == 1.0 else f"true − predicted, in units of {label(float(unit))}"
    rows = [tick for tick in linear_ticks(0, max(int(counts.max()), 1)) if tick == round(tick)]
    axes = Axes(linear_ticks(edges[0], edges[-1]), rows, name, "rows")
    body = [axes.frame()]
    for count, (x1, x2) in zip(counts, pairwise(edges), strict=True):
        if count:
            top = axes.y(count)
            size = {"x": axes.x(x1), "y": top, "width": axes.x(x2) - axes.x(x1) - 0.8, "height": axes.y(0.0) - top}
            told = f"{count} rows between {label(float(x1 * unit))} and {label(float(x2 * unit))}"
            body.append(element("rect", element("title", told), class_="bar", **size))
    if noise > 0.0:
        z = np.linspace(edges[0], edges[-1], 90)
        scale = noise / unit
        density = (
            np.exp(-0.5 * (z / scale) ** 2) / (scale * np.sqrt(2.0 * np.pi)) * len(residual) * (edges[1] - edges[0])
        )
        density = np.minimum(density, axes.yticks[-1])
        body.append(_curve((axes.x(s), axes.y(t)) for s, t in zip(z, density, strict=True)))
    title = f"Histogram of {len(residual)} residuals"
    return svg(axes.width, axes.height, title, Markup("").join(body))


def _line(kind: str, x1: float, x2: float, y1: float, y2: float) -> Markup:
    return element("line", class_=kind, x1=x1, x2=x2, y1=y1, y2=y2)


def _curve(points: Iterable[tuple[float, float]]) -> Markup:
    return element("polyline", class_="curve", points=" ".join(f"{number(x)},{number(y)}" for x, y in points))


def _limits(values: Array) -> tuple[float, float]:
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
    return (low, high) if high - low > 1e-12 * max(abs(low), abs(high), 1e-290) else (low - 0.5, high + 0.5)


def _covering(values: Array, errors: Array | None) -> list[float]:
    reach = np.zeros_like(values) if errors is None else np.where(np.isfinite(errors), 2.0 * errors, 0.0)
    # a whisker longer than the whole plot says only "unknown": it may leave the frame
    reach = np.minimum(reach, np.ptp(values) if values.size > 1 else reach)
    return linear_ticks(*_limits(np.concatenate([values - reach, values + reach, [0.0]])))


def _thin(items: list[Item], most: int) -> list[Item]:
    """At most so many items, evenly chosen, the last one among them."""
    if len(items) <= most:
        return items
    return [items[k] for k in np.linspace(0, len(items) - 1, most).astype(int)]


def _short(name: str, most: int = 16) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"
