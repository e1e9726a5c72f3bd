"""Whole algorithms, each reads like its paper's box."""
