"""Random directions, biases in [−1, 1], output weights ±[½, 2]; five to eight samples per parameter."""

from tests.catalogue.base import Problem, generic, random_network

PROBLEMS = (
    *(random_network(d, m, 5) for d, m in ((10, 5), (10, 10), (20, 20), (10, 20))),
    *(random_network(d, m, 5, most=40) for d, m in ((50, 20), (100, 10))),
    random_network(10, 40, 8, most=40),
    Problem("(10,20)x5 n/p=4", 10, 20, generic(10, 20, 4, outputs=5), outputs=5, most=40),
    random_network(50, 50, 6, bar=0.9, most=10),
)
