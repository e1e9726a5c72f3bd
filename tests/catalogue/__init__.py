"""Problems with known answers. Each file here holds a ``PROBLEMS`` tuple; a new file is found by itself."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from tests.catalogue.base import Planted, Problem

__all__ = ["CATALOGUE", "Planted", "Problem"]

_FIRST = ("generic", "few_samples", "wide_biases", "orthonormal")  # then the others by name
_LAST = ("shipped", "very_wide")  # minutes a run


def _modules() -> list[str]:
    names = [info.name for info in iter_modules(__path__) if info.name != "base"]
    middle = sorted(name for name in names if name not in _FIRST + _LAST)
    return [name for name in (*_FIRST, *middle, *_LAST) if name in names]


CATALOGUE: dict[str, Problem] = {
    problem.name: problem for name in _modules() for problem in import_module(f"{__name__}.{name}").PROBLEMS
}
