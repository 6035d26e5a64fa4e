"""Tries again while a killed server still holds a port or the data root.

Its workers release them when they notice that the server has ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

RETRY_TIMEOUT_S = 1.0
_RETRY_S = 0.02


def retry_while_busy(attempt: Callable[[], T], *, is_busy: Callable[[Exception], bool]) -> T:
    """The result of ``attempt``. While it raises an exception that ``is_busy``, it is tried again
    for :data:`RETRY_TIMEOUT_S` seconds; then that exception is raised, and any other
    immediately."""
    give_up_s = time.monotonic() + RETRY_TIMEOUT_S
    while True:
        try:
            return attempt()
        except Exception as error:
            if not is_busy(error) or time.monotonic() > give_up_s:
                raise
        time.sleep(_RETRY_S)
