"""privkit in the comparison: latitudes and longitudes through Earth-centred coordinates."""

import numpy as np
import pandas as pd
from privkit.data import LocationData
from privkit.ppms import PlanarLaplace


def sample(lonlat: np.ndarray, epsilon: float) -> object:
    """Return reports for many places through its data type."""
    data = LocationData()
    data.data = pd.DataFrame({"lat": lonlat[:, 1], "lon": lonlat[:, 0]})
    return PlanarLaplace(epsilon).execute(data)


def one(lon: float, lat: float, epsilon: float) -> tuple[float, ...]:
    """Return a report for one place."""
    report: tuple[float, ...] = PlanarLaplace(epsilon).get_obfuscated_point(lat, lon)
    return report


def reports(lon: float, lat: float, count: int, epsilon: float) -> np.ndarray:
    """Return independent reports of one place."""
    mechanism = PlanarLaplace(epsilon)
    drawn = [mechanism.get_obfuscated_point(lat, lon) for _ in range(count)]
    return np.array([(lon, lat) for lat, lon, _ in drawn])


def repeats() -> bool:
    """Return whether two calls with default arguments give the same noise."""
    return one(2.0, 48.0, 0.01) == one(2.0, 48.0, 0.01)
