"""Maps that need no network: files of reports, estimated populations, and folium maps of your own."""

import lazy_loader

# Names load their modules when they are first used; `__init__.pyi` lists them.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
