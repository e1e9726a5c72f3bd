"""Orthonormal weights, b = 0, a = 1: the second moment says nothing about them."""

from tests.catalogue.base import Problem, generic

PROBLEMS = tuple(
    Problem(f"orthonormal {m} n/p=20", m, m, generic(m, m, 20, family="orthonormal"), biased=False, bar=1.0, most=most)
    for m, most in ((6, 100), (10, 100), (20, 40))
)
