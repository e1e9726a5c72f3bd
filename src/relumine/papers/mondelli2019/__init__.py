"""Mondelli and Montanari 2019: when learning a two-layer network is hard."""
