"""A network of four hidden layers, and the search behind some of them."""

from __future__ import annotations

import numpy as np

import relumine as rl
from relumine.extraction.deep.asking.box import Asked
from relumine.extraction.deep.asking.inquiry import Inquiry
from relumine.extraction.deep.known.charts import Known
from relumine.run import Run

TRUTH = rl.planted.deep((30, 10, 10, 10, 10, 1), rng=0)


def inquiry(layers: int = 2) -> Inquiry:
    """Asks TRUTH, of which so many layers are known."""
    run = Run.of(rng=1)
    at = Inquiry(Asked(TRUTH, run.rng, np.inf, lambda: ""), TRUTH.d, run)
    at.known = Known(TRUTH.d, TRUTH.hidden[:layers])
    return at
