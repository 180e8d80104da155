"""A setting that is compared in a second."""

import numpy as np

from geoind import Grid
from geoind.evaluation import Setting

SMALL = Setting(
    Grid(0, 0, cell=100, columns=6, rows=3),
    weights={"uniform": np.ones(18), "left zone": [1, 1, 1, 0, 0, 0] * 3},
)
