"""How many random trials a test makes."""

import os

__all__ = ["trials"]


def trials(count: int) -> int:
    """Return all of so many trials, or the share that GEOIND_TRIALS asks for.

    The fast tests make a fifth. CI makes all of them on one Python: random draws do not depend on the interpreter.
    """
    return max(1, round(count * float(os.environ.get("GEOIND_TRIALS", "1"))))
