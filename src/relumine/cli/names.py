"""A network from a model file or from a saved result, with what such a file says beside it."""

from __future__ import annotations

from pathlib import Path

from relumine import formats
from relumine.formats import Labels
from relumine.network import Network
from relumine.report import is_result, load


def opened(path: Path) -> tuple[Network, Labels]:
    """The network in a model file or a saved result; names of its inputs, its status and its link."""
    if path.suffix.lower() == ".json" and is_result(path):
        found = load(path)
        return found.network, found.labels
    return Network.load(path), formats.read_labels(path)
