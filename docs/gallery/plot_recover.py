"""
Recover a network and see its units
===================================

Twenty hidden units in ten dimensions, twice as many units as inputs. Only samples are known: inputs and answers.
"""

# %%
# A network nobody shows you, and 1100 samples of it: five for each of its 220 parameters.

import matplotlib.pyplot as plt
import numpy as np

import relumine as rl

truth = rl.planted.network(d=10, m=20, rng=0)
X, y = rl.planted.sample(truth, n=1100, rng=1)
found = rl.recover(X, y, width=20, rng=0)
print(found)

# %%
# Every parameter is right to about thirteen digits. Units come in any order, so they are matched first.

print("largest error in any parameter:", f"{rl.metrics.parameter_error(truth, found.network):.1e}")
aligned = rl.metrics.match(truth, found.network).network

figure, (left, right) = plt.subplots(1, 2, figsize=(7.5, 3.4), layout="constrained")
scaled = truth.scaled()
left.scatter(scaled.b, scaled.a, s=80, facecolors="none", edgecolors="tab:red", label="true")
left.scatter(aligned.b, aligned.a, s=14, label="found")
left.set(xlabel="bias b", ylabel="output weight a", title="twenty hidden units")
left.legend(frameon=False)
right.semilogy(np.concatenate([losses for _, losses in found.search.trace]))
right.set(xlabel="step", ylabel="loss (affine fit: 1)", title="slow for a while, then all at once")

# %%
# The width need not be known. With ``width=None`` it is found, too.

anyhow = rl.recover(X, y, rng=0)
print(anyhow.network.m, "units,", anyhow.status.value)
