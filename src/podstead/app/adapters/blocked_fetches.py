"""Who tries to make this server send requests to its own network? Logged for the operator (A-184).

A stranger can name any URL in a token, an access rule or a document, and the guard of outgoing
requests refuses those of this network. Each host is logged once an hour, because every request may
name it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final
from urllib.parse import urlsplit

from podstead.core.caches import ExpiringCache
from podstead.core.clock import Clock
from podstead.idp.audit import Audit, AuditEvent
from podstead.outbound.errors import Refusal, Refused

NOTED_AGAIN_AFTER_MS: Final = 3_600_000
_MAX_PLACES: Final = 1024
_MAX_HOST_CHARACTERS: Final = 253

_BLOCKS: Final = frozenset({Refusal.HOST, Refusal.PORT, Refusal.ADDRESS})
"""The refusals because of where a URL leads; the others are about its form."""


class BlockedFetches:
    """Logs blocked requests."""

    def __init__(self, audit: Audit, clock: Clock) -> None:
        self._audit = audit
        self._clock = clock
        self._noted: ExpiringCache[tuple[str, Refusal], int] = ExpiringCache(max_weight=_MAX_PLACES)

    @contextmanager
    def noting(self, url: str) -> Iterator[None]:
        """Log the request made within the context if it is refused because of where the URL, or a
        redirect from it, leads."""
        try:
            yield
        except Refused as refused:
            if refused.refusal in _BLOCKS:
                self._note(_host_of(url), refused.refusal)
            raise

    def _note(self, host: str, refusal: Refusal) -> None:
        now_ms = self._clock.now_ms()
        place = (host, refusal)
        if self._noted.get(place, now_ms) is not None:
            return
        self._noted.put(place, now_ms, expires_at_ms=now_ms + NOTED_AGAIN_AFTER_MS)
        self._audit.note(AuditEvent.FETCH_BLOCKED, host=host, rule=refusal.value)


def _host_of(url: str) -> str:
    """The host in the URL; empty if the URL has none."""
    with suppress(ValueError):
        return (urlsplit(url).hostname or "")[:_MAX_HOST_CHARACTERS]
    return ""
