"""Oymak and Asif 2018: a vector seen through Σ relu(w + x)."""
