"""What was asked for, checked in one place before a source is opened or a number is read.

What a method can do is declared in :data:`METHODS`; :func:`check` compares it with the request and names what is
missing. Options go where they belong: to the source of the samples, or to the method.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, signature
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from relumine import activations, papers
from relumine.activations import Activation
from relumine.arguments import generator, is_number, is_whole, one_of, positive, whole
from relumine.data.sources import open_source
from relumine.papers.capabilities import Capabilities
from relumine.recovery.layers import CAPABILITIES as LAYERS
from relumine.results import InvalidInput

MEMORY = 512e6  # bytes for rows in memory, all copies of them counted: a laptop has room for that
_LEAST_MEMORY = 1e6  # bytes: fewer do not hold the rows that a search begins with
_EVERY = 30.0  # seconds between two checkpoints inside a minimisation: what a killed run may lose


METHODS: Mapping[str, Capabilities] = {
    "auto": Capabilities(
        "auto",
        activations=lambda sigma: True,
        biases=True,
        outputs="several",
        weights=True,
        finds_width=True,
        checkpoint=True,
        searches=True,
        options=("checkpoint_every",),
    ),
    "layers": LAYERS,
    **papers.METHODS,
}


@dataclass(frozen=True)
class Asked:
    """A request that has passed all checks; ``source``, ``options``: for the source and for the method."""

    method: Capabilities
    width: int | None
    activation: Activation
    rng: np.random.Generator
    starts: int | None
    seconds: float | None
    affine: str
    memory: float
    checkpoint: Path | None
    every: float
    source: dict[str, Any]
    options: dict[str, Any]


def known_options(method: Capabilities) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the options for the source of the samples, and of those for the method."""
    named = signature(open_source).parameters.values()
    source = tuple(p.name for p in named if p.kind is Parameter.KEYWORD_ONLY and p.name != "sample_weight")
    return source, tuple(dict.fromkeys(("memory", "affine", *(name for name in method.options if name != "progress"))))


def check(
    *,
    method: str,
    width: Any,
    activation: Any,
    weighted: bool,
    checkpoint: Any,
    rng: Any,
    starts: Any,
    seconds: Any,
    on_failure: Any,
    progress: Any,
    options: dict[str, Any],
) -> Asked:
    """The request, or what is wrong with it."""
    method = "layers" if method == "auto" and "widths" in options else method
    if method not in METHODS:
        known = ", ".join(name for name in METHODS if name != "layers")  # that one is asked for by widths=
        raise InvalidInput(f"unknown method {method!r}", argument="method", remedy=f"known: {known}")
    sigma, able = activations.get(activation), METHODS[method]
    source, own = _sorted(able, options)
    affine = own.pop("affine", "keep")
    one_of("affine", affine, ("keep", "consolidate"))
    one_of("on_failure", on_failure, ("raise", "return"))
    if affine == "consolidate" and (sigma != activations.RELU or able is LAYERS):
        has = "there are several layers" if able is LAYERS else f"the activation is {sigma.name}"
        raise InvalidInput(f"affine='consolidate' writes v·x + c as ReLU units; {has}", argument="affine")
    if progress is not None and not callable(progress):
        raise InvalidInput(f"progress must be a function or None, got {progress!r}", argument="progress")
    if width is not None and not is_whole(width, 0):
        raise InvalidInput(f"width must be a whole number ≥ 0 or None (find it), got {width!r}", argument="width")
    if starts is not None:
        whole("starts", starts, 1)
    if seconds is not None:
        positive("seconds", seconds)
    memory, every = own.pop("memory", MEMORY), own.pop("checkpoint_every", _EVERY)
    if not (is_number(memory) and memory >= _LEAST_MEMORY):
        raise InvalidInput(f"memory is a number of bytes, at least 1e6; got {memory!r}", argument="memory")
    if not (is_number(every) and every >= 0.0):
        raise InvalidInput(f"checkpoint_every is a number of seconds; got {every!r}", argument="checkpoint_every")
    if checkpoint is not None and not isinstance(checkpoint, str | PathLike):
        raise InvalidInput(f"checkpoint is the path of a file; got {checkpoint!r}", argument="checkpoint")
    if able is LAYERS:
        own["widths"] = _widths(own.get("widths"), width)
    searched = "starts" if starts is not None else "seconds" if seconds is not None else None
    able.check(activation=sigma, width=width, weighted=weighted, checkpoint=checkpoint is not None, searched=searched)
    return Asked(
        method=able,
        width=None if width is None else int(width),
        activation=sigma,
        rng=generator(rng),
        starts=None if starts is None else int(starts),
        seconds=None if seconds is None else float(seconds),
        affine=affine,
        memory=float(memory),
        checkpoint=None if checkpoint is None else Path(checkpoint),
        every=float(every),
        source=source,
        options=own,
    )


def _sorted(method: Capabilities, options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of the source and of the method; one that neither knows is an error."""
    of_source, of_method = known_options(method)
    unknown = next((option for option in options if option not in (*of_source, *of_method)), None)
    if unknown is not None:
        known = ", ".join(sorted((*of_source, *of_method)))
        raise InvalidInput(
            f"method={method.name!r} does not know the option {unknown!r}", argument=unknown, remedy=f"known: {known}"
        )
    source = {key: value for key, value in options.items() if key in of_source}
    return source, {key: value for key, value in options.items() if key in of_method}


def _widths(widths: Any, width: Any) -> tuple[int, ...]:
    """The widths of several hidden layers."""
    if isinstance(widths, Sequence) and len(widths) >= 2 and all(is_whole(m, 1) for m in widths) and width is None:
        return tuple(int(m) for m in widths)
    raise InvalidInput(
        f"widths are the units of two or more hidden layers, whole numbers; got {widths!r}",
        argument="widths",
        remedy="for one hidden layer pass width" if width is None else "pass widths or width, not both",
    )
