"""Where things are: projections, sites, cells. The only folder that imports pyproj."""

import lazy_loader

# Names load their modules when they are first used; `__init__.pyi` lists them.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
