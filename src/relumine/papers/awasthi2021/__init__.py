"""Awasthi, Tang and Vijayaraghavan 2021: depth-2 ReLU networks with biases, from their Hermite tensors.

The boxes on exact or estimated tensors: :func:`algorithm_1` (exact), :func:`recover_scalars` (2), :func:`fix_signs`
(3), :func:`algorithm_4` (robust), :func:`algorithm_6` (robust, full rank); on samples :func:`algorithm_5` (low error)
and :func:`recover_awasthi` (all of it, with a certificate). Theorem 3.4 is :func:`sign_patterns`, Claim 4.8
:func:`counterexample`.

Examples
--------
>>> import relumine as rl
>>> truth = rl.planted.network(d=6, m=5, rng=0)
>>> found = algorithm_1([truth.hermite(k) for k in range(5)], order=1, width=5).network()
>>> rl.metrics.parameter_error(truth, found) < 1e-9
True
"""

from relumine.papers.awasthi2021.algorithms import UnitTable, algorithm_1, algorithm_4, algorithm_5, algorithm_6
from relumine.papers.awasthi2021.identifiability import Identifiability, counterexample, sign_patterns
from relumine.papers.awasthi2021.method import CAPABILITIES, AwasthiRecovery, recover_awasthi
from relumine.papers.awasthi2021.readout import fit_readout
from relumine.papers.awasthi2021.scalars import recover_scalars
from relumine.papers.awasthi2021.signs import fix_signs
from relumine.papers.awasthi2021.subspace import estimate_in_subspace
from relumine.papers.awasthi2021.thresholds import Thresholds

__all__ = [
    "CAPABILITIES",
    "AwasthiRecovery",
    "Identifiability",
    "Thresholds",
    "UnitTable",
    "algorithm_1",
    "algorithm_4",
    "algorithm_5",
    "algorithm_6",
    "counterexample",
    "estimate_in_subspace",
    "fit_readout",
    "fix_signs",
    "recover_awasthi",
    "recover_scalars",
    "sign_patterns",
]
