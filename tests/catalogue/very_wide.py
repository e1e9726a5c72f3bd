"""A hundred units in a hundred dimensions: minutes a run."""

from tests.catalogue.base import random_network

PROBLEMS = (random_network(100, 100, 8, bar=1.0, most=1),)
