"""Which clients does the provider know? Registered ones, and those that a document describes.

A client-ID document, JSON or RDF, is fetched through the guarded way out and used for some minutes
(A-51); a registration is kept while it is used (A-50).
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from podstead.authn.web_id_documents import RdfParser
from podstead.core.bounded_cache import BoundedCache
from podstead.core.clock import Clock, Randomness
from podstead.core.errors import OutboundError, Overloaded, RequestRefused
from podstead.core.media_types import JSON, JSON_LD, essence
from podstead.idp.client_graphs import client_members
from podstead.idp.client_metadata import (
    UnusableMetadata,
    client_of,
    is_document_url,
    read_client_document,
    read_metadata,
)
from podstead.idp.records import CLIENTS, Client
from podstead.idp.token_service import ProviderStore
from podstead.jose.errors import InvalidJose
from podstead.jose.strict_json import Json, read_object
from podstead.storage.protocol import EntryCounts, RateCounters
from podstead.storage.records import Record, Reliance
from podstead.storage.registry import secret_key
from podstead.storage.writing import commit

REGISTRATION_MS: Final = 90 * 24 * 3600 * 1000
"""How long one is kept after its last use: no grant goes on for longer (A-50)."""
RENEW_MS: Final = 24 * 3600 * 1000
"""A registration that is used is renewed once a day at most."""
LONGEST_CLIENT_ID: Final = 2048
MOST_REGISTERED: Final = 100_000
COUNTED_MS: Final = 60_000
"""How long a worker believes its count: so long it may take more than the limit says."""
DOCUMENT_S: Final = 300
NO_DOCUMENT_S: Final = 30
"""How long a document that cannot be used is not asked for again."""
DOCUMENTS_PER_MINUTE: Final = 60
"""How many documents one host is asked for, since anybody may name any (A-191)."""
MOST_DOCUMENTS: Final = 1000
_ID_BYTES: Final = 16
_SECRET_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class ClientDocument:
    """A client's document as it was read; ``url`` is the base of its relative references."""

    content: bytes
    content_type: str
    url: str


class ClientDocuments(Protocol):
    """Reads the documents that clients' identifiers lead to."""

    async def fetch_client_document(self, url: str) -> ClientDocument:
        """Raises OutboundError."""


class ClientStore(ProviderStore, EntryCounts, RateCounters, Protocol):
    """Where registrations are kept and lookups counted; every store is one."""


@dataclass(frozen=True, slots=True)
class Registered:
    """A new registration with the secrets that are shown once."""

    client: Client
    secret: str | None
    registration_token: str


@dataclass(frozen=True, slots=True)
class _KnownDocument:
    """What a document says, for a while; ``None`` for one that cannot be used."""

    client: Client | None
    until_ms: int


