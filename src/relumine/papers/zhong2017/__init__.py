"""Zhong, Song, Jain, Bartlett and Dhillon 2017: tensor initialisation, then gradient descent.

f(x) = Σ_i v_i σ(w_i·x), v_i = ±1, σ homogeneous, k ≤ d. :func:`initialise` is Algorithm 1, :func:`learn` Algorithm 2,
:func:`recover_zhong` both from samples with a certificate; :func:`properties` and :func:`conditioning` are the theory.

Examples
--------
>>> import numpy as np
>>> import relumine as rl
>>> truth = rl.planted.network(d=8, m=3, rng=0, family="conditioned", activation="squared_relu")
>>> X, y = rl.planted.sample(truth, 3000, rng=1)
>>> start = initialise(X, y, 3, truth.activation, np.random.default_rng(0))
>>> end, losses = learn(X, y, start, truth.activation)
>>> rl.metrics.parameter_error(truth, rl.Network(end.W, np.zeros(3), end.v, truth.activation)) < 1e-8
True
"""

from relumine.papers.zhong2017.algorithms import Start, initialise, learn, partition
from relumine.papers.zhong2017.conditions import constants, properties, table
from relumine.papers.zhong2017.curvature import conditioning, empirical_hessian, extremes, population_hessian
from relumine.papers.zhong2017.descent import Iterate, descend, gradient, theorem_step
from relumine.papers.zhong2017.magsign import recover_magnitudes
from relumine.papers.zhong2017.method import CAPABILITIES, ZhongRecovery, recover_zhong
from relumine.papers.zhong2017.moments import find_span, moments_inside
from relumine.papers.zhong2017.span import Orders, moment_orders, weight_span

__all__ = [
    "CAPABILITIES",
    "Iterate",
    "Orders",
    "Start",
    "ZhongRecovery",
    "conditioning",
    "constants",
    "descend",
    "empirical_hessian",
    "extremes",
    "find_span",
    "gradient",
    "initialise",
    "learn",
    "moment_orders",
    "moments_inside",
    "partition",
    "population_hessian",
    "properties",
    "recover_magnitudes",
    "recover_zhong",
    "table",
    "theorem_step",
    "weight_span",
]
