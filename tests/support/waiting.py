"""Waiting for what another process does: for a condition, up to a deadline that is far beyond."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from tests.support.server import DEADLINE_S

_POLL_S = 0.01


def wait_until(condition: Callable[[], bool], what: str, *, deadline_s: float = DEADLINE_S) -> None:
    """Wait until the condition holds. Raises AssertionError, naming ``what``, at the deadline."""
    until_s = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < until_s, f"not in time: {what}"
        threading.Event().wait(_POLL_S)
