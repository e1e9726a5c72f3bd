"""Biases up to 2.5: some units are on, or off, for all but one sample in a hundred."""

from tests.catalogue.base import Problem, generic

PROBLEMS = tuple(
    Problem(f"({d},{m}) |b|<2.5 n/p=40", d, m, generic(d, m, 40, bias=2.5), most=most)
    for d, m, most in ((10, 5, 100), (20, 10, 40))
)
