"""trasgodp in the comparison: a data frame of latitudes and longitudes."""

import numpy as np
import pandas as pd
from trasgodp.geoindis import metric_privacy
from trasgodp.geoindis._geo_metric_privacy import _geo_indistinguishability


def sample(lonlat: np.ndarray | list[list[float]], epsilon: float) -> pd.DataFrame:
    """Return reports for many places at once."""
    frame = pd.DataFrame(lonlat, columns=["lon", "lat"])
    reports: pd.DataFrame = metric_privacy(frame, "lat", "lon", epsilon)
    return reports


def one(lon: float, lat: float, epsilon: float) -> pd.DataFrame:
    """Return a report for one place: a data frame of one row, the only public way."""
    return sample([[lon, lat]], epsilon)


def reports(lon: float, lat: float, count: int, epsilon: float) -> np.ndarray:
    """Return independent reports of one place.

    The public function gives equal places equal noise, and the same noise in each call (seed=42); its inner
    function is drawn from with fresh randomness instead, to see the noise itself at its best.
    """
    np.random.seed(None)  # noqa: NPY002
    drawn = [_geo_indistinguishability(lat, lon, epsilon) for _ in range(count)]
    return np.array([(lon, lat) for lat, lon, _ in drawn])


def repeats() -> bool:
    """Return whether two calls with default arguments give the same noise."""
    return one(2.0, 48.0, 0.01).equals(one(2.0, 48.0, 0.01))
