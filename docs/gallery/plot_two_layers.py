"""
Two hidden layers behind a black box
====================================

A trained network can be called, and nothing else about it is known. Along a line its answers are straight pieces, with
a bend where a hidden unit switches on. From the bends ``extract`` finds all layers.
"""

# %%
# A network with two hidden layers, trained on handwritten digits. Only its answers are used below.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPRegressor

import relumine as rl

X, digit = load_digits(return_X_y=True)
X = (X - X.mean(axis=0)) / (X.std(axis=0) + 0.1)
model = MLPRegressor(hidden_layer_sizes=(16, 16), max_iter=500, random_state=0).fit(X, digit / 9.0)
secret = rl.DeepNetwork.from_sklearn(model)

# %%
# Along a line through the input space the answers are piecewise linear.

rng = np.random.default_rng(0)
start, direction = rng.normal(size=64), rng.normal(size=64) / 8.0
t = np.linspace(-15.0, 15.0, 2001)
values = secret(start + t[:, None] * direction)
bend = np.abs(np.diff(values, 2))

figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
axes.plot(t, values, lw=1)
kinks = np.flatnonzero(bend > 1e-3 * bend.max()) + 1
axes.plot(t[kinks], values[kinks], ".", color="tab:red", ms=4, label="bends: a unit switches")
axes.set(xlabel="position on the line", ylabel="answer")
axes.legend(frameon=False)

# %%
# ``extract`` needs to know neither depth nor widths.

found = rl.extract(lambda X: secret(X), dim=64, rng=0)
print(found.status.value, found.network.widths, "-", found.queries, "rows asked")
print("largest error in any weight:", f"{rl.metrics.parameter_error(secret, found.network):.0e}")

# %%
# The weights of the first layer, one picture for each unit.

W, _ = found.network.layers[0]
figure, panels = plt.subplots(2, 8, figsize=(8, 2.2), layout="constrained")
for w, panel in zip(W, panels.ravel()):
    panel.imshow(w.reshape(8, 8), cmap="PuOr_r", vmin=-np.abs(w).max(), vmax=np.abs(w).max())
    panel.axis("off")
