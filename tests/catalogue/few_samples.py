"""The same with two to three and a half samples per parameter."""

from tests.catalogue.base import random_network

PROBLEMS = (
    *(random_network(10, m, 3) for m in (5, 10)),
    *(random_network(10, m, 2.5) for m in (5, 10, 20)),
    random_network(10, 5, 2, bar=0.7),
    random_network(10, 10, 2, bar=0.6),
    random_network(10, 20, 2, bar=0.2, most=20),
    random_network(30, 30, 3, most=20),
    random_network(50, 50, 3.5, most=5),
)
