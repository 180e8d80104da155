"""Work that needs a thread of its own: the browser's tests keep an event loop in the main one."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


def apart(function: Callable[..., Result], *arguments: object) -> Result:
    """Return what the function returns, from another thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *arguments).result()