class ClientDirectory:
    """Finds, registers and removes clients."""

    def __init__(
        self,
        *,
        store: ClientStore,
        documents: ClientDocuments,
        parse: RdfParser,
        allow_http: bool,
        clock: Clock,
        randomness: Randomness,
    ) -> None:
        """``allow_http`` takes plain http addresses of this machine (D-8)."""
        self._store = store
        self._documents = documents
        self._parse = parse
        self._allow_http = allow_http
        self._clock = clock
        self._randomness = randomness
        self._registered = 0
        self._counted_ms: int | None = None
        self._known = BoundedCache[str, _KnownDocument](MOST_DOCUMENTS)

    async def find(self, client_id: str) -> Client | None:
        """The client; ``None`` if there is none, or its document cannot be used."""
        if len(client_id) > LONGEST_CLIENT_ID:
            return None
        kept = await CLIENTS.read(self._store, client_id, now_ms=self._clock.now_ms())
        if kept is not None:
            return kept.value
        return await self._described(client_id) if self._is_document(client_id) else None

    async def register(self, sent: Json) -> Registered:
        """Register a client (RFC 7591). Raises UnusableMetadata, StorageError, and Overloaded also
        when there are too many."""
        metadata = read_metadata(sent, allow_http=self._allow_http)
        now_ms = self._clock.now_ms()
        await self._check_number(now_ms)
        secret = None
        if metadata.auth_method != "none":
            secret = self._randomness.token_hex(_SECRET_BYTES)
        registration_token = self._randomness.token_hex(_SECRET_BYTES)
        client = client_of(
            metadata,
            client_id=self._randomness.token_hex(_ID_BYTES),
            registered=True,
            secret_hash=None if secret is None else secret_key(secret),
            registration_token_hash=secret_key(registration_token),
            issued_s=now_ms // 1000,
        )
        record = CLIENTS.put(client.client_id, client, expires_ms=now_ms + REGISTRATION_MS)
        if not await self._commit([record], now_ms):
            raise Overloaded("The client could not be registered: try again")
        self._registered += 1
        return Registered(client, secret, registration_token)

    async def managed(self, client_id: str, registration_token: str) -> Client | None:
        """The registered client, if the token is the one to manage it (RFC 7592)."""
        kept = await CLIENTS.read(self._store, client_id, now_ms=self._clock.now_ms())
        if kept is None or kept.value.registration_token_hash is None:
            return None
        shown = secret_key(registration_token)
        matches = hmac.compare_digest(kept.value.registration_token_hash, shown)
        return kept.value if matches else None

    async def remove(self, client_id: str) -> None:
        """Remove a registration; every token of the client counts no more with it, since each looks
        its client up. Raises StorageError, Overloaded."""
        await self._commit([CLIENTS.drop(client_id)], self._clock.now_ms())

    async def note_use(self, client_id: str) -> None:
        """Keep a registration that is in use for longer. Raises StorageError, Overloaded."""
        now_ms = self._clock.now_ms()
        kept = await CLIENTS.read(self._store, client_id, now_ms=now_ms)
        lasting_ms = now_ms + REGISTRATION_MS
        if kept is None or kept.expires_ms is None or kept.expires_ms >= lasting_ms:
            return
        renewed = CLIENTS.put(client_id, kept.value, expires_ms=lasting_ms + RENEW_MS)
        # One that is removed meanwhile stays so.
        await self._commit([renewed], now_ms, relied_on=[kept.at])

    async def _check_number(self, now_ms: int) -> None:
        """A-50. Raises Overloaded."""
        if self._counted_ms is None or not 0 <= now_ms - self._counted_ms < COUNTED_MS:
            self._registered = await CLIENTS.count(self._store, at_most=MOST_REGISTERED)
            self._counted_ms = now_ms
        if self._registered >= MOST_REGISTERED:
            raise Overloaded("This server can register no more applications at present")

    def _is_document(self, client_id: str) -> bool:
        plain = client_id.startswith("http://")
        return (
            is_document_url(client_id) and "#" not in client_id and (self._allow_http or not plain)
        )

    async def _described(self, client_id: str) -> Client | None:
        now_ms = self._clock.now_ms()
        known = self._known.get(client_id)
        if known is not None and now_ms < known.until_ms:
            return known.client
        if not await self._may_ask(client_id, now_ms):
            return None
        try:
            document = await self._documents.fetch_client_document(client_id)
            client = read_client_document(
                await self._members(document, client_id),
                client_id=client_id,
                allow_http=self._allow_http,
            )
        except (UnusableMetadata, OutboundError, RequestRefused, InvalidJose):
            client = None
        lasts_s = NO_DOCUMENT_S if client is None else DOCUMENT_S
        self._known.put(client_id, _KnownDocument(client, now_ms + lasts_s * 1000))
        return client

    async def _members(self, document: ClientDocument, client_id: str) -> Json:
        """What a document says. Raises InvalidJose, RequestRefused or OutboundError."""
        if essence(document.content_type) in (JSON, JSON_LD):
            return read_object(document.content)
        graph = await self._parse(document.content, document.content_type, document.url)
        return client_members(graph, client_id)

    async def _may_ask(self, client_id: str, now_ms: int) -> bool:
        host = client_id.partition("://")[2].partition("/")[0].lower()
        wait_s = await self._store.take(
            f"client-document:{secret_key(host)}",
            capacity=DOCUMENTS_PER_MINUTE,
            per_s=DOCUMENTS_PER_MINUTE / 60,
            now_ms=now_ms,
        )
        return wait_s is None

    async def _commit(
        self, records: Sequence[Record], now_ms: int, *, relied_on: Sequence[Reliance] = ()
    ) -> bool:
        return await commit(
            self._store,
            records,
            relied_on=relied_on,
            now_ms=now_ms,
            randomness=self._randomness,
        )
