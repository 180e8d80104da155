"""The cost of many reports together: levels up to a probability delta, and mechanisms for many reports."""

import lazy_loader

# Names load their modules when they are first used; `__init__.pyi` lists them.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
