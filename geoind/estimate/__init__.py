"""Estimation of a population from private reports."""

from geoind.estimate.bootstrap import bootstrap_intervals
from geoind.estimate.grids import grid_over
from geoind.estimate.inversion import invert_population
from geoind.estimate.population import PopulationEstimate
from geoind.estimate.quality import earth_movers_distance, hotspots_found, total_variation

__all__ = [
    "PopulationEstimate",
    "bootstrap_intervals",
    "earth_movers_distance",
    "grid_over",
    "hotspots_found",
    "invert_population",
    "total_variation",
]
