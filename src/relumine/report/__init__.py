"""A recovery to look at and to keep: one HTML page (`write`), one JSON file (`save`, `load`)."""

from relumine.report.page import render, write
from relumine.report.saved import as_dict, from_dict, is_result, load, save, write_text

__all__ = ["as_dict", "from_dict", "is_result", "load", "render", "save", "write", "write_text"]
