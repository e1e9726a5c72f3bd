"""Draw docs/figures/extract-line.svg: a network along a line, its kinks, and what was asked to find them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import relumine as rl
from relumine.extraction.lines import kinks
from relumine.extraction.pieces import Line

WIDTH, HEIGHT, REACH = 720, 300, 6.0


def main() -> None:
    net = rl.planted.network(d=6, m=7, rng=4)
    u = np.random.default_rng(1).normal(size=6)
    line = Line(np.zeros(6), u / np.linalg.norm(u), (-1e3, 1e3), 2.0)
    asked: list[tuple[float, float]] = []

    def ask(X: np.ndarray) -> np.ndarray:
        y = net(X)[:, None]
        asked.extend(zip(X @ line.direction, y[:, 0]))
        return y

    (found,) = kinks(ask, [line])
    t = np.linspace(-REACH, REACH, 600)
    y = net(line.at(t))
    low, high = y.min(), y.max()

    def place(at: float, value: float) -> tuple[float, float]:
        return (at + REACH) / (2 * REACH) * WIDTH, HEIGHT - 20 - (value - low) / (high - low) * (HEIGHT - 40)

    def dots(points: list[tuple[float, float]], radius: float, style: str) -> list[str]:
        inside = [place(at, value) for at, value in points if abs(at) < REACH]
        return [f'<circle cx="{x:.1f}" cy="{h:.1f}" r="{radius}" {style}/>' for x, h in inside]

    path = " ".join(f"{x:.1f},{h:.1f}" for x, h in (place(a, b) for a, b in zip(t, y)))
    at_kinks = [(float(a), float(net(line.at(np.array([a])))[0])) for a in found.t]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<polyline points="{path}" fill="none" stroke="#4463a8" stroke-width="2"/>',
        *dots(asked, 1.8, 'fill="#888888"'),
        *dots(at_kinks, 5.0, 'fill="none" stroke="#c0392b" stroke-width="2"'),
        f'<text x="10" y="18" font-size="12">f(x₀ + t·u): {len(found.t)} kinks, {len(asked)} queries</text>',
        "</svg>",
    ]
    picture = Path(__file__).with_name("figures") / "extract-line.svg"
    picture.write_text("\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
