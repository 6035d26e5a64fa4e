"""How long does a start wait for what a server that was just killed still holds?

Its workers end when they notice, and only then are the port and the data root free.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

RETRY_TIMEOUT_S = 1.0
_RETRY_S = 0.02


def retry_while_busy(attempt: Callable[[], T], *, is_busy: Callable[[Exception], bool]) -> T:
    """What ``attempt`` returns, tried again for :data:`RETRY_TIMEOUT_S` seconds while it raises an
    exception that ``is_busy``; then that exception, and any other at once."""
    give_up_s = time.monotonic() + RETRY_TIMEOUT_S
    while True:
        try:
            return attempt()
        except Exception as error:
            if not is_busy(error) or time.monotonic() > give_up_s:
                raise
        time.sleep(_RETRY_S)
