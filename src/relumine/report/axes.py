"""Axes for small SVG plots: a frame, ticks at round numbers, and the map from data to pixels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from markupsafe import Markup, escape


def number(value: float) -> str:
    """A coordinate with one digit after the point, which is enough for pixels."""
    return f"{value:.1f}".rstrip("0").rstrip(".")


def label(value: float) -> str:
    """A tick label: short, with a true minus sign."""
    if value == 0.0:
        return "0"
    text = f"{value:.4g}" if 1e-3 <= abs(value) < 1e5 else _scientific(value)
    return text.replace("-", "−")


def _power(exponent: float) -> str:
    return "1" if exponent == 0 else _scientific(10.0**exponent)


def _scientific(value: float) -> str:
    mantissa, power = f"{value:.2g}".split("e") if "e" in f"{value:.2g}" else f"{value:.1e}".split("e")
    raised = str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"10{raised}" if mantissa == "1" else f"{mantissa}·10{raised}"


def linear_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers that cover [low, high]."""
    least = 1e-9 * max(abs(low), abs(high), 1e-290)  # closer ticks could not be told apart
    if high - low < least:
        low, high = low - least, high + least
    span = high - low
    step = 10.0 ** floor(log10(span / most))
    step *= next(k for k in (1, 2, 5, 10, 20) if span / (step * k) <= most)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return [k * step for k in range(first, last + 1)]


def log_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Powers of ten that cover [low, high], as exponents."""
    first, last = floor(low), ceil(high)
    step = max(ceil((last - first) / most), 1)
    return [float(k) for k in range(last, first - step, -step)][::-1]


@dataclass(frozen=True)
class Axes:
    """A frame of width × height pixels around data coordinates; y grows upwards."""

    xticks: Sequence[float]
    yticks: Sequence[float]
    xname: str
    yname: str
    width: int = 440
    height: int = 280
    powers: bool = False  # y ticks are exponents of ten
    left: int = 62
    bottom: int = 46
    top: int = 14
    right: int = 14
    xmost: float | None = None  # right end, if not the last tick

    def x(self, value: float) -> float:
        """Pixel of a data x."""
        low, high = self.xticks[0], self.xticks[-1] if self.xmost is None else self.xmost
        return self.left + (value - low) / max(high - low, 1e-300) * (self.width - self.left - self.right)

    def y(self, value: float) -> float:
        """Pixel of a data y."""
        low, high = self.yticks[0], self.yticks[-1]
        return (
            self.height - self.bottom - (value - low) / max(high - low, 1e-300) * (self.height - self.bottom - self.top)
        )

    def frame(self) -> Markup:
        """Grid lines, tick labels and the names of the axes."""
        right, low = self.width - self.right, self.height - self.bottom
        name: Callable[[float], str] = _power if self.powers else label
        parts = [
            Markup(
                '<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/><text class="tick" x="{}" y="{}">{}</text>'
            ).format(
                self.left, right, number(self.y(t)), number(self.y(t)), self.left - 7, number(self.y(t) + 3.5), name(t)
            )
            for t in self.yticks
        ]
        parts += [
            Markup('<text class="tick mid" x="{}" y="{}">{}</text>').format(number(self.x(t)), low + 17, label(t))
            for t in self.xticks
        ]
        parts.append(Markup('<line class="axis" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(self.left, right, low, low))
        parts.append(
            Markup('<text class="name mid" x="{}" y="{}">{}</text>').format(
                number((self.left + right) / 2), self.height - 7, self.xname
            )
        )
        middle = number((low + self.top) / 2)
        parts.append(
            Markup('<text class="name mid" transform="rotate(-90)" x="-{}" y="13">{}</text>').format(middle, self.yname)
        )
        return Markup("").join(parts)


def svg(width: float, height: float, title: str, body: Markup, extra: str = "", natural: bool = False) -> Markup:
    """An SVG element that scales with the page (``natural``: up to its own size); its label is for screen readers."""
    style = Markup(' style="max-width:{}px"').format(number(width)) if natural else ""
    return Markup('<svg class="{}" viewBox="0 0 {} {}"{} role="img" aria-label="{}">{}</svg>').format(
        f"plot {extra}".strip(), number(width), number(height), style, escape(title), body
    )
