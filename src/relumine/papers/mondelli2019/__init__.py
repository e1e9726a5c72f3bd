"""Mondelli and Montanari 2019: when learning a two-layer network is as hard as decomposing a tensor.

Theorem 2 is :func:`separated_weights_bound`, Theorem 3 :func:`random_weights_bound`: weights that are not found leave
predictions no better than trivial (:func:`trivial_risks`). Theorem 4 is :func:`labels_from_tensors`: labels follow from
tensors alone, so an algorithm that learns also decomposes (:func:`decompose_by_learning`). :func:`regime` says on which
side a problem is.

Examples
--------
>>> from relumine.planted import weights
>>> W, guess = weights(60, 300, 0), weights(60, 300, 1)                  # r = 300 random units in d = 60 dimensions
>>> cubic = "polynomial(0,0,0,1)"
>>> bound = random_weights_bound(W, guess, cubic)
>>> risk(W, guess, cubic) >= bound.value > 0.7 * trivial_risks(W, cubic).quadratic
True
>>> regime(60, 600, cubic).verdict, regime(60, 60, "relu").verdict
('hard', 'easy')
"""

from relumine.papers.mondelli2019.hardness import (
    Bound,
    TrivialRisks,
    hermite_number,
    mean_products,
    random_weights_bound,
    risk,
    separated_weights_bound,
    trivial_risks,
)
from relumine.papers.mondelli2019.isotropy import Assumptions, assumptions, correlation
from relumine.papers.mondelli2019.reduction import (
    decompose_by_learning,
    labels_from_tensors,
    lower_orders,
    trace,
    weight_tensor,
)
from relumine.papers.mondelli2019.regimes import Regime, least_order, regime

__all__ = [
    "Assumptions",
    "Bound",
    "Regime",
    "TrivialRisks",
    "assumptions",
    "correlation",
    "decompose_by_learning",
    "hermite_number",
    "labels_from_tensors",
    "least_order",
    "lower_orders",
    "mean_products",
    "random_weights_bound",
    "regime",
    "risk",
    "separated_weights_bound",
    "trace",
    "trivial_risks",
    "weight_tensor",
]
