"""Fits by least squares: whatever passes over the prepared rows again and again."""
