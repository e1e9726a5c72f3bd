"""The errors that this package raises on purpose, and its warning."""

from __future__ import annotations


class RelumineError(Exception):
    """Base of every error this package raises on purpose."""


class InvalidInput(RelumineError, ValueError):
    """The input cannot be used; the message says what was wrong, where, and what to do.

    Parameters
    ----------
    problem : str
        What was wrong, and where.
    argument : str, optional
        The argument that has to change, by its name in Python: a door with other names for it can say those.
    remedy : str, optional
        What to do; part of the message.
    """

    def __init__(self, problem: str, *, argument: str | None = None, remedy: str | None = None) -> None:
        super().__init__(problem if remedy is None else f"{problem}; {remedy}")
        self.problem, self.argument, self.remedy = problem, argument, remedy


class MissingPackage(InvalidInput):
    """An optional package is not installed; the message names it and how to get it.

    Examples
    --------
    >>> str(MissingPackage("ONNX files need onnx", "onnx"))
    'ONNX files need onnx; pip install onnx'
    """

    def __init__(self, problem: str, *packages: str) -> None:
        # the packages by their own names: that works from a checkout as well as from an index
        super().__init__(problem, remedy=f"pip install {' '.join(packages)}" if packages else None)


class ModelFileError(RelumineError, ValueError):
    """A model file is missing, damaged, or not ours."""


class NotWritten(RelumineError, OSError):
    """A file could not be written (no space, no permission); the message names it and what to do."""


class RelumineWarning(UserWarning):
    """Something was done differently from what was asked, or deserves a look."""
