"""
Look inside a trained classifier
================================

A classifier gives probabilities. Behind them is a network whose last step is known: the softmax. ``extract`` undoes
that step and finds the weights of the network from the probabilities alone.
"""

# %%
# A pipeline as people build it: a scaler and a small network, trained on chemical measurements of wine. From here on it
# is a black box.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import relumine as rl

wine = load_wine()
model = make_pipeline(
    StandardScaler(), MLPClassifier(hidden_layer_sizes=(6,), alpha=0.1, max_iter=4000, random_state=0)
)
model.fit(wine.data, wine.target)
print(model.predict_proba(wine.data[:3]).round(3))

# %%
# ``link="auto"`` sees that the answers are probabilities of three classes and undoes the softmax. ``mean`` and
# ``scale`` say where inputs usually are, because the scaler is part of the box.

found = rl.extract(model, link="auto", mean=wine.data.mean(axis=0), scale=wine.data.std(axis=0), rng=0)
print(found)

# %%
# The network found gives the same probabilities as the classifier, also for wines that are not in the data.

rng = np.random.default_rng(1)
bottles = wine.data.mean(axis=0) + 2.0 * wine.data.std(axis=0) * rng.normal(size=(5000, 13))
difference = np.abs(found.predict(bottles) - model.predict_proba(bottles)).max()
print(f"largest difference between two probabilities: {difference:.0e}")

# %%
# The weights of each unit on the inputs (in standard deviations) and on the three classes.

net = found.network.canonical()
W = net.W * wine.data.std(axis=0)
W = W / np.abs(W).max(axis=1, keepdims=True)
figure, (left, right) = plt.subplots(1, 2, figsize=(7.5, 3.6), width_ratios=(13, 3), layout="constrained")
left.imshow(W, cmap="PuOr_r", vmin=-1, vmax=1, aspect="auto")
left.set_xticks(range(13), wine.feature_names, rotation=60, ha="right", fontsize=7)
left.set(ylabel="unit", title="input weights")
right.imshow(net.a.T, cmap="PuOr_r", vmin=-np.abs(net.a).max(), vmax=np.abs(net.a).max(), aspect="auto")
right.set(xlabel="class", title="output weights", yticks=[])
