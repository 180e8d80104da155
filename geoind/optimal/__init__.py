"""Optimal mechanisms: two linear programs, solved exactly."""

from geoind.optimal.certificate import Certificate, OptimalChannel
from geoind.optimal.expost import expost
from geoind.optimal.interior import Iterate
from geoind.optimal.least_loss import min_loss_given_epsilon, near_optimal_given_epsilon
from geoind.optimal.shokri import (
    ErrorRange,
    GameChannel,
    max_adversary_error_given_loss,
    min_loss_given_adversary_error,
    optimal_error_range,
)

__all__ = [
    "Certificate",
    "ErrorRange",
    "GameChannel",
    "Iterate",
    "OptimalChannel",
    "expost",
    "max_adversary_error_given_loss",
    "min_loss_given_adversary_error",
    "min_loss_given_epsilon",
    "near_optimal_given_epsilon",
    "optimal_error_range",
]
