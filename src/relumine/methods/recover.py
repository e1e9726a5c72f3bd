"""The front door: `recover` checks what came in, runs the method asked for, and turns failure into words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from relumine import activations
from relumine.activations import Activation
from relumine.data.sources import as_samples
from relumine.methods.auto import recover_auto
from relumine.methods.awasthi import recover_awasthi
from relumine.methods.zhong import recover_zhong
from relumine.results import InvalidInput, ProgressCallback, Recovery, RecoveryFailed

__all__ = ["recover"]

_PAPERS: dict[str, Callable[..., Recovery]] = {"awasthi": recover_awasthi, "zhong": recover_zhong}


def recover(
    X: ArrayLike,
    y: ArrayLike,
    width: int | None = None,
    *,
    method: Literal["auto", "awasthi", "zhong"] = "auto",
    activation: str | Activation = "relu",
    sample_weight: ArrayLike | None = None,
    rng: int | np.random.Generator | None = None,
    starts: int = 20,
    seconds: float | None = None,
    affine: Literal["keep", "consolidate"] = "keep",
    on_failure: Literal["raise", "return"] = "raise",
    progress: ProgressCallback | None = None,
    **options: Any,
) -> Recovery:
    """Recover the network behind samples (X, y): its weights, with a certificate, or the reason why not.

    Parameters
    ----------
    X : (n, d) array
        Inputs, one sample a row. Any continuous distribution; about 5·width·(d+1) rows for exact data.
    y : (n,) or (n, q) array
        Outputs; several outputs share one hidden layer.
    width : int, optional
        Number of hidden units; found from the data when None.
    method : {"auto", "awasthi", "zhong"}
        "auto": least squares in the sign-free form, exact. "awasthi": the tensor method of Awasthi et al. 2021, for
        ReLU with biases. "zhong": tensor start and gradient descent of Zhong et al. 2017, for homogeneous activations
        without biases and output weights ±1. Further options are passed on to those
        (:func:`relumine.methods.awasthi.recover_awasthi`, :func:`relumine.methods.zhong.recover_zhong`).
    activation : str or Activation, default "relu"
    sample_weight : (n,) array, optional
        Row weights (inverse noise variances).
    rng : int or Generator, optional
        Seed. The same seed gives the same answer.
    starts : int, default 20
        Most starts before giving up (each is another random initialisation).
    seconds : float, optional
        Time limit; when it ends the search, the status is "interrupted" and the network the best so far.
    affine : {"keep", "consolidate"}
        When the affine part v·x + c cannot be removed by signs: keep it, or write it as two more ReLU units.
    on_failure : {"raise", "return"}
        Raise :class:`RecoveryFailed` (which carries the result) or return the result with its status.
    progress : callable, optional
        Called with a :class:`relumine.results.Progress` after every step.

    Returns
    -------
    Recovery
        ``.network``, ``.status`` (with ``.advice``), ``.certificate``, ``.standard_errors``, ``.stages``, …

    Raises
    ------
    InvalidInput
        Before any long work: shapes, NaN, strings, constant or dependent inputs.
    RecoveryFailed
        The network was not recovered and ``on_failure`` is "raise". (An interrupted run returns what it has.)

    Examples
    --------
    >>> import relumine as rl
    >>> truth = rl.planted.network(d=4, m=3, rng=0)
    >>> X, y = rl.planted.sample(truth, n=120, rng=1)
    >>> found = rl.recover(X, y, width=3, rng=0)
    >>> found.status.value, rl.metrics.parameter_error(truth, found.network) < 1e-9
    ('exact', True)
    """
    sigma = activations.get(activation)
    samples = as_samples(X, y, sample_weight)
    if width is not None and (not isinstance(width, int | np.integer) or isinstance(width, bool) or width < 0):
        raise InvalidInput(f"width must be a whole number ≥ 0 or None (find it), got {width!r}")
    if not isinstance(starts, int | np.integer) or starts < 1:
        raise InvalidInput(f"starts must be a whole number, at least 1; got {starts!r}")
    if seconds is not None and not (isinstance(seconds, int | float | np.number) and seconds > 0):
        raise InvalidInput(f"seconds must be a positive number or None, got {seconds!r}")
    if affine == "consolidate" and sigma != activations.RELU:
        raise InvalidInput(f"affine='consolidate' writes v·x + c as ReLU units; the activation is {sigma.name}")
    if affine not in ("keep", "consolidate") or on_failure not in ("raise", "return"):
        raise InvalidInput("affine is 'keep' or 'consolidate'; on_failure is 'raise' or 'return'")
    try:
        generator = np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise InvalidInput(f"rng must be a whole number ≥ 0, a numpy Generator or None; got {rng!r}") from None
    width = None if width is None else int(width)
    if method == "auto":
        if options:
            raise InvalidInput(f"method='auto' does not know the option {next(iter(options))!r}")
        result = recover_auto(samples, width, sigma, rng=generator, starts=starts, seconds=seconds, progress=progress)
    elif method in _PAPERS:
        if width is None:
            raise InvalidInput(f"method={method!r} needs the width; method='auto' can find it")
        if sample_weight is not None:
            raise InvalidInput(f"method={method!r} does not take sample_weight; use method='auto'")
        try:
            result = _PAPERS[method](X, y, width, activation=sigma, rng=generator, **options)
        except TypeError as error:
            if options and "unexpected keyword argument" in str(error):
                raise InvalidInput(f"method={method!r}: {error}") from None
            raise
    else:
        raise InvalidInput(f"unknown method {method!r}; known: {', '.join(('auto', *_PAPERS))}")
    if affine == "consolidate" and (np.any(result.network.v) or np.any(result.network.c)):
        result = _consolidated(result)
    if on_failure == "raise" and not result.ok and result.status.value != "interrupted":
        raise RecoveryFailed(result)
    return result


def _consolidated(result: Recovery) -> Recovery:
    """The affine part as two more units; their parameters are not those of the fit, so standard errors end here."""
    notes = (
        *result.certificate.notes,
        "the affine part was then written as ReLU units; standard errors do not carry over",
    )
    return replace(
        result,
        network=result.network.consolidate(),
        standard_errors=None,
        units=replace(result.units, recovered=(), up_to_sign=()),
        certificate=replace(result.certificate, notes=notes),
    )
