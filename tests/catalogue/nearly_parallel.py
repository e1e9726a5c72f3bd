"""Two units five degrees apart."""

from tests.catalogue.base import Problem, generic

PROBLEMS = (Problem("5 degrees (10,5) n/p=20", 10, 5, generic(10, 5, 20, family="nearly_parallel")),)
