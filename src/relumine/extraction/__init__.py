"""Look inside a black box: door → boxes → lines → units → polish → judge, or random rows where lines cannot be had."""

from relumine.extraction.boxes import Box, open_box
from relumine.extraction.door import Extraction, extract
from relumine.extraction.queries import BlackBoxFailed, Queries

__all__ = ["BlackBoxFailed", "Box", "Extraction", "Queries", "extract", "open_box"]
