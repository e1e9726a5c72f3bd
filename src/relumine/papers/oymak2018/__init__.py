"""Oymak and Asif 2018: decoding a vector w through y = Σ_k a_k φ(w_k + x_k), φ the (leaky) ReLU.

:func:`decode` is the whole way, from samples to a certificate. Its pieces: :class:`Additive`, the model with the
centred gradient of Eq. (4); :func:`descend`, the paper's projected iteration; :func:`gauss_newton`, ours;
:func:`tails`, the T(θ) and S(θ) of Definition 2.1 with Theorem 3.1's step and rate. The module ``judge`` is
the verdict on rows the fit never saw.

Examples
--------
>>> import numpy as np
>>> from itertools import islice
>>> rng = np.random.default_rng(0)
>>> w = rng.uniform(-1, 1, 20)
>>> X = 5 * rng.standard_normal((60, 20))
>>> y = np.maximum(w + X, 0).sum(axis=1)
>>> bool(np.abs(decode(X, y, bound=1.0).w - w).max() < 1e-12)
True
>>> problem, theta = Additive(X, y, np.ones(20)), np.ones(20)
>>> step = 1.5 / largest_eigenvalue(problem, np.zeros(20), centred=True)
>>> *_, last = islice(descend([problem], np.zeros(20), theta, step, centred=True), 300)
>>> bool(np.abs(last.w - w).max() < 1e-9)
True
"""

from relumine.papers.oymak2018.additive import Additive, Iterate, descend, gauss_newton, largest_eigenvalue
from relumine.papers.oymak2018.evidence import Evidence
from relumine.papers.oymak2018.method import decode
from relumine.papers.oymak2018.probes import Tails, column_tails, sample_tails, tails
from relumine.papers.oymak2018.result import Decoding, DecodingFailed

__all__ = [
    "Additive",
    "Decoding",
    "DecodingFailed",
    "Evidence",
    "Iterate",
    "Tails",
    "column_tails",
    "decode",
    "descend",
    "gauss_newton",
    "largest_eigenvalue",
    "sample_tails",
    "tails",
]
