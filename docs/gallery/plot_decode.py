"""
Decode a signal through ReLUs
=============================

A vector w is hidden, and every measurement mixes all its entries through a nonlinearity: y = Σ relu(w[k] + x[k]), with
known probes x. Oymak and Asif (2018) show that about as many measurements as entries are enough.
"""

# %%
# Two hundred entries, 1.5 measurements each.

import matplotlib.pyplot as plt
import numpy as np

import relumine as rl

rng = np.random.default_rng(0)
w = np.clip(np.sin(np.linspace(0.0, 12.0, 200)) + 0.2 * rng.normal(size=200), -1.0, 1.0)
X = rng.normal(size=(300, 200))
y = np.maximum(w + X, 0.0).sum(axis=1)

decoded = rl.decode(X, y, bound=1.0, rng=0)
print(decoded.status.value, "- largest error", f"{np.abs(decoded.w - w).max():.1e}")

figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
axes.plot(w, lw=4, alpha=0.4, label="hidden")
axes.plot(decoded.w, lw=1, label="decoded")
axes.set(xlabel="entry", ylabel="w")
axes.legend(frameon=False)
