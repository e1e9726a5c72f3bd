"""Deep ReLU networks by chosen queries: kind → depth → places → kinks → witnesses → units → signs, layer by layer.

:func:`extract_deep` works on any batched function; `by_layers` turns what it finds into a Recovery.
"""

from relumine.extraction.deep.whole import Found, extract_deep

__all__ = ["Found", "extract_deep"]
