"""Counts and networks in words, the same in the terminal, in reports and in notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from relumine.network import Network


def counted(k: int, thing: str) -> str:
    """A number and what it counts: '1 row', '1,078 rows'."""
    return f"{k:,} {thing}{'' if k == 1 else 's'}"


def spelled(activation: str) -> str:
    """The name of an activation as people write it.

    Examples
    --------
    >>> spelled("leaky_relu"), spelled("tanh")
    ('leaky ReLU', 'tanh')
    """
    return {"relu": "ReLU", "leaky_relu": "leaky ReLU", "squared_relu": "squared ReLU"}.get(activation, activation)


def described(net: Network) -> str:
    """A network in a clause: its units, inputs, outputs, and whether an affine part goes with them."""
    if not net.m:
        return f"no hidden units, an affine function of {counted(net.d, 'input')}"
    spoken, inputs = spelled(net.activation.name), counted(net.d, "input")
    behind = f"behind {inputs}" if net.q is None else f"between {inputs} and {counted(net.q, 'output')}"
    widths: tuple[int, ...] = getattr(net, "widths", ())
    if widths:  # a DeepNetwork
        return f"{counted(len(widths), 'hidden layer')} of {' + '.join(map(str, widths))} {spoken} units {behind}"
    words = f"{counted(net.m, f'{spoken} unit')} {behind}"
    if np.any(net.v) or np.any(net.c):
        words += ", with an affine part" if np.any(net.v) else ", with an output bias"
    return words
