"""The one kind of array in the package: double precision. Other kinds are spelled out where they are needed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
