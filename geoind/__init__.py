"""Location privacy with a proof: geo-indistinguishability for backends, data teams and researchers."""

from importlib import import_module

import lazy_loader

SUBJECTS = (
    "accounting",
    "audits",
    "budgets",
    "channels",
    "curator",
    "distances",
    "errors",
    "estimate",
    "evaluation",
    "files",
    "maps",
    "mechanisms",
    "optimal",
    "queries",
    "space",
    "tables",
    "traces",
)
"""The submodules that hold the names that are not here."""

# Names load their modules when they are first used; `__init__.pyi` lists them.
_name, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    return import_module(f"geoind.{name}") if name in SUBJECTS else _name(name)
