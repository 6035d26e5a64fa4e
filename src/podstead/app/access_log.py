"""Where does the access log go? To standard output, one write for each line."""

from __future__ import annotations

import contextlib
import os
from typing import Final

from podstead.config import Settings
from podstead.core.clock import Clock
from podstead.web.access_log import AccessLog
from podstead.web.request_ids import FIELD

_STANDARD_OUTPUT: Final = 1
_OFF: Final = "off"


def access_log(settings: Settings, clock: Clock) -> AccessLog | None:
    """The access log of a worker; ``None`` if it is off."""
    if settings.access_log == _OFF:
        return None
    return AccessLog(
        _write, clock=clock, form=settings.access_log, percent=settings.access_log_percent
    )


def ignored_fields(settings: Settings) -> frozenset[bytes]:
    """The header fields that the response cache leaves out of account: what proxies that are
    trusted, or that are expected by an access log, add to every request."""
    if settings.access_log == _OFF and not settings.trusted_proxies:
        return frozenset()
    return frozenset({FIELD})


def _write(line: bytes) -> None:
    # Whoever reads the log may be gone, or its disk be full; the server goes on.
    with contextlib.suppress(OSError):
        os.write(_STANDARD_OUTPUT, line)
