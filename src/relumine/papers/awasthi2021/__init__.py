"""Awasthi, Tang and Vijayaraghavan 2021: depth-2 ReLU networks with biases, from their Hermite tensors.

Examples
--------
>>> import relumine as rl
>>> truth = rl.planted.network(d=6, m=5, rng=0)
>>> found = algorithm_1([truth.hermite(k) for k in range(5)], order=1, width=5).network()
>>> rl.metrics.parameter_error(truth, found) < 1e-9
True
"""

from relumine.papers.awasthi2021.algorithms import UnitTable, algorithm_1, algorithm_4, algorithm_5, algorithm_6
from relumine.papers.awasthi2021.method import AwasthiRecovery, recover_awasthi

__all__ = [
    "AwasthiRecovery",
    "UnitTable",
    "algorithm_1",
    "algorithm_4",
    "algorithm_5",
    "algorithm_6",
    "recover_awasthi",
]
