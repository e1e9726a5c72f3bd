"""What confirms an extracted network: fresh rows that could have contradicted it, and where lines looked for kinks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relumine.extraction.chosen import Chosen
from relumine.extraction.lines import Ask
from relumine.extraction.polish import Signed
from relumine.extraction.sampling import Domain
from relumine.fit.leverage import unseen_share
from relumine.network import Network
from relumine.results import Certificate, Predictions, Status, Units, counted
from relumine.run import Run

Array = NDArray[np.float64]

__all__ = ["CONFIRM", "certify", "known_units"]

CONFIRM = 300  # fresh random rows: at most 1 % of the inputs may then differ, with 95 % confidence
_EXACT = 1e-9  # relative error of a prediction that is rounding, as in the fit


def certify(
    ask: Ask, net: Network, state: Chosen, domain: Domain, run: Run
) -> tuple[Certificate, Status, str, Predictions]:
    """Ask fresh rows; the status follows from them alone.

    ``net``: in the user's coordinates, with (q, m) output weights; ``ask`` answers in standard ones. The random rows of
    the last look, which the network has not seen either, are among them.
    """
    looked = domain.draw(run.rng, 0) if state.fresh is None else state.fresh[:CONFIRM]
    Z = np.vstack([looked, domain.draw(run.rng, CONFIRM - len(looked))])
    y, predicted = ask(Z), net(domain.rows(Z))
    spread = np.maximum(y.std(axis=0), np.finfo(float).tiny)
    allowed = _EXACT * spread + 100.0 * state.noise(float(domain.d) ** 0.25)
    wrong = int((np.abs(y - predicted) > allowed).any(axis=1).sum())
    residual = float((np.sqrt(np.mean((y - predicted) ** 2, axis=0)) / spread).max())
    searched = len(state.lines)
    far = domain.scale.max() * max(abs(end) for line in state.lines for end in line.reach)
    where = (
        f"along {searched} line{'s' * (searched > 1)} inside the range"
        if domain.limited
        else f"along {searched} line{'s' * (searched > 1)}, up to {far:.0e} from the centre"
    )
    if wrong:
        status = Status.NOT_RECOVERED
        word = f"{wrong} of {CONFIRM} fresh random rows contradict the network of {net.m} units."
    elif state.rough:
        word = (
            f"{counted(net.m, 'unit')}; the relative error {residual:.1e} on {CONFIRM} fresh rows is the rounding of "
            f"the answers (they have about {-np.log10(state.noise.relative):.0f} digits), and parameters are known no "
            "better than that."
        )
        status = Status.NOISY
    else:
        status, word = (
            Status.EXACT,
            f"{counted(net.m, 'unit')}; relative error {residual:.1e} on {CONFIRM} fresh random rows.",
        )
    confirmed = 0 if wrong else CONFIRM
    certificate = Certificate(
        residual=residual,
        rows=CONFIRM,
        noise=float(np.linalg.norm(state.noise.level)) if state.rough else 0.0,
        confirmed=confirmed,
        unseen=unseen_share(confirmed) if confirmed else float("nan"),
        proves=""
        if wrong
        else f"{confirmed} fresh random rows, each free to contradict the network, agree with it, and so do "
        f"{state.between} others beyond and between its kinks on a fresh line",
        does_not_prove=f"anything about kinks that were not looked for: they were looked for {where}",
    )
    return certificate, status, word, Predictions(y, predicted)


def known_units(status: Status, signs: Signed, width: int | None) -> Units:
    """Which units are known with their sign."""
    if not status.ok:
        return Units()
    m = len(signs.open)
    word = f"{(width or 0) - m} of {width} units: none with a kink of its own was found"
    absorbed = (word,) if width is not None and m < width else ()
    return Units(tuple(np.flatnonzero(~signs.open).tolist()), tuple(np.flatnonzero(signs.open).tolist()), absorbed)
