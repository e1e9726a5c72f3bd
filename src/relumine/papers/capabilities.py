"""What a paper's method can do, declared once beside the method and checked at the front door before any work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Literal

from relumine import activations
from relumine.activations import Activation
from relumine.results import InvalidInput


@dataclass(frozen=True)
class Capabilities:
    """What a method takes, finds and keeps.

    Attributes
    ----------
    name : str
        As in ``method="…"``.
    activations : tuple of str, or a predicate
        The activations it is for, by name or by a property.
    biases : bool
        Whether its units have biases (and its networks an affine part).
    outputs : {"one", "several"}
    weights : bool
        Whether it takes ``sample_weight``.
    finds_width : bool
        Whether ``width=None`` is allowed.
    streams : bool
        Whether rows may stay in files or on a cluster: everything it does is a sum over rows.
    checkpoint : bool
        Whether a run can be broken off and resumed.
    searches : bool
        Whether it makes several ``starts`` and ends when its ``seconds`` are over.
    options : tuple of str
        Keyword arguments of its own, beside X, y, width, activation and rng (:func:`options_of`).

    Examples
    --------
    >>> tensor = Capabilities("tensor", ("relu",), options=("order",))
    >>> tensor.takes("relu"), tensor.takes("tanh")
    (True, False)
    >>> tensor.check(activation="tanh")
    Traceback (most recent call last):
    ...
    relumine.results.errors.InvalidInput: method='tensor' is for relu units, not tanh; use method='auto'
    """

    name: str
    activations: tuple[str, ...] | Callable[[Activation], bool]
    biases: bool = False
    outputs: Literal["one", "several"] = "one"
    weights: bool = False
    finds_width: bool = False
    streams: bool = True
    checkpoint: bool = False
    searches: bool = False
    options: tuple[str, ...] = ()

    def takes(self, activation: str | Activation) -> bool:
        """Whether it is for units with this activation."""
        sigma = activations.get(activation)
        return self.activations(sigma) if callable(self.activations) else sigma.name in self.activations

    def known(self) -> tuple[str, ...]:
        """The names of the activations it takes; those whose parameters have no default are left out."""
        found = []
        for name in dict.fromkeys(name.partition("(")[0] for name in activations.names()):
            try:
                found += [name] if self.takes(name) else []
            except InvalidInput:
                continue
        return tuple(found)

    def check(
        self,
        *,
        activation: str | Activation = "relu",
        width: int | None = 1,
        outputs: int = 1,
        weighted: bool = False,
        checkpoint: bool = False,
        searched: str | None = None,
    ) -> None:
        """Raise :class:`~relumine.results.InvalidInput` for the first thing asked that the method cannot do.

        ``searched``: the argument that was given for a search, ``starts`` or ``seconds``.
        """
        method, auto = f"method={self.name!r}", "use method='auto'"
        if not self.takes(activation):
            given = activations.get(activation).name
            problem = f"{method} is for {', '.join(self.known())} units, not {given}"
            raise InvalidInput(problem, argument="activation", remedy=auto)
        if width is None and not self.finds_width:
            raise InvalidInput(f"{method} needs the width", argument="width", remedy="method='auto' can find it")
        if outputs > 1 and self.outputs == "one":
            remedy = f"recover one output at a time, or {auto}"
            raise InvalidInput(f"{method} takes one output, y has {outputs}", argument="y", remedy=remedy)
        if weighted and not self.weights:
            raise InvalidInput(f"{method} does not take sample_weight", argument="sample_weight", remedy=auto)
        if checkpoint and not self.checkpoint:
            raise InvalidInput(f"{method} keeps no checkpoint", argument="checkpoint", remedy="method='auto' does")
        if searched is not None and not self.searches:
            raise InvalidInput(
                f"{method} makes no search, so {searched}= means nothing", argument=searched, remedy=auto
            )


def options_of(method: Callable[..., object]) -> tuple[str, ...]:
    """The keyword arguments that a method alone knows.

    Examples
    --------
    >>> options_of(lambda X, y, width, *, activation, rng, order: None)
    ('order',)
    """
    named = signature(method).parameters.values()
    return tuple(p.name for p in named if p.kind is Parameter.KEYWORD_ONLY and p.name not in ("activation", "rng"))
