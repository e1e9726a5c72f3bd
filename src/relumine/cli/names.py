"""A network from a model file or from a saved result, and the labels in such a file: input names, status, link."""

from __future__ import annotations

from pathlib import Path

from relumine import formats
from relumine.formats import Labels
from relumine.network import Network
from relumine.report import is_result, load
from relumine.results import Recovery


def network_of(path: Path) -> Network:
    """The network in a model file or in a saved result."""
    found = _result(path)
    return Network.load(path) if found is None else found.network


def labels_of(path: Path) -> Labels:
    """Names of the inputs and the status that a model file or a saved result holds."""
    found = _result(path)
    if found is not None:
        return found.labels
    return formats.read_labels(path)


def names_in(path: Path) -> list[str]:
    """Names of the inputs in a network file or a saved result; none if there are none."""
    return list(labels_of(path).features)


def _result(path: Path) -> Recovery | None:
    """A saved result; None for a network."""
    return load(path) if path.suffix.lower() == ".json" and is_result(path) else None
