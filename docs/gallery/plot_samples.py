"""
How many samples are enough?
============================

A network of m units with d inputs has m(d+1) parameters. With fewer than two samples for each of them recovery fails,
and says so; from three on it succeeds.
"""

# %%
# Ten small networks at each sample size. A run that does not succeed returns its status instead of an answer.

import matplotlib.pyplot as plt

import relumine as rl

d, m, trials = 6, 5, 10
ratios = [1.5, 2.0, 2.5, 3.0, 4.0, 6.0]
rates = []
for ratio in ratios:
    exact = 0
    for seed in range(trials):
        truth = rl.planted.network(d, m, rng=seed)
        X, y = rl.planted.sample(truth, n=int(ratio * m * (d + 1)), rng=100 + seed)
        found = rl.recover(X, y, width=m, rng=0, starts=8, on_failure="return")
        right = rl.metrics.parameter_error(truth, found.network) < 1e-8
        assert right or found.status is not rl.Status.EXACT  # never a confident wrong network
        exact += right and found.status is rl.Status.EXACT
    rates.append(exact / trials)
    print(f"{ratio:3.1f} samples per parameter: {exact} of {trials} exact")

figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
axes.plot(ratios, rates, "o-")
axes.set(xlabel="samples per parameter", ylabel="share recovered exactly", ylim=(-0.05, 1.05))

# %%
# Ask before you collect: ``advise`` says how many samples a problem needs, and what it will cost.

print(rl.advise(dim=d, width=m))
