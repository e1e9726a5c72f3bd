"""Axes for small SVG plots: a frame, ticks at round numbers, and the map from data to pixels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from markupsafe import Markup


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
        parts = []
        for t in self.yticks:
            y = self.y(t)
            parts.append(element("line", class_="grid", x1=self.left, x2=right, y1=y, y2=y))
            parts.append(element("text", name(t), class_="tick", x=self.left - 7, y=y + 3.5))
        parts += [element("text", label(t), class_="tick mid", x=self.x(t), y=low + 17) for t in self.xticks]
        parts.append(element("line", class_="axis", x1=self.left, x2=right, y1=low, y2=low))
        parts.append(element("text", self.xname, class_="name mid", x=(self.left + right) / 2, y=self.height - 7))
        turned = {"transform": "rotate(-90)", "x": -(low + self.top) / 2, "y": 13}
        parts.append(element("text", self.yname, class_="name mid", **turned))
        return Markup("").join(parts)


def element(tag: str, content: str = "", **attributes: object) -> Markup:
    """An SVG element. Numbers are pixels; ``class_`` stands for class, ``fill_opacity`` for fill-opacity.

    Examples
    --------
    >>> element("text", "a < b", class_="tick", x=12.34)
    Markup('<text class="tick" x="12.3">a &lt; b</text>')
    """
    said = Markup("").join(
        Markup(' {}="{}"').format(
            name.rstrip("_").replace("_", "-"), number(value) if isinstance(value, int | float) else value
        )
        for name, value in attributes.items()
    )
    name = Markup(tag)  # our own word, not other people's text
    if not content:
        return Markup("<{}{}/>").format(name, said)
    return Markup("<{}{}>{}</{}>").format(name, said, content, name)


def svg(width: float, height: float, title: str, body: Markup, extra: str = "", natural: bool = False) -> Markup:
    """An SVG element that scales with the page (``natural``: up to its own size); its label is for screen readers."""
    style = {"style": f"max-width:{number(width)}px"} if natural else {}
    box = f"0 0 {number(width)} {number(height)}"
    return element("svg", body, class_=f"plot {extra}".strip(), viewBox=box, **style, role="img", aria_label=title)
