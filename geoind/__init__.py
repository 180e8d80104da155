"""Location privacy with a proof: geo-indistinguishability for backends, data teams and researchers."""

from geoind import distances
from geoind.audit import AuditResult, audit
from geoind.channel import Channel, TightEpsilon, tight_epsilon
from geoind.channels import cloaking, exponential, planar_geometric, randomised_response
from geoind.composition import compose
from geoind.discretise import discretise
from geoind.dummies import Dummies
from geoind.errors import (
    BudgetExceededError,
    GeoindError,
    InfeasibleError,
    InvalidInputError,
    LedgerError,
    NotStochasticError,
    SitesMismatchError,
    SolverError,
)
from geoind.estimate import PopulationEstimate, bootstrap_intervals, estimate_population, invert_population
from geoind.evaluation import PAPER_SETTING, compare
from geoind.gaussian import PlanarGaussian
from geoind.laplace import PlanarLaplace
from geoind.lattice import snap_lonlat
from geoind.lbs import Nearest, PrivateQuery, private_query, retrieval_radius
from geoind.ledger import Charge, Ledger
from geoind.line_channels import geometric, linear_laplace
from geoind.mechanism import Mechanism, PostProcessed, Projected
from geoind.metrics import (
    adversary_error,
    bayes_risk,
    bayes_vulnerability,
    distance_gain,
    expected_gain,
    expected_loss,
    identity_gain,
    loss_quantile,
    min_entropy_leakage,
    mutual_information,
    posterior_entropy,
    worst_case_loss,
)
from geoind.nearby import PointsOfInterest, corridor
from geoind.optimal import (
    Certificate,
    GameChannel,
    OptimalChannel,
    expost,
    max_adversary_error_given_loss,
    min_loss_given_adversary_error,
    min_loss_given_epsilon,
    near_optimal_given_epsilon,
    optimal_error_range,
)
from geoind.overhead import Overhead, overhead, overhead_table, plot_retrieval_radius
from geoind.pipeline import Location, epsilon_for, obfuscate, obfuscate_lonlat
from geoind.posterior_remap import PosteriorRemap
from geoind.precision import corrected_epsilon, guarantee_of_noise
from geoind.priors import Prior
from geoind.projection import Projection
from geoind.randomness import KeyedRandomness
from geoind.region import ClosestIn
from geoind.remap import bayes_remap
from geoind.same_place import SamePlace
from geoind.sites import Grid, Places
from geoind.sphere import SphericalLaplace
from geoind.synthetic import synthetic_city
from geoind.version import __version__

__all__ = [
    "PAPER_SETTING",
    "AuditResult",
    "BudgetExceededError",
    "Certificate",
    "Channel",
    "Charge",
    "ClosestIn",
    "Dummies",
    "GameChannel",
    "GeoindError",
    "Grid",
    "InfeasibleError",
    "InvalidInputError",
    "KeyedRandomness",
    "Ledger",
    "LedgerError",
    "Location",
    "Mechanism",
    "Nearest",
    "NotStochasticError",
    "OptimalChannel",
    "Overhead",
    "Places",
    "PlanarGaussian",
    "PlanarLaplace",
    "PointsOfInterest",
    "PopulationEstimate",
    "PostProcessed",
    "PosteriorRemap",
    "Prior",
    "PrivateQuery",
    "Projected",
    "Projection",
    "SamePlace",
    "SitesMismatchError",
    "SolverError",
    "SphericalLaplace",
    "TightEpsilon",
    "__version__",
    "adversary_error",
    "audit",
    "bayes_remap",
    "bayes_risk",
    "bayes_vulnerability",
    "bootstrap_intervals",
    "cloaking",
    "compare",
    "compose",
    "corrected_epsilon",
    "corridor",
    "discretise",
    "distance_gain",
    "distances",
    "epsilon_for",
    "estimate_population",
    "expected_gain",
    "expected_loss",
    "exponential",
    "expost",
    "geometric",
    "guarantee_of_noise",
    "identity_gain",
    "invert_population",
    "linear_laplace",
    "loss_quantile",
    "max_adversary_error_given_loss",
    "min_entropy_leakage",
    "min_loss_given_adversary_error",
    "min_loss_given_epsilon",
    "mutual_information",
    "near_optimal_given_epsilon",
    "obfuscate",
    "obfuscate_lonlat",
    "optimal_error_range",
    "overhead",
    "overhead_table",
    "planar_geometric",
    "plot_retrieval_radius",
    "posterior_entropy",
    "private_query",
    "randomised_response",
    "retrieval_radius",
    "snap_lonlat",
    "synthetic_city",
    "tight_epsilon",
    "worst_case_loss",
]
