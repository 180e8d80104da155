"""Privacy budgets: the ledger, its database, and the same report for the same place."""

import lazy_loader

# Names load their modules when they are first used; `__init__.pyi` lists them.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
