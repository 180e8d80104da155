"""Optimal mechanisms: two linear programs, solved exactly."""

from geoind.optimal.certificate import Certificate, OptimalChannel
from geoind.optimal.interior import Iterate
from geoind.optimal.least_loss import min_loss_given_epsilon

__all__ = ["Certificate", "Iterate", "OptimalChannel", "min_loss_given_epsilon"]
