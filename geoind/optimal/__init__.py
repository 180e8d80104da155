"""Optimal mechanisms: two linear programs, solved exactly."""

from geoind.optimal.certificate import Certificate, OptimalChannel
from geoind.optimal.expost import expost
from geoind.optimal.game.adversary_error import (
    ErrorRange,
    GameChannel,
    min_loss_given_adversary_error,
    optimal_error_range,
)
from geoind.optimal.least_loss.effort import Effort, Iterate
from geoind.optimal.least_loss.optimum import near_optimal_given_epsilon
from geoind.optimal.universal import regret, universality_gap

__all__ = [
    "Certificate",
    "Effort",
    "ErrorRange",
    "GameChannel",
    "Iterate",
    "OptimalChannel",
    "expost",
    "min_loss_given_adversary_error",
    "near_optimal_given_epsilon",
    "optimal_error_range",
    "regret",
    "universality_gap",
]
