"""Deep ReLU networks by chosen queries, layer by layer.

The first two layers: kind → depth → places → kinks → witnesses → units → signs. Behind them, and behind layers wider
than what feeds them: surfaces → wide. The end: last → plays (climb, reach, linear) → confirm.

:func:`extract_deep` works on any batched function; `by_layers` turns what it finds into a Recovery.
"""

from relumine.extraction.deep.confirm import Found
from relumine.extraction.deep.whole import extract_deep

__all__ = ["Found", "extract_deep"]
