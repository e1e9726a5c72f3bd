"""
What hardness looks like
========================

Some networks cannot be learned efficiently, as far as anyone knows: many units with nearly isotropic weights (Mondelli
and Montanari, 2019). A predictor that has not found the weights does little better than one that uses the length of x
alone. ``advise`` says beforehand whether a problem is of this kind.
"""

# %%
# The verdict over dimension and width, for a cubic activation.

import matplotlib.pyplot as plt
import numpy as np

import relumine as rl

cubic = rl.activations.Polynomial(0.0, 1.0, 0.0, 1.0)
dims, widths = np.arange(10, 61, 5), np.unique(np.geomspace(5, 2000, 25).astype(int))
verdicts = [[rl.advise(dim=d, width=r, activation=cubic).verdict for d in dims.tolist()] for r in widths.tolist()]
names = ["easy", "known", "hard", "not determined"]
codes = [[names.index(verdict) for verdict in row] for row in verdicts]

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
colours = plt.get_cmap("viridis", len(names))
mesh = axes.pcolormesh(dims, widths, codes, cmap=colours, vmin=-0.5, vmax=3.5, shading="nearest")
axes.set(yscale="log", xlabel="inputs d", ylabel="units r", title="cubic activation")
axes.plot(dims, dims**1.5, "w--", lw=1)
axes.plot(dims, dims**2.0, "w--", lw=1)
figure.colorbar(mesh, ticks=range(len(names))).ax.set_yticklabels(names)

# %%
# Between the dashed lines, d^1.5 and d², no efficient algorithm is known. The advice says why, and what to do.

print(rl.advise(dim=40, width=600, activation=cubic))
