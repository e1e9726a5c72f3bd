"""Methods: each file has ``NAME``, ``skip(problem)`` and ``run(X, y, width, seconds, rng)``; a new file is found.

``skip`` says why a method cannot be used on a problem (or on this machine), or None. ``run`` returns its best network
when so many CPU seconds are over, or earlier when it is sure.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol, cast

import numpy as np
from tests.catalogue.base import Problem

import relumine as rl

__all__ = ["ALTERNATIVES", "METHODS", "OURS", "Method"]


class Method(Protocol):
    """A module of this folder."""

    NAME: str

    def skip(self, problem: Problem) -> str | None:
        """Why not, or None."""

    def run(self, X: np.ndarray, y: np.ndarray, width: int, seconds: float, rng: int = 0) -> rl.Network:
        """The best network found in the time."""


_ORDER = ("relumine_auto", "relumine_awasthi", "relumine_zhong", "scipy_trf", "scipy_lm")


def _modules() -> list[str]:
    names = [info.name for info in iter_modules(__path__) if info.name != "best"]
    return sorted(names, key=lambda name: (_ORDER.index(name) if name in _ORDER else len(_ORDER), name))


METHODS: dict[str, Method] = {
    method.NAME: method for method in (cast(Method, import_module(f"{__name__}.{name}")) for name in _modules())
}
OURS = "relumine"
ALTERNATIVES = [name for name in METHODS if not name.startswith(OURS)]
