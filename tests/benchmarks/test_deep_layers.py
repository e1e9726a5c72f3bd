"""How far a deep network was found: 0 for the truth in any scale and order, and for nothing else."""

import numpy as np
from benchmarks.measures.deep_layers import layer_errors, never_counts

import relumine as rl

TRUTH = rl.planted.deep((12, 6, 5, 4, 1), rng=3)


def moved(layers, rng):
    """The same layers with units in another order and scale."""
    found, order, size = [], np.arange(TRUTH.d), np.ones(TRUTH.d)
    for W, b in layers:
        here, scale = rng.permutation(len(b)), rng.uniform(0.5, 2.0, size=len(b))
        found.append(((scale[:, None] * W / size)[:, order][here], (scale * b)[here]))
        order, size = here, scale
    return found


def test_the_truth_is_right_in_any_order_and_scale():
    never = never_counts(TRUTH, 3, np.random.default_rng(0))
    for seed in range(3):
        errors = layer_errors(TRUTH, moved(TRUTH.hidden, np.random.default_rng(seed)), never)
        assert max(errors) < 1e-12


def test_a_wrong_weight_shows_in_its_layer():
    layers = [(W.copy(), b.copy()) for W, b in TRUTH.hidden]
    layers[1][0][2, 3] += 1e-5
    errors = layer_errors(TRUTH, layers)
    assert errors[0] < 1e-12
    assert errors[1] > 1e-6
