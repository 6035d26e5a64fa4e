"""The IDs of requests: those that a trusted proxy has given them, or our own."""

import itertools
import re
from typing import Final

from podstead.core.clock import Randomness
from podstead.core.request_context import RequestId
from podstead.web.asgi import Scope
from podstead.web.authority import Authorities

FIELD: Final = b"x-request-id"
_GIVEN: Final = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}")
_PREFIX_BYTES: Final = 6


def peer_of(scope: Scope) -> str:
    """The address of the peer."""
    peer: str = (scope.get("client") or ("",))[0]
    return peer


def id_field(mark: RequestId) -> tuple[bytes, bytes]:
    """The header field with the id of a request."""
    return FIELD, mark.request_id.encode("ascii")


class RequestIds:
    """Makes the ids of one worker: a random prefix and a number."""

    def __init__(self, authorities: Authorities, randomness: Randomness) -> None:
        """``authorities`` knows the trusted proxies."""
        self._authorities = authorities
        self._randomness = randomness
        self._prefix = ""
        self._numbers = itertools.count(1)

    def mark(self, scope: Scope) -> RequestId:
        """The mark of a request. What anyone else sends could forge log lines."""
        if not self._authorities.trusted_proxies:
            return RequestId(self._make)
        return RequestId(self._make, self._given(scope))

    def _given(self, scope: Scope) -> str | None:
        value = next((value for name, value in scope["headers"] if name == FIELD), None)
        if value is None or not _GIVEN.fullmatch(value):
            return None
        return value.decode("ascii") if self._authorities.trusts(peer_of(scope)) else None

    def _make(self) -> str:
        # Not before the first: workers may not be forked with a prefix in common.
        self._prefix = self._prefix or self._randomness.token_hex(_PREFIX_BYTES)
        return f"{self._prefix}-{next(self._numbers)}"
