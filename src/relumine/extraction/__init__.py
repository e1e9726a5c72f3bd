"""Look inside a black box: queries in growing batches until the network that answers them is certain."""

from relumine.extraction.boxes import Box, open_box
from relumine.extraction.door import Extraction, extract
from relumine.extraction.queries import BlackBoxFailed, Queries

__all__ = ["BlackBoxFailed", "Box", "Extraction", "Queries", "extract", "open_box"]
