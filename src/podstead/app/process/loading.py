"""Loads modules that stay for the life of the process, without garbage collection."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collection() -> Iterator[None]:
    """Suspend the garbage collector while modules are loaded.

    What is loaded stays, so a collection finds nothing, and visiting the growing number of objects
    again and again would add a tenth to the time of a start.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
