"""Deep ReLU networks by chosen queries, layer by layer.

Rooms, each of which uses only those before it: known (the layers so far) → asking (the box) → first (a layer whose
inputs can be set freely) → surfaces (of units further behind) → ending (the last layer, and the whole network) →
behind (layers behind two known ones). `whole` goes from layer to layer; `by_layers` makes a Recovery of it.

:func:`extract_deep` works on any batched function.
"""

from relumine.extraction.deep.ending.confirm import Found
from relumine.extraction.deep.whole import extract_deep

__all__ = ["Found", "extract_deep"]
