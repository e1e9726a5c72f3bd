"""A deep extraction as one Recovery: the network in the user's coordinates, its status and its evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from relumine.arrays import Array
from relumine.deep import DeepNetwork
from relumine.extraction.deep.ending.confirm import Found
from relumine.extraction.deep.whole import extract_deep
from relumine.extraction.judge import BoxEvidence, certificate, judge
from relumine.extraction.pieces import Line
from relumine.extraction.queries import Queries
from relumine.extraction.sampling import Domain
from relumine.network import Network
from relumine.results import InvalidInput, Recovery, SearchRecord, Stage, counted
from relumine.run import Run

_ROWS = 20_000  # from which an affine map is taken
_AGAIN, _REPEATS = 8, 2e-5  # rows asked a second time at the end, and by how much answers may then differ


@dataclass(frozen=True)
class Rest:
    """What is left where an extraction stops half-way: the layers that are certain, and the box behind them.

    ``layers``: (W, b) of the first layers, input side first; ``reason``: why the next one was not found. Called with
    activations (n, m) of the last of them, it asks the box at inputs that have these activations. ``unsigned``: (W, b)
    of the units of the next layer, rows of length one, if their planes were found, but not on which side each is on.
    ``checked``: for each layer, at how many places a unit that it lacks would have shown, if it is on there; none did.
    """

    layers: tuple[tuple[Array, Array], ...]
    reason: str
    ask: Callable[[Array], Array] = field(repr=False)
    unsigned: tuple[Array, Array] | None = None
    checked: tuple[int, ...] = ()

    def __repr__(self) -> str:
        units = ", ".join(str(len(b)) for _, b in self.layers) or "no"
        planes = "" if self.unsigned is None else f", and planes of {len(self.unsigned[1])} more"
        return f"Rest(behind {counted(len(self.layers), 'layer')} of {units} units{planes}; ended: {self.reason})"

    def activations(self, X: ArrayLike) -> Array:
        """What the known layers make of the rows of X."""
        H = np.asarray(X, dtype=np.float64)
        for W, b in self.layers:
            H = np.maximum(H @ W.T + b, 0.0)
        return H

    def __call__(self, H: ArrayLike) -> Array:
        """The box at inputs whose activations are the rows of H (all positive)."""
        wanted = np.asarray(H, dtype=np.float64)
        X = wanted
        for W, b in self.layers[::-1]:
            X = np.asarray(np.linalg.lstsq(W, (X - b).T, rcond=None)[0].T, dtype=np.float64)
        if np.abs(self.activations(X) - wanted).max(initial=0.0) > 1e-8 * (1.0 + np.abs(wanted).max(initial=0.0)):
            raise InvalidInput("for some of these activations no input was found that has them", argument="H")
        return self.ask(X)


def by_layers(
    log: Queries,
    domain: Domain,
    run: Run,
    depth: int | None = None,
    widths: tuple[int, ...] | None = None,
    lines: list[Line] | None = None,
) -> tuple[Recovery, Rest | None]:
    """All layers by chosen queries; and, where it stops half-way, what is left. ``lines``: searched already."""
    digits = None if log.link is None else lambda Z: log.digits(domain.rows(Z))
    grid = 0.0 if log.link is None else log.link.grid
    found = extract_deep(
        lambda Z: log.answers(domain.rows(Z)),
        domain.d,
        run,
        plain=log.plain,
        lines=lines,
        digits=digits,
        grid=grid,
        left=lambda: log.left,
    )
    layers = _to_user(found.known, domain)
    if found.exact and found.network is not None:
        # the scale of a row is free: unit rows
        head = found.network.head
        deep = DeepNetwork(_to_user(found.network.layers, domain), head) if found.network.layers else None
        network = cast("Network", deep.scaled()) if deep is not None else domain.to_user(head).scaled()
        rest = None
    else:
        network = _affine(log, layers, domain.d)
        unsigned = found.unsigned
        if unsigned is not None and not layers:
            (unsigned,) = _to_user((unsigned,), domain)
        some = layers or unsigned is not None
        rest = Rest(layers, found.reason, log.answers, unsigned, found.checked) if some else None
    e = _evidence(network, found, layers, depth, widths)
    if found.exact:
        e = replace(e, repeats=log.apart(_AGAIN) <= _REPEATS)
    status, message = judge(e)
    recovery = Recovery(
        network=network,
        status=status,
        message=message,
        certificate=certificate(e),
        stages=(Stage("layers", found.seconds, None, "; ".join(found.notes)),),
        method="layers",
        search=SearchRecord(rows=log.n, rows_searched=log.n),
    )
    return recovery, rest


def _evidence(
    network: Network,
    found: Found,
    layers: tuple[tuple[Array, Array], ...],
    depth: int | None,
    widths: tuple[int, ...] | None,
) -> BoxEvidence:
    """What is known about the network, or about the layers in front of what was not found."""
    notes = (*found.notes, *found.doubts)
    unshown = "anything about units, or weights between units, that do not matter at any row asked"
    if not found.exact:
        certain = tuple(len(b) for _, b in layers)
        ended, reason = (found.reason, "") if found.stopped else ("", found.reason)
        sides = 0 if found.unsigned is None else len(found.unsigned[1])
        if layers:
            notes += (_checks(found.checked),)
        return BoxEvidence(layers=certain, sides=sides, notes=notes, open=unshown, ended=ended, reason=reason)
    has: tuple[int, ...] = getattr(network, "widths", (network.m,))
    other = ""
    if depth is not None and depth != len(has):
        other = f"depth={depth} was asked for."
    elif widths is not None and tuple(widths) != tuple(has):
        other = f"widths={tuple(widths)} were asked for: units that never switch do not show."
    return BoxEvidence(
        found=f"{counted(len(has), 'hidden layer')} of {', '.join(map(str, has))} units",
        fresh=found.confirmed,
        residual=found.residual,
        other=other,
        open=unshown,
        notes=notes,
    )


def _checks(checked: tuple[int, ...]) -> str:
    """At how many places each of the layers could have been contradicted, in words.

    Examples
    --------
    >>> _checks((105, 0))
    'a missing unit would have shown: of layer 1 at 105 places; of layer 2 only through units behind it'
    """
    where = [f"at {n:,} places" if n else "only through units behind it" for n in checked]
    return "a missing unit would have shown: " + "; ".join(f"of layer {k} {at}" for k, at in enumerate(where, 1))


def _to_user(layers: tuple[tuple[Array, Array], ...], domain: Domain) -> tuple[tuple[Array, Array], ...]:
    """Layers of z as layers of x: w_x = w/scale, b_x = b − w_x·centre in the first."""
    if not layers:
        return ()
    (W, b), *others = layers
    W = W / domain.scale
    return ((W, b - W @ domain.centre), *others)


def _affine(log: Queries, layers: tuple[tuple[Array, Array], ...], d: int) -> Network:
    """The best affine map of what is known, in place of the network that was not found."""
    X, Y = log.some(_ROWS)
    H = Rest(layers, "", lambda X: X).activations(X)
    near = np.linalg.norm(H, axis=1) <= 2.0 * np.median(np.linalg.norm(H, axis=1))
    B = np.linalg.lstsq(np.column_stack([H[near], np.ones(int(near.sum()))]), Y[near], rcond=None)[0]
    q, m = Y.shape[1], H.shape[1]
    head = Network(np.zeros((0, m)), np.zeros(0), np.zeros((q, 0)), v=B[:-1].T, c=B[-1])
    if log.plain:
        head = Network(np.zeros((0, m)), np.zeros(0), np.zeros(0), v=B[:-1, 0], c=B[-1, 0])
    return cast("Network", DeepNetwork(layers, head)) if layers else head
