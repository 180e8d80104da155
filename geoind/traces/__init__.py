"""A person who moves: sessions over time, and what somebody learns who sees every report."""

from geoind.traces.audit import TraceAudit, audit_traces
from geoind.traces.methods import Independent, Predictive, SparseVector, last_report, straight_on
from geoind.traces.session import GuardedPlace, Past, TraceMethod, TraceSession

__all__ = [
    "GuardedPlace",
    "Independent",
    "Past",
    "Predictive",
    "SparseVector",
    "TraceAudit",
    "TraceMethod",
    "TraceSession",
    "audit_traces",
    "last_report",
    "straight_on",
]
