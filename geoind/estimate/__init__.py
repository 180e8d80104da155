"""Estimation of a population from private reports."""

from geoind.estimate.bootstrap import Intervals, bootstrap_intervals
from geoind.estimate.inversion import invert_population
from geoind.estimate.outputs import check_output, draw_population, heat_layer, population_frame, save_population
from geoind.estimate.population import PopulationEstimate
from geoind.estimate.quality import earth_movers_distance, hotspots_found, total_variation

__all__ = [
    "Intervals",
    "PopulationEstimate",
    "bootstrap_intervals",
    "check_output",
    "draw_population",
    "earth_movers_distance",
    "heat_layer",
    "hotspots_found",
    "invert_population",
    "population_frame",
    "save_population",
    "total_variation",
]
