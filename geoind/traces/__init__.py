"""A person who moves: sessions over time, and what somebody learns who sees every report."""

from geoind.traces.adversary import most_likely_path
from geoind.traces.attacks import average, home_beliefs, middle, most_likely_places, smooth
from geoind.traces.audit import Answering, TraceAudit, audit_traces
from geoind.traces.cached import LOCATION_GUARD, Cached
from geoind.traces.commuter import commuter
from geoind.traces.guarded import GuardedPlace, Run
from geoind.traces.methods import Independent, Predictive
from geoind.traces.mobility import LearnedMobility
from geoind.traces.predictors import last_report, straight_on
from geoind.traces.rationed import Rationed
from geoind.traces.session import Past, TraceMethod, TraceSession
from geoind.traces.sparse import SparseVector
from geoind.traces.store import SessionStore
from geoind.traces.switching import Switching
from geoind.traces.table import ObfuscatedTraces, obfuscate_traces
from geoind.traces.zones import PrivateZone

__all__ = [
    "LOCATION_GUARD",
    "Answering",
    "Cached",
    "GuardedPlace",
    "Independent",
    "LearnedMobility",
    "ObfuscatedTraces",
    "Past",
    "Predictive",
    "PrivateZone",
    "Rationed",
    "Run",
    "SessionStore",
    "SparseVector",
    "Switching",
    "TraceAudit",
    "TraceMethod",
    "TraceSession",
    "audit_traces",
    "average",
    "commuter",
    "home_beliefs",
    "last_report",
    "middle",
    "most_likely_path",
    "most_likely_places",
    "obfuscate_traces",
    "smooth",
    "straight_on",
]
