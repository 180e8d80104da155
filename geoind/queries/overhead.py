"""The overhead of a private query: how much more is retrieved than needed, for choosing epsilon and confidence.

It uses the textbook's radius (`retrieval_radius`); that of `private_query` is about one per cent wider.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.spatial import cKDTree

from geoind.arrays import ArrayLike, FloatArray, as_count, as_lonlat
from geoind.distances import EARTH_RADIUS
from geoind.errors import InvalidInputError
from geoind.extras import require
from geoind.mechanisms.protocol import RandomnessLike, as_randomness
from geoind.mechanisms.spherical import SphericalLaplace
from geoind.queries.private_query import retrieval_radius

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["overhead", "overhead_table", "plot_retrieval_radius"]

LEVELS = (math.log(2), math.log(4), math.log(6), math.log(8), math.log(10))
CONFIDENCES = (0.5, 0.75, 0.9, 0.95, 0.99)
EPSILONS = tuple(level / 200 for level in LEVELS)
"""The levels ln 2 to ln 10 within 200 metres."""


def overhead(
    radius: float,
    confidence: float,
    epsilon: float,
    *,
    places: ArrayLike | None = None,
    users: ArrayLike | None = None,
    draws: int = 2000,
    rng: RandomnessLike = 0,
) -> dict[str, float]:
    """Return how much more is retrieved than needed.

    Parameters
    ----------
    radius : float
        Radius of the area of interest, in metres.
    confidence : float
        Probability that nothing is missed.
    epsilon : float
        Privacy loss per metre.
    places : (n, 2) lon/lat, optional
        The places of the service: results are then counted as well.
    users : (m, 2) lon/lat, optional
        Locations of users; by default those of the places.
    draws : int
        Number of simulated queries, from users picked at random.
    rng : RandomnessLike
        A seed: this is a simulation.

    Returns
    -------
    dict
        `retrieval_radius` in metres; `area_factor`, the area of retrieval over the area of interest: the traffic,
        where places are evenly spread; `extra_area`, the square metres retrieved outside the area of interest;
        with places also `results` and `extra_results`, the expected number of places in the area of interest, and
        of other retrieved places.

    Examples
    --------
    >>> price = overhead(300, 0.95, math.log(4) / 200)
    >>> round(price["retrieval_radius"], 1), round(price["area_factor"], 1)
    (984.4, 10.8)
    """
    retrieved = retrieval_radius(radius, confidence, epsilon)
    price = {
        "retrieval_radius": retrieved,
        "area_factor": (retrieved / radius) ** 2,
        "extra_area": math.pi * (retrieved**2 - radius**2),
    }
    if places is None:
        return price
    spots = as_lonlat(places, "places")
    askers = spots if users is None else as_lonlat(users, "users")
    if not len(spots) or not len(askers):
        raise InvalidInputError("places and users must not be empty")
    source = as_randomness(rng, as_count(draws, "draws"))
    words = source.words(np.zeros((draws, 2)), 1, "overhead users")[:, 0]
    truth = askers[(words % np.uint64(len(askers))).astype(np.int64)]
    reports = SphericalLaplace(epsilon).sample(truth, rng=source)
    results = float(_count(spots, truth, radius).mean())
    return price | {"results": results, "extra_results": float(_count(spots, reports, retrieved).mean()) - results}


def overhead_table(
    radius: float, *, confidences: Sequence[float] = CONFIDENCES, epsilons: Sequence[float] = EPSILONS
) -> "pd.DataFrame":
    """Return radius and area factor for each epsilon and confidence, one row per pair.

    Examples
    --------
    >>> table = overhead_table(300, confidences=[0.95], epsilons=[math.log(4) / 200])
    >>> table.round(3).to_dict("records")
    [{'epsilon': 0.007, 'confidence': 0.95, 'retrieval_radius': 984.395, 'area_factor': 10.767}]
    """
    rows = []
    for epsilon in epsilons:
        for confidence in confidences:
            price = overhead(radius, confidence, epsilon)
            rows.append((epsilon, confidence, price["retrieval_radius"], price["area_factor"]))
    return pd.DataFrame(rows, columns=["epsilon", "confidence", "retrieval_radius", "area_factor"])


def plot_retrieval_radius(
    radius: float, *, epsilons: Sequence[float] = EPSILONS, confidences: Sequence[float] = CONFIDENCES
) -> "Figure":
    """Return a figure of the radius to send against confidence, a line per epsilon, and against epsilon.

    Examples
    --------
    >>> len(plot_retrieval_radius(300).axes)
    2
    """
    require("the figure of the retrieval radius", "matplotlib")
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    figure = Figure(figsize=(11, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    steps = np.linspace(0.05, 0.995, 200)
    for epsilon in epsilons:
        line = [retrieval_radius(radius, confidence, epsilon) for confidence in steps]
        left.plot(steps, line, label=f"{epsilon:.4g} per metre")
    left.set(xlabel="confidence", ylabel=f"radius to send for {radius:g} m (metres)", xlim=(0, 1))
    left.legend(title="epsilon")
    range_of_epsilon = np.geomspace(min(epsilons) / 2, max(epsilons) * 2, 200)
    for confidence in confidences:
        line = [retrieval_radius(radius, confidence, epsilon) for epsilon in range_of_epsilon]
        right.plot(range_of_epsilon, line, label=f"{confidence:g}")
    right.set(xlabel="epsilon (per metre)", xscale="log", yscale="log")
    right.legend(title="confidence")
    for axis in (right.xaxis, right.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_formatter(NullFormatter())
    for axes in (left, right):
        axes.axhline(radius, color="grey", linestyle=":", linewidth=1)
        axes.grid(visible=True, which="both", alpha=0.25)
    return figure


def _count(places: FloatArray, centres: FloatArray, radius: float) -> FloatArray:
    """Return how many places lie within a great-circle radius of each centre."""
    chord = 2 * math.sin(min(radius / EARTH_RADIUS, math.pi) / 2)
    counted = cKDTree(_on_sphere(places)).query_ball_point(_on_sphere(centres), chord, return_length=True)
    return np.asarray(counted, dtype=np.float64)


def _on_sphere(lonlat: FloatArray) -> FloatArray:
    lon, lat = np.radians(lonlat).T
    return np.column_stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])
