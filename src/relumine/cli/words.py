"""The command line's own words: options for Python's arguments, remedies and advice that speak of options."""

from __future__ import annotations

import re
from shlex import quote
from typing import Final

from relumine.results import InvalidInput, Recovery

_NAMES: Final = (
    *("activation", "bound", "budget", "checkpoint", "checkpoint_every", "decimal", "delimiter", "dim", "features"),
    *("high", "ignore", "impute", "link", "low", "mean", "method", "noise", "queries", "rate_limit", "resume"),
    *("samples", "scale", "seconds", "slope", "starts", "target", "timeout", "width", "workers"),
)
# Python's arguments by the option that sets them
_OPTIONS: Final = {
    **{name: f"--{name.replace('_', '-')}" for name in _NAMES},
    "bad_rows": "--skip-bad-rows",
    "rng": "--seed",
    "save": "--queries",
    "image_shape": "--images",
}
# an argument with a value, where that is not the option with the value
_VALUES: Final = {
    "bad_rows='skip'": "--skip-bad-rows",
    "width=None": "no --width",
    "resume=True": "--resume",
    "one_hot=True": "--one-hot",
    "dtype='float32'": "--float32",
    "dtype='float64'": "no --float32",
}
# what to do, where the words for Python would not help here
_REMEDIES: Final = {
    "target": "name the output with --target NAME",
    "width": "choose another --width, or none to have it found",
    "checkpoint": "remove that file to start afresh, or name another with --checkpoint",
}
_WORTH_KEEPING = 0.9  # R² on unseen rows
_CALLED: Final = re.compile(r"\b([a-z_]+)=('[^']*'|None|True|\[[^\]]*\])?")  # name=value, as in a call

# Python's words that are no arguments
_PHRASES: Final = {
    "relumine.extract": "relumine extract",
    "relumine.estimators.TwoLayerRegressor": "relumine.estimators.TwoLayerRegressor (in Python)",
}


def advice(found: Recovery) -> str:
    """What to do next, in options; how to keep an approximation that is no network to trust."""
    words = spoken(found.advice)
    for python, here in _PHRASES.items():
        words = words.replace(python, here)
    if found.ok or not (found.network.m and 1.0 - found.certificate.residual**2 >= _WORTH_KEEPING):
        return words
    return f"{words} To keep it as an approximation: --out net.safetensors --force."


def spoken(text: str) -> str:
    """Arguments as in a call of Python, name=value, as options; the rest as it is.

    Examples
    --------
    >>> spoken("use method='auto', other features=, bad_rows='skip' or ignore=['id']")
    'use --method auto, other --features, --skip-bad-rows or --ignore id'
    """

    def option(call: re.Match[str]) -> str:
        name, value = call[1], call[2] or ""
        if call[0] in _VALUES or name not in _OPTIONS:
            return _VALUES.get(call[0], call[0])
        if value.startswith("['"):  # a list of one name, quoted for the shell
            return f"{_OPTIONS[name]} {quote(value[2:-2])}"
        return f"{_OPTIONS[name]} {value.strip(chr(39))}" if value.startswith("'") else _OPTIONS[name]

    return _CALLED.sub(option, text)


def in_options(error: InvalidInput) -> str:
    """An error of the library in the words of the command line.

    Examples
    --------
    >>> in_options(InvalidInput("width must be at least 0, got -1", argument="width"))
    '--width must be at least 0, got -1'
    >>> in_options(InvalidInput("no column 'u'", argument="target", remedy="name another column of the frame"))
    "no column 'u'; name the output with --target NAME"
    """
    name, problem = error.argument or "", spoken(error.problem)
    for none in (", or None", " or None", "None or "):  # an option is left out instead
        problem = problem.replace(none, "")
    if name in _OPTIONS and problem.startswith(f"{name} "):
        problem = _OPTIONS[name] + problem.removeprefix(name)
    return problem if error.remedy is None else f"{problem}; {_REMEDIES.get(name) or spoken(error.remedy)}"
