"""The catalogue of problems in the form the tests use: name → (make, share that must be exact, most seeds)."""

from benchmarks.problems import CATALOGUE
from benchmarks.problems.base import generic

__all__ = ["CASES", "generic"]

CASES = {name: (problem.make, problem.bar, problem.most) for name, problem in CATALOGUE.items()}
