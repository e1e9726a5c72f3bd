"""Settings for every test: repeatable examples on a CI machine, and inputs moved by a last digit on request."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from hypothesis import settings

import relumine

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("fresh", deadline=None)
settings.load_profile("repeatable" if os.environ.get("CI") else "fresh")

# a job in the background ignores Ctrl-C, and hands that on: tests of Ctrl-C need the usual answer to it
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_TOWARDS = {"up": np.inf, "down": -np.inf}


def moved(X: Any, towards: float) -> Any:
    """X with every number moved to its neighbour that uses the last digits of a double.

    Equal numbers stay equal, zeros stay zeros, and numbers of single precision (or whole ones) stay what they are: what
    a test says about copies, lattices or rounding still holds.
    """
    if not isinstance(X, np.ndarray) or type(X) is not np.ndarray or X.dtype != np.float64:
        return X
    with np.errstate(over="ignore", invalid="ignore"):
        short = X.astype(np.float32) == X
    return np.where(short, X, np.nextafter(X, towards))


def _nudged(recover: Callable[..., Any], towards: float) -> Callable[..., Any]:
    @wraps(recover)
    def nudged(X: Any, *rest: Any, **options: Any) -> Any:
        return recover(moved(X, towards), *rest, **options)

    return nudged


# `make test-portable` sets this: a recovery that hangs on the last bit of its inputs shows
if os.environ.get("RELUMINE_NUDGE"):
    relumine.recover = _nudged(relumine.recover, _TOWARDS[os.environ["RELUMINE_NUDGE"]])
