"""Location privacy with a proof: geo-indistinguishability for backends, data teams and researchers."""

from geoind import distances
from geoind.channel import Channel, tight_epsilon
from geoind.errors import (
    BudgetExceededError,
    GeoindError,
    InfeasibleError,
    InvalidInputError,
    NotStochasticError,
    SitesMismatchError,
    SolverError,
)
from geoind.laplace import PlanarLaplace
from geoind.lattice import snap_lonlat
from geoind.mechanism import Mechanism, PostProcessed, Projected
from geoind.pipeline import Location, epsilon_for, obfuscate, obfuscate_lonlat
from geoind.precision import corrected_epsilon, guarantee_of_noise
from geoind.priors import Prior
from geoind.projection import Projection
from geoind.randomness import KeyedRandomness
from geoind.region import ClosestIn
from geoind.sites import Grid, Places
from geoind.sphere import SphericalLaplace
from geoind.synthetic import synthetic_city
from geoind.version import __version__

__all__ = [
    "BudgetExceededError",
    "Channel",
    "ClosestIn",
    "GeoindError",
    "Grid",
    "InfeasibleError",
    "InvalidInputError",
    "KeyedRandomness",
    "Location",
    "Mechanism",
    "NotStochasticError",
    "Places",
    "PlanarLaplace",
    "PostProcessed",
    "Prior",
    "Projected",
    "Projection",
    "SitesMismatchError",
    "SolverError",
    "SphericalLaplace",
    "__version__",
    "corrected_epsilon",
    "distances",
    "epsilon_for",
    "guarantee_of_noise",
    "obfuscate",
    "obfuscate_lonlat",
    "snap_lonlat",
    "synthetic_city",
    "tight_epsilon",
]
