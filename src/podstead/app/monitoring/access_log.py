"""Writes the access log to standard output, one write for each line."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from functools import partial
from typing import Final

from podstead.app.monitoring.tracing import TRACE_FIELDS, tracing_is_wanted
from podstead.config import Settings
from podstead.core.clock import Clock
from podstead.web.access_log import AccessLog, LoggedApplication
from podstead.web.application import Application
from podstead.web.request_ids import FIELD

_STANDARD_OUTPUT: Final = 1
_OFF: Final = "off"


def application_class(settings: Settings, clock: Clock) -> Callable[..., Application]:
    """What makes the application of a worker from its parts, with an access log if it is on."""
    if settings.access_log == _OFF:
        return Application
    log = AccessLog(
        _write, clock=clock, form=settings.access_log, percent=settings.access_log_percent
    )
    return partial(LoggedApplication, log)


def ignored_fields(settings: Settings) -> frozenset[bytes]:
    """The header fields that the response cache leaves out of account: what proxies that are
    trusted, or that are expected by an access log or by traces, add to every request."""
    traces = TRACE_FIELDS if tracing_is_wanted() else frozenset()
    if settings.access_log == _OFF and not settings.trusted_proxies:
        return traces
    return traces | {FIELD}


def _write(line: bytes) -> None:
    # Whoever reads the log may be gone, or its disk be full; the server goes on.
    with contextlib.suppress(OSError):
        os.write(_STANDARD_OUTPUT, line)
