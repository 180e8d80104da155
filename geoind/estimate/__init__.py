"""From private reports back to the population."""

from geoind.estimate.population import PopulationEstimate, estimate_population

__all__ = ["PopulationEstimate", "estimate_population"]
