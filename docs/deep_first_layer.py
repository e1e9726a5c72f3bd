"""Draw docs/figures/deep-first-layer.png: the first layer of a box with 784 inputs, and what `extract` found of it.

The digits of scikit-learn, enlarged to 28 × 28, and a network 784-16-16-1 that has learned to tell large digits from
small ones. The box is asked anywhere, not only at digits.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter, zoom
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPRegressor

import relumine as rl

SIDE, UNITS = 28, 16
PICTURE = Path(__file__).with_name("figures") / "deep-first-layer.png"


def box() -> rl.DeepNetwork:
    """784-16-16-1, trained; its inputs are blurred, so that weights of neighbouring pixels are alike."""
    images, digit = load_digits(return_X_y=True)
    X = np.array([zoom(image.reshape(8, 8), SIDE / 8, order=1).ravel() for image in images]) / 16.0
    X = X - X.mean(axis=0)
    model = MLPRegressor(hidden_layer_sizes=(UNITS, UNITS), alpha=0.3, max_iter=400, random_state=0).fit(
        X, (digit - 4.5) / 3.0
    )
    (W, b), *others = rl.DeepNetwork.from_sklearn(model).maps
    smooth = np.array([gaussian_filter(w.reshape(SIDE, SIDE), 1.0).ravel() for w in W])
    return rl.DeepNetwork.of([(smooth, b), *others])


def main() -> None:
    secret = box()
    found = rl.extract(lambda X: secret(X), dim=SIDE**2, rng=0)
    W, V = secret.scaled().layers[0][0], found.network.scaled().layers[0][0]
    V = V[(W @ V.T).argmax(axis=1)]  # in the order of the box
    figure_title = f"{found.queries:,} rows asked; largest error of a weight {np.abs(W - V).max():.0e}"
    figure, panels = plt.subplots(4, 8, figsize=(8.0, 4.6), layout="constrained")
    for row, units in enumerate((W[:8], V[:8], W[8:], V[8:])):
        for w, panel in zip(units, panels[row]):
            top = np.abs(w).max()
            panel.imshow(w.reshape(SIDE, SIDE), cmap="PuOr_r", vmin=-top, vmax=top)
            panel.set(xticks=[], yticks=[])
        panels[row, 0].set_ylabel("found" if row % 2 else "inside the box")
    figure.suptitle(figure_title, fontsize=10)
    figure.savefig(PICTURE, dpi=110)


if __name__ == "__main__":
    main()
