"""What the page may ask for: the parts that all tabs share."""

import math

from pydantic import BaseModel, ConfigDict, Field

from geoind import SphericalLaplace, epsilon_for

__all__ = ["MAX_SEED", "Ask", "Point", "Privacy", "Promised"]

MAX_SEED = 2**53 - 1
"""Largest whole number that JavaScript counts exactly."""


class Ask(BaseModel):
    """A request: unknown names, infinities and not-a-number are refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Point(Ask):
    """A place in degrees."""

    lat: float = Field(ge=-90, le=90, description="Latitude in degrees")
    lon: float = Field(ge=-180, le=180, description="Longitude in degrees")


class Promised(BaseModel):
    """What every answer says about the privacy that was asked for."""

    epsilon: float = Field(description="Privacy loss per metre")
    mean_error: float = Field(description="Average distance between truth and report, in metres")
    sentence: str = Field(description="The promise in words")


class Privacy(Ask):
    """How much privacy: epsilon = ln(factor) / radius."""

    factor: float = Field(
        4.0, ge=1.1, le=100, description="The odds between places within the radius change by this factor at most"
    )
    radius: float = Field(100.0, ge=10, le=2000, description="The radius of the promise, in metres")

    @property
    def noise(self) -> SphericalLaplace:
        """The mechanism that keeps this promise."""
        return SphericalLaplace(epsilon_for(math.log(self.factor), self.radius))

    @property
    def promise(self) -> Promised:
        """What it means."""
        noise = self.noise
        return Promised(
            epsilon=noise.epsilon,
            mean_error=noise.mean_radius,
            sentence=f"Between two places up to {self.radius:g} m apart, a report changes an observer's odds "
            f"by a factor of {self.factor:g} at most.",
        )
