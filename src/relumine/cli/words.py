"""The command line's own words: options for Python's arguments, remedies and advice that speak of options."""

from __future__ import annotations

import re
from typing import Final

from relumine.results import InvalidInput, Recovery, Status

__all__ = ["advice", "in_options", "spoken"]

_NAMES: Final = (
    *("activation", "bound", "budget", "checkpoint", "checkpoint_every", "decimal", "delimiter", "dim", "features"),
    *("high", "link", "low", "mean", "method", "noise", "queries", "rate_limit", "resume", "samples", "scale"),
    *("seconds", "slope", "starts", "target", "timeout", "width", "workers"),
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
    "dtype='float32'": "--float32",
    "dtype='float64'": "no --float32",
}
# what to do, where the words for Python would not help here
_REMEDIES: Final = {
    "target": "name the output with --target NAME",
    "width": "choose another --width, or none to have it found",
    "checkpoint": "remove that file to start afresh, or name another with --checkpoint",
}
_CALLED: Final = re.compile(r"\b([a-z_]+)=('[^']*'|None|True|\[[^\]]*\])?")  # name=value, as in a call

_ADVICE: Final = {
    Status.ESTIMATE: "The parameters carry the sampling error of the moments. For the exact network use --method auto, "
    "which refines by least squares.",
    Status.NOT_RECOVERED: "Try a larger --width (or none, to have it found), more samples, more --starts, or another "
    "--activation: the data may not come from a one-hidden-layer network of this width and activation.",
    Status.UNDERDETERMINED: "Collect more samples (about 5 per parameter, width·(d+1) parameters) or ask for a smaller "
    "--width. Many different networks explain these data: do not take the returned one for the answer.",
    Status.INTERRUPTED: "This is the best network so far, not a result. Run again with more time (--seconds).",
}


def advice(found: Recovery) -> str:
    """What to do next, in options of the command that made the result."""
    return spoken(found.advice) if found.advice != found.status.advice else _ADVICE.get(found.status, found.advice)


def spoken(text: str) -> str:
    """Arguments as in a call of Python, name=value, as options; the rest as it is.

    Examples
    --------
    >>> spoken("use method='auto', other features=, or bad_rows='skip'")
    'use --method auto, other --features, or --skip-bad-rows'
    """

    def option(call: re.Match[str]) -> str:
        name, value = call[1], call[2] or ""
        if call[0] in _VALUES or name not in _OPTIONS:
            return _VALUES.get(call[0], call[0])
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
    if name in _OPTIONS and problem.startswith(f"{name} "):
        problem = _OPTIONS[name] + problem.removeprefix(name)
    return problem if error.remedy is None else f"{problem}; {_REMEDIES.get(name) or spoken(error.remedy)}"
