"""Tables of traces: who was where when, answered by a session per person."""

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Literal

from geoind.errors import InvalidInputError
from geoind.mechanisms.protocol import Mechanism
from geoind.mechanisms.spherical import SphericalLaplace
from geoind.space.lattice import DECIMALS

if TYPE_CHECKING:
    from geoind.traces.session import TraceMethod

__all__ = ["METHODS", "MethodName", "described", "method_of"]

MethodName = Literal["switching", "sparse", "predictive", "independent"]
METHODS: tuple[MethodName, ...] = ("switching", "sparse", "predictive", "independent")

CONFIDENCE = 0.9
"""A fresh report lies with this probability within the metres for which methods are made."""


def described(value: object) -> str:
    """Return a method and its numbers, for the record of a release."""
    if is_dataclass(value) and not isinstance(value, type):
        inside = (f"{field.name}={described(getattr(value, field.name))}" for field in fields(value))
        return f"{type(value).__name__}({', '.join(inside)})"
    if isinstance(value, (int, float)):
        return repr(value)
    # A function's own text would have its address in it.
    name = str(getattr(value, "__name__", ""))
    return name if name.isidentifier() else type(value).__name__


def method_of(method: "MethodName | TraceMethod | None", mechanism: Mechanism) -> "TraceMethod":
    """Return how the sessions of a table answer whose fresh reports a mechanism draws.

    Examples
    --------
    >>> method_of("independent", SphericalLaplace(0.01))
    Independent(epsilon=0.01)
    """
    if not isinstance(mechanism, SphericalLaplace):
        raise InvalidInputError(
            "a session needs noise on the globe with an epsilon: give `epsilon=`, or `level=` and `radius=`"
        )
    if mechanism.decimals != DECIMALS:
        raise InvalidInputError(f"a session reports with {DECIMALS} decimals, not {mechanism.decimals}")
    return _named(method or "switching", mechanism) if method is None or isinstance(method, str) else method


def _named(name: str, mechanism: SphericalLaplace) -> "TraceMethod":
    from geoind.traces.methods import Independent, Predictive
    from geoind.traces.sparse import SparseVector
    from geoind.traces.switching import Switching

    if name == "independent":
        return Independent(mechanism.epsilon)
    metres = float(mechanism.radius_quantile(CONFIDENCE))
    if name == "predictive":
        made = Predictive.for_any_accuracy(metres, CONFIDENCE)
        return Predictive(made.test, mechanism.epsilon, made.limit)
    epsilon = mechanism.epsilon
    sparse = SparseVector(epsilon, epsilon, 3 * metres, epsilon / 2)
    if name == "sparse":
        return sparse
    if name == "switching":
        return Switching(sparse)
    raise InvalidInputError(f"`method=` must be one of {', '.join(METHODS)}, or a TraceMethod, got {name!r}")
