"""
Noise and error bars
====================

With noise in the answers no network fits exactly. What comes back is the least squares network, and for every
parameter a standard error that says how well it is known.
"""

# %%
# Four hidden units, and noise of standard deviation 0.1.

import matplotlib.pyplot as plt
import numpy as np

import relumine as rl

truth = rl.planted.network(d=6, m=4, rng=3)
X, y = rl.planted.sample(truth, n=1500, noise=0.1, rng=4)
found = rl.recover(X, y, width=4, rng=0)
print(found.status.value, "- estimated noise", round(found.certificate.noise, 3))

# %%
# The intervals cover the true weights as often as they promise: about 95 in 100.

low, high = found.confidence_interval(0.95)
matched = rl.metrics.match(found.network, truth).network  # the truth, in the order and scale of what was found
inside = (low.W <= matched.W) & (matched.W <= high.W)
print(f"{inside.mean():.0%} of {inside.size} hidden weights lie inside their interval")

figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
at = np.arange(found.network.W.size)
reach = 1.96 * found.standard_errors.W.ravel()
axes.errorbar(at, found.network.W.ravel(), reach, fmt=".", label="found, 95 % interval")
axes.scatter(at, matched.W.ravel(), s=40, facecolors="none", edgecolors="tab:red", label="true")
axes.set(xlabel="hidden weight", ylabel="value")
axes.legend(frameon=False, ncols=2)

# %%
# Four times the samples halve the error bars.

X4, y4 = rl.planted.sample(truth, n=6000, noise=0.1, rng=5)
four = rl.recover(X4, y4, width=4, rng=0)
print(f"mean standard error: {found.standard_errors.W.mean():.4f}, then {four.standard_errors.W.mean():.4f}")
