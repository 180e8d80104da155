"""Elementary functions, the same ones for single numbers (`math`) and for arrays (numpy)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from geoind.arrays import FloatArray

__all__ = ["ARRAYS", "SCALARS", "Functions", "Number"]

Number = TypeVar("Number", float, FloatArray)


@dataclass(frozen=True)
class Functions(Generic[Number]):
    """The same mathematics from `math` or from numpy."""

    sin: Callable[[Number], Number]
    cos: Callable[[Number], Number]
    tan: Callable[[Number], Number]
    sqrt: Callable[[Number], Number]
    log: Callable[[Number], Number]
    angle: Callable[[Number, Number], Number]


def _angle(y: FloatArray, x: FloatArray) -> FloatArray:
    # numpy's arctan is faster than its arctan2. Which of them a block takes changes no report: where they could
    # differ, doubles do not decide (docs/exact-draws.md).
    return np.arctan(y / x) if x.size and x.min() > 0 else np.arctan2(y, x)


SCALARS = Functions[float](math.sin, math.cos, math.tan, math.sqrt, math.log, math.atan2)
ARRAYS = Functions[FloatArray](np.sin, np.cos, np.tan, np.sqrt, np.log, _angle)
