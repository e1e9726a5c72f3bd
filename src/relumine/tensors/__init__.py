"""Algebra that never asks where a tensor came from: symmetric storage, Hermite tensors, decompositions."""

from relumine.tensors.hermite import hermite_features, hermite_tensor
from relumine.tensors.jennrich import RankOneTerms, jennrich
from relumine.tensors.jointdiag import JointDiagonal, joint_diagonalise
from relumine.tensors.refine import refine_terms
from relumine.tensors.spm import span_of_powers, subspace_power
from relumine.tensors.symmetric import SymmetricTensor, packed_size, powers, rank_one_sum

__all__ = [
    "JointDiagonal",
    "RankOneTerms",
    "SymmetricTensor",
    "hermite_features",
    "hermite_tensor",
    "jennrich",
    "joint_diagonalise",
    "packed_size",
    "powers",
    "rank_one_sum",
    "refine_terms",
    "span_of_powers",
    "subspace_power",
]
