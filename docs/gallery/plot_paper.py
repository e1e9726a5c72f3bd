"""
A paper's figure in five minutes
================================

Figure 1(a) of Zhong et al. (2017) shows how often their tensor start and gradient descent recover a network of five
squared ReLUs, over dimension and sample size. ``relumine paper zhong2017 --figure 1a`` computes it as printed, in an
hour; here is a small corner of it.
"""

# %%
# Every cell is a share of trials whose weights come back.

import matplotlib.pyplot as plt
import numpy as np

import relumine as rl

dims, sizes, trials, width = [10, 20, 30], [125, 250, 500, 1000], 3, 5
share = np.zeros((len(dims), len(sizes)))
for i, d in enumerate(dims):
    for j, n in enumerate(sizes):
        for seed in range(trials):
            truth = rl.planted.network(d, width, rng=seed, family="conditioned", activation="squared_relu")
            X, y = rl.planted.sample(truth, n=n, rng=50 + seed)
            options = {"method": "zhong", "activation": "squared_relu", "on_failure": "return"}
            found = rl.recover(X, y, width, rng=0, **options)
            share[i, j] += rl.metrics.parameter_error(truth, found.network) < 1e-3
share /= trials

figure, axes = plt.subplots(figsize=(5, 3), layout="constrained")
shown = axes.imshow(share, cmap="gray", vmin=0.0, vmax=1.0, aspect="auto")
axes.set_xticks(range(len(sizes)), sizes)
axes.set_yticks(range(len(dims)), dims)
axes.set(xlabel="samples", ylabel="dimension", title="share recovered (white: all)")
figure.colorbar(shown)

# %%
# The package's own method finds these networks, too. It does not use that there are no biases.

truth = rl.planted.network(30, width, rng=0, family="conditioned", activation="squared_relu")
X, y = rl.planted.sample(truth, n=500, rng=50)
own = rl.recover(X, y, width, activation="squared_relu", rng=0)
print("d = 30, 500 samples:", own.status.value, f"{rl.metrics.parameter_error(truth, own.network):.0e}")
