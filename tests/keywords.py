"""Keyword arguments that several calls of a test share, as a type checker sees them."""

from typing import TypedDict


class Place(TypedDict):
    lat: float
    lon: float


class Together(TypedDict):
    """A promise about several reports."""

    level: float
    radius: float
    delta: float
    reports: int
