"""The same with three samples per parameter."""

from tests.catalogue.base import random_network

PROBLEMS = (random_network(10, 5, 3, bar=0.8), random_network(10, 10, 3, bar=0.8))
