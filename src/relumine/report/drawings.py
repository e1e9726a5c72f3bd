"""The pictures of the report, as SVG; colours come from the page's style sheet, so that they follow light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import log10
from typing import TypeVar

import numpy as np
from markupsafe import Markup

from relumine.arrays import Array
from relumine.report.axes import Axes, label, linear_ticks, log_ticks, number, svg
from relumine.report.png import data_uri, strength

Item = TypeVar("Item")


_CELLS = 1600  # entries up to which each is a rectangle that tells its value
_POINTS = 800  # of a scatter plot: 60 kB of the page, and more hide each other
_CELL = '<rect class="{}" x="{}" y="{}" width="{}" height="{}" fill-opacity="{}"><title>{}, {}: {}</title></rect>'
_BAR = '<rect class="bar" x="{}" y="{}" width="{}" height="{}"><title>{} rows between {} and {}</title></rect>'


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
    if named:
        for j, name in enumerate(columns):
            x = number(left + (j + 0.5) * cell + 3)
            body.append(
                Markup('<text class="tick start" transform="translate({},{}) rotate(-48)">{}</text>').format(
                    x, number(top - 6), _short(name)
                )
            )
    if m <= 60:
        body += [
            Markup('<text class="tick" x="{}" y="{}">{}</text>').format(
                number(left - 7), number(top + (i + 0.5) * tall + 3.5), name
            )
            for i, name in enumerate(rows)
        ]
    if W.size <= _CELLS:
        opacity, gap = strength(W, largest), 1.0 if min(cell, tall) > 6 else 0.0
        body += [
            Markup(_CELL).format(
                "pos" if W[i, j] >= 0.0 else "neg",
                number(left + j * cell),
                number(top + i * tall),
                number(cell - gap),
                number(tall - gap),
                f"{opacity[i, j]:.2f}",
                f"unit {rows[i]}",
                columns[j],
                f"{W[i, j]:+.4g}",
            )
            for i in range(m)
            for j in range(d)
        ]
    else:
        body.append(
            Markup(
                '<image class="pixels" x="{}" y="{}" width="{}" height="{}" preserveAspectRatio="none" href="{}"/>'
            ).format(left, number(top), number(d * cell), number(m * tall), data_uri(W, largest))
        )
    body.append(
        Markup('<rect class="outline" x="{}" y="{}" width="{}" height="{}"/>').format(
            left - 1, number(top - 1), number(d * cell + 1), number(m * tall + 1)
        )
    )
    return svg(width, height, title, Markup("").join(body), "wide" if width > 560 else "", natural=True)


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
        zero = number(axes.y(0.0))
        body.append(Markup('<line class="zero" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(62, 426, zero, zero))
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
        body.append(
            Markup('<circle class="{}" cx="{}" cy="{}" r="5"><title>unit {}: b = {}, {} = {}</title></circle>').format(
                "pos" if a[i] >= 0.0 else "neg", number(x), number(y), name, f"{b[i]:+.4g}", aname, f"{a[i]:+.4g}"
            )
        )
    return svg(axes.width, axes.height, f"Bias and output weight of {len(names)} units", Markup("").join(body))


def loss_curve(trace: Sequence[tuple[str, Sequence[float]]]) -> Markup:
    """Relative loss against iteration, log scale; each stage a band with its name."""
    stages = [(name, [log10(max(v, 1e-32)) for v in losses]) for name, losses in trace if len(losses)]
    total = sum(len(losses) for _, losses in stages)
    values = [v for _, losses in stages for v in losses]
    last, low_power = float(max(total, 2)), min(values)
    axes = Axes(
        [t for t in linear_ticks(0, last) if t <= last],
        log_ticks(low_power, max(max(values), low_power + 1.0)),
        "iteration",
        "relative loss",
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
        bands.append(
            Markup(
                '<rect class="band{}" x="{}" y="{}" width="{}" height="{}"><title>{}: {} steps to {}</title></rect>'
            ).format(
                k % 2,
                number(x1),
                axes.top,
                number(x2 - x1),
                low - axes.top,
                name,
                len(losses),
                label(10.0 ** losses[-1]),
            )
        )
        if x1 > named and x2 - x1 > 5.6 * len(name) * 0.5:
            bands.append(Markup('<text class="stage" x="{}" y="{}">{}</text>').format(number(x1 + 3), 27, name))
            named = x1 + 6.2 * len(name)
        elif k == len(stages) - 1 and x2 - 6.2 * len(name) > named:  # the end is named, however short
            bands.append(Markup('<text class="stage tick" x="{}" y="{}">{}</text>').format(number(x2), 27, name))
    most = max(3000 // len(stages), 2)
    curves = []
    before: list[tuple[int, float]] = []
    for (_, losses), begin in zip(stages, starts, strict=False):
        steps = _thin(list(enumerate(losses, start=int(begin))), most)
        # a stage of one step is seen as the way to it
        steps, before = [*(before if len(steps) == 1 else []), *steps], steps[-1:]
        points = " ".join(f"{number(axes.x(k + 0.5))},{number(axes.y(v))}" for k, v in steps)
        curves.append(Markup('<polyline class="curve" points="{}"/>').format(points))
    body = Markup("").join([*bands, axes.frame(), *curves])
    title = f"Relative loss over {total} iterations in {len(stages)} stages, ending at {10.0 ** values[-1]:.1e}"
    return svg(axes.width, axes.height, title, body, "wide")


def predicted_against_true(truth: Array, predicted: Array, name: str = "y") -> Markup:
    """A point per row; on the diagonal the prediction is right."""
    ticks = linear_ticks(*_limits(np.concatenate([truth, predicted])))
    axes = Axes(ticks, ticks, f"true {_short(name, 30)}", f"predicted {_short(name, 30)}")
    body = [axes.frame(), _line("zero", axes.x(ticks[0]), axes.x(ticks[-1]), axes.y(ticks[0]), axes.y(ticks[-1]))]
    body += [
        Markup('<circle class="point" cx="{}" cy="{}" r="2.4"/>').format(number(axes.x(t)), number(axes.y(p)))
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
            size = number(axes.x(x2) - axes.x(x1) - 0.8), number(axes.y(0.0) - top)
            ends = label(float(x1 * unit)), label(float(x2 * unit))
            body.append(Markup(_BAR).format(number(axes.x(x1)), number(top), *size, count, *ends))
    if noise > 0.0:
        z = np.linspace(edges[0], edges[-1], 90)
        scale = noise / unit
        density = (
            np.exp(-0.5 * (z / scale) ** 2) / (scale * np.sqrt(2.0 * np.pi)) * len(residual) * (edges[1] - edges[0])
        )
        density = np.minimum(density, axes.yticks[-1])
        points = " ".join(f"{number(axes.x(s))},{number(axes.y(t))}" for s, t in zip(z, density, strict=True))
        body.append(Markup('<polyline class="curve" points="{}"/>').format(points))
    title = f"Histogram of {len(residual)} residuals"
    return svg(axes.width, axes.height, title, Markup("").join(body))


def _line(kind: str, x1: float, x2: float, y1: float, y2: float) -> Markup:
    return Markup('<line class="{}" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(
        kind, number(x1), number(x2), number(y1), number(y2)
    )


def _limits(values: Array) -> tuple[float, float]:
    low, high = float(values.min(initial=0.0)), float(values.max(initial=0.0))
    low, high = float(np.min(values)) if values.size else low, float(np.max(values)) if values.size else high
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
