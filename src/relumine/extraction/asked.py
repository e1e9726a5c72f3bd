"""What was asked of `extract`, checked in one place before the box is opened.

Options are grouped by what they are about: :class:`Manner`, how the box is asked; :class:`Region`, where;
:class:`Sizes`, what is known of the layers. What belongs to none of them is for the search among random rows,
:func:`relumine.recover`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np

from relumine.activations import Activation
from relumine.arguments import generator, is_number, is_whole, one_of, positive, whole
from relumine.extraction.queries import Manner
from relumine.extraction.random_rows import PROBE
from relumine.extraction.region import Region
from relumine.links import LINKS
from relumine.recovery import asked as recovery
from relumine.results import InvalidInput, ProgressCallback

_LIMIT = 3600.0  # seconds, where the user gives none: an endless search helps nobody, and a log can be resumed
Group = TypeVar("Group")


@dataclass(frozen=True)
class Sizes:
    """What the user says of the hidden layers: ``width`` of the only one, or ``depth`` and ``widths`` of several."""

    width: int | None = None
    depth: int | None = None
    widths: Sequence[int] | None = None

    def __post_init__(self) -> None:
        if self.width is not None and not is_whole(self.width, 0):
            raise InvalidInput(
                f"width must be a whole number ≥ 0 or None (find it), got {self.width!r}", argument="width"
            )
        if self.depth is not None and not is_whole(self.depth, 1):
            raise InvalidInput(f"depth is a number of hidden layers, at least 1; got {self.depth!r}", argument="depth")
        if self.widths is None:
            return
        good = np.ndim(self.widths) == 1 and len(self.widths) and all(is_whole(m, 1) for m in self.widths)
        if not good or self.depth not in (None, len(self.widths)) or self.width is not None:
            raise InvalidInput(
                f"widths are the units of each hidden layer, as many as depth says; got {self.widths!r}",
                argument="widths",
                remedy="give width for one layer, or widths for several",
            )
        object.__setattr__(self, "widths", tuple(int(m) for m in self.widths))
        object.__setattr__(self, "depth", len(self.widths))


@dataclass(frozen=True)
class Asked:
    """A request that has passed all checks; ``search``: options of the search among random rows."""

    manner: Manner
    region: Region
    sizes: Sizes
    dim: int | None
    budget: int | None
    queries: str
    growth: float
    link: str | None
    seed: int
    seconds: float | None
    progress: ProgressCallback | None
    activation: Activation
    search: dict[str, Any]

    @property
    def limit(self) -> float:
        """Seconds that it may take."""
        return _LIMIT if self.seconds is None else self.seconds


def check(options: Mapping[str, Any]) -> Asked:
    """The request by the names of its arguments, or what is wrong with it."""
    left = dict(options)
    dim, budget, growth = left.pop("dim"), left.pop("budget"), left.pop("growth", 1.5)
    queries, link, rng = left.pop("queries"), left.pop("link"), left.pop("rng")
    seconds, progress = left.pop("seconds"), left.pop("progress", None)
    one_of("queries", queries, ("chosen", "random"))
    one_of("link", link, (None, *LINKS))
    if dim is not None:
        whole("dim", dim, 1)
    if budget is not None:
        whole("budget", budget, 2 * PROBE)
    if not (is_number(growth) and growth > 1.0):
        raise InvalidInput(f"growth must be above 1, got {growth!r}", argument="growth")
    if seconds is not None:
        positive("seconds", seconds)
    sizes, manner, region = _group(Sizes, left), _group(Manner, left), _group(Region, left)
    if link is not None and region.sampler is not None:
        raise InvalidInput("link= and sampler= cannot be combined", argument="link")
    sigma = _search(sizes.width, progress, left.pop("on_failure"), left)
    seed = _seed(rng)
    return Asked(manner, region, sizes, dim, budget, queries, float(growth), link, seed, seconds, progress, sigma, left)


def _group(kind: Callable[..., Group], left: dict[str, Any]) -> Group:
    """One group of options, taken out of those that are left."""
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: left.pop(name) for name in names if name in left})


def _search(width: int | None, progress: Any, on_failure: Any, options: Mapping[str, Any]) -> Activation:
    """Check the options of :func:`relumine.recover`, all but those of a source of samples; the activation."""
    named = {"method": "auto", "activation": "relu", "starts": None}
    of_source = recovery.known_options(recovery.METHODS["auto"])[0]
    odd = next((name for name in options if name in (*of_source, "checkpoint", "checkpoint_every")), None)
    if odd is not None:
        raise InvalidInput(f"{odd} is for samples; a black box has none", argument=odd, remedy="leave it out")
    return recovery.check(
        **{name: options.get(name, default) for name, default in named.items()},
        width=width or 1,  # found by guesses, which any method takes
        weighted=False,
        checkpoint=None,
        rng=0,
        seconds=None,
        on_failure=on_failure,
        progress=progress,
        options={name: value for name, value in options.items() if name not in named},
    ).activation


def _seed(rng: Any) -> int:
    """A number from which the random streams of the run are drawn."""
    found = generator(rng)
    return int(rng) if isinstance(rng, int | np.integer) else int(found.integers(2**63))
