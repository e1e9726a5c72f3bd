"""The evidence for a network: rows that the fit never saw, and what they prove."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relumine.results.words import counted


@dataclass(frozen=True)
class Certificate:
    """Evidence for the network, and in words what it proves and what it does not.

    Attributes
    ----------
    residual : float
        Root mean square error over the standard deviation of y, on ``rows`` rows never used in the fit.
    rows : int
        How many rows that was (0: none could be spared).
    noise : float
        Estimated standard deviation of the label noise (0 for exact data).
    condition : float
        Condition number of the scaled Gauss–Newton matrix at the answer: large means some direction in parameter
        space hardly changes the fit. NaN where it was not computed.
    confirmed : int
        How many rows (or queries) confirm the network: each could have contradicted it, and did not.
    unseen : float
        At most this share of the inputs' distribution may still differ from the network, with 95 % confidence
        (3/confirmed, the rule of three); NaN where nothing was confirmed.
    proves, does_not_prove : str
        In words.
    notes : tuple of str
        Identifiability remarks: signs, absorbed units, near-parallel units, …
    """

    residual: float
    rows: int
    noise: float = 0.0
    condition: float = float("nan")
    confirmed: int = 0
    unseen: float = float("nan")
    proves: str = ""
    does_not_prove: str = ""
    notes: tuple[str, ...] = ()

    @property
    def evidence(self) -> str:
        """How many rows confirm the network, and what that leaves open, in words; empty where nothing was counted.

        Examples
        --------
        >>> Certificate(1e-15, 20, confirmed=1078, unseen=3 / 1078).evidence
        'confirmed by 1,078 rows; at most 0.28 % of inputs like these may still differ (95 %)'
        """
        if self.confirmed < 1:
            return ""
        open_share = f"; at most {100.0 * self.unseen:.2g} % of inputs like these may still differ (95 %)"
        rows = counted(self.confirmed, "row")
        return f"confirmed by {rows}" + (open_share if self.unseen < 1.0 else "")

    def __str__(self) -> str:
        return self.told()

    def told(self, message: str = "") -> str:
        """The evidence in words, without the figures that a ``message`` above it has given.

        Examples
        --------
        >>> print(Certificate(1e-15, 20, condition=46.0).told("1 unit; error 1.0e-15 of the spread of y on 20 rows."))
        condition of the fit 46
        """
        lines = []
        if np.isfinite(self.residual) and "of the spread of y on " not in message:
            rows = counted(self.rows, "row")
            lines.append(f"error on unseen rows {self.residual:.3g} of the spread of y, on {rows} kept out of the fit")
        lines += [self.evidence] if self.evidence else []
        if self.noise > 0.0 and "noise of standard deviation " not in message:
            lines.append(f"standard deviation of what is left {self.noise:.3g}, on the scale of y")
        if np.isfinite(self.condition):
            lines.append(f"condition of the fit {self.condition:.2g}")
        lines += [f"proves: {self.proves}"] if self.proves else []
        lines += [f"does not prove: {self.does_not_prove}"] if self.does_not_prove else []
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])
