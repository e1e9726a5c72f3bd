"""Deep ReLU networks by chosen queries: kind → depth → layers (places, kinks, witnesses, units, signs) → polish → judge.

A story of its own inside `extraction`: :func:`extract_deep` works on any batched function, :mod:`by_layers` turns what it
finds into a Recovery.
"""

from relumine.extraction.deep.whole import Found, extract_deep

__all__ = ["Found", "extract_deep"]
