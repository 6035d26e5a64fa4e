"""``GET /.probe/{key}``: what the server sees of a request of the operator.

``podstead doctor`` stores a random key for a minute and sends a request with it through the public
address. The response shows that this address leads here, and what the proxies on the way pass on.
Without such a key there is nothing here.
"""

from typing import Final

import msgspec

from podstead.core import errors, identifiers, identity
from podstead.storage.record_store import RecordKind, RecordStore
from podstead.web.request import Request
from podstead.web.response import NO_STORE, Response, json_content_response
from podstead.web.routes import Access, Route

PREFIX: Final = "/.probe/"
KEY_BYTES: Final = 16
VALID_MS: Final = 60_000


class Probe(msgspec.Struct, frozen=True):
    """An announced request."""

    at_ms: int


PROBES: Final = RecordKind("probe", Probe)


class SeenRequest(msgspec.Struct, frozen=True):
    """What the server sees. The fields are ``None`` where the request has none."""

    now_ms: int
    client_address: str
    host: str
    forwarded_for: str | None
    forwarded_proto: str | None
    forwarded: str | None


class ProbeEndpoint:
    """Shows a request to whoever has announced it."""

    def __init__(self, records: RecordStore) -> None:
        self._records = records

    def route(self) -> Route:
        """The route."""
        return Route(identifiers.ResourcePath(f"{PREFIX}{{key}}"), {"GET": self.get}, Access.PUBLIC)

    async def get(self, request: Request, _agent: identity.Identity | None) -> Response:
        """Raises NotFound and StorageError."""
        key = request.path.removeprefix(PREFIX)
        if await self._records.read(PROBES, key) is None:
            raise errors.NotFound
        get = request.fields.get
        seen = SeenRequest(
            now_ms=self._records.now_ms(),
            client_address=request.client_address,
            host=request.host,
            forwarded_for=get(b"x-forwarded-for"),
            forwarded_proto=get(b"x-forwarded-proto"),
            forwarded=get(b"forwarded"),
        )
        return json_content_response(seen, method="GET", headers=(NO_STORE,))
