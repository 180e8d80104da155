"""Optimal mechanisms: least loss at a given epsilon, and largest adversary error at a given loss."""

from geoind.optimal.adversary_error import (
    ErrorRange,
    GameChannel,
    min_loss_given_adversary_error,
    optimal_error_range,
)
from geoind.optimal.expost import expost
from geoind.optimal.interior import Iterate
from geoind.optimal.problem import Certificate, OptimalChannel
from geoind.optimal.universal import regret, universality_gap

__all__ = [
    "Certificate",
    "ErrorRange",
    "GameChannel",
    "Iterate",
    "OptimalChannel",
    "expost",
    "min_loss_given_adversary_error",
    "optimal_error_range",
    "regret",
    "universality_gap",
]
