"""Finds and registers clients: registered ones, and those that a document describes.

A Client ID Document, in JSON or RDF, is fetched through ``outbound`` and cached for some minutes
(A-51). A registration is kept for as long as it is used (A-50). If a document cannot be fetched at
present, that does not mean that the client does not exist, so the request is refused temporarily.
"""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final, Protocol

import msgspec

from podstead.core.caches import BoundedCache
from podstead.core.errors import OutboundError, Overloaded, RemoteUnavailable, RequestRefused
from podstead.core.media_types import JSON, JSON_LD
from podstead.core.request_context import requester
from podstead.core.vocab import OIDC
from podstead.idp import client_metadata, codes
from podstead.idp.records import CLIENTS, Client
from podstead.jose.tokens import InvalidJose, Json, read_object
from podstead.outbound.foreign_documents import DocumentFetcher, FetchedDocument, Purpose
from podstead.rdf.graph import Graph, Iri, Literal, RdfParser
from podstead.storage.record_store import RecordStore, Versioned, secret_key
from podstead.storage.records import Record

# Converts a client's RDF document to the JSON of Solid-OIDC.
#
# Each property of the vocabulary has the name of a member of the JSON (Solid-OIDC section 5.1). The
# graph is therefore converted to the equivalent JSON and then validated in the same way. Pure.


def client_members(graph: Graph, client_id: str) -> Json:
    """The members of the equivalent JSON.

    URLs may be IRIs or literals. A graph that says nothing about the client yields no members, not
    even ``client_id``.
    """
    members: Json = {}
    for predicate, objects in graph.about(Iri(client_id)).items():
        name = predicate.value.removeprefix(OIDC)
        if name != predicate.value:
            texts = [term.value for term in objects if isinstance(term, Iri | Literal)]
            members[name] = texts[0] if len(texts) == 1 else texts
    return {**members, "client_id": client_id} if members else {}


REGISTRATION_MS: Final = 90 * 24 * 3600 * 1000
"""How long a registration is kept after its last use; no grant lasts longer (A-50)."""
RENEW_MS: Final = 24 * 3600 * 1000
"""A registration in use is renewed once a day at most."""
MAX_CLIENT_ID_CHARACTERS: Final = 2048
MAX_REGISTERED: Final = 100_000
MAX_UNUSED_PER_NETWORK: Final = 500
"""How many unused registrations are kept for one network."""
MAX_PER_ACCOUNT: Final = 500
"""How many registrations are kept that only one account has used."""
COUNTED_MS: Final = 60_000
"""How long a worker caches the count; within this time it may exceed the limit."""
DOCUMENT_S: Final = 300
NO_DOCUMENT_S: Final = 30
"""How long to wait before a document that is not usable is fetched again."""
DOCUMENTS_PER_REQUESTER: Final = 120
"""How many documents may be fetched for one requester in a minute, since anybody may name any URL
(A-191)."""
DOCUMENTS_PER_ORIGIN: Final = 120
"""How many documents may be fetched from one origin in a minute."""
DOCUMENTS_OF_ONE_ORIGIN: Final = 30
"""How many of these for one requester, so that one alone cannot use up the limit of the origin."""
MAX_DOCUMENTS: Final = 1000
_UNUSED: Final = "registered by "
_USED: Final = "used by "
_USED_BY_SEVERAL: Final = "used by several"
_SAMPLE: Final = 100
_ID_BYTES: Final = 16
_SECRET_BYTES: Final = 32


class ClientUnavailable(RemoteUnavailable):
    """The client's document cannot be fetched at present (RFC 6749 section 4.1.2.1)."""

    known_text = "temporarily_unavailable"

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(codes.IdpCodes.CLIENT_UNAVAILABLE)
        self.retry_after_s = retry_after_s


class ClientDocuments(DocumentFetcher, Protocol):
    """Fetches the documents that client identifiers lead to, those of this server included."""

    async def origin_of(self, url: str) -> str | None:
        """The origin that a document is fetched from; ``None`` for one of this server. Raises
        OutboundError."""


@dataclass(frozen=True, slots=True)
class RegisteredClient:
    """A new registration, with the secrets that are shown once."""

    client: Client
    secret: str | None
    registration_token: str


@dataclass(frozen=True, slots=True)
class _KnownDocument:
    """A cached document; ``None`` if it is not usable.

    ``is_missing`` means that it could not be fetched, which may soon change.
    """

    client: Client | None
    until_ms: int
    is_missing: bool = False


class ClientDirectory:
    """Finds, registers and removes clients."""

    def __init__(
        self,
        *,
        records: RecordStore,
        documents: ClientDocuments,
        parse: RdfParser,
        allow_http: bool,
    ) -> None:
        """``allow_http`` accepts plain http URLs on this machine (A-190)."""
        self._records = records
        self._documents = documents
        self._parse = parse
        self._allow_http = allow_http
        self._registered = 0
        self._counted_ms: int | None = None
        self._known = BoundedCache[str, _KnownDocument](MAX_DOCUMENTS)

    async def find(self, client_id: str) -> Client | None:
        """The client; ``None`` if it does not exist or its document is not usable. Raises
        StorageError, and ClientUnavailable if the document cannot be fetched at present."""
        if len(client_id) > MAX_CLIENT_ID_CHARACTERS:
            return None
        stored = await self._records.read(CLIENTS, client_id)
        if stored is not None:
            return stored.value
        return await self._described(client_id) if self._is_document(client_id) else None

    async def register(self, sent: Json, *, network: str) -> RegisteredClient:
        """Register a client (RFC 7591), for a request from ``network``. If there are too many, the
        oldest unused registration is removed. Raises UnusableMetadata."""
        described = client_metadata.read_metadata(sent, allow_http=self._allow_http)
        now_ms = self._records.now_ms()
        secret = None
        if described.auth_method != "none":
            secret = self._records.randomness.token_hex(_SECRET_BYTES)
        registration_token = self._records.randomness.token_hex(_SECRET_BYTES)
        client = msgspec.structs.replace(
            described,
            client_id=self._records.randomness.token_hex(_ID_BYTES),
            secret_hash=None if secret is None else secret_key(secret),
            registration_token_hash=secret_key(registration_token),
            issued_s=now_ms // 1000,
        )
        owner = _UNUSED + network
        expires_ms = now_ms + REGISTRATION_MS
        surplus = {
            *await self._surplus(owner, limit=MAX_UNUSED_PER_NETWORK),
            *await self._surplus_in_all(now_ms),
        }
        records: list[Record] = [
            CLIENTS.put(client.client_id, client, owner=owner, expires_ms=expires_ms),
            *map(CLIENTS.drop, surplus),
        ]
        await self._records.commit(records)
        self._registered += 1 - len(surplus)
        return RegisteredClient(client, secret, registration_token)

    async def managed(self, client_id: str, registration_token: str) -> Client | None:
        """The registered client, if this token gives access to its registration (RFC 7592)."""
        stored = await self._records.read(CLIENTS, client_id)
        if stored is None or stored.value.registration_token_hash is None:
            return None
        presented = secret_key(registration_token)
        matches = hmac.compare_digest(stored.value.registration_token_hash, presented)
        return stored.value if matches else None

    async def remove(self, client_id: str) -> None:
        """Remove a registration. All tokens of the client become invalid, because each check looks
        up the client."""
        await self._records.commit([CLIENTS.drop(client_id)])

    async def note_use(self, client_id: str, account_id: str) -> None:
        """Extend a registration that an account has just used."""
        now_ms = self._records.now_ms()
        stored = await self._records.read(CLIENTS, client_id)
        lasting_ms = now_ms + REGISTRATION_MS
        if stored is None or stored.expires_ms is None:
            return
        owner = _owner_in_use(stored.owner, account_id)
        if stored.owner == owner and stored.expires_ms >= lasting_ms:
            return
        surplus: Sequence[str] = ()
        if owner not in (stored.owner, _USED_BY_SEVERAL):
            surplus = await self._surplus(owner, limit=MAX_PER_ACCOUNT)
        renewed = CLIENTS.put(
            client_id, stored.value, owner=owner, expires_ms=lasting_ms + RENEW_MS
        )
        # A registration that was removed meanwhile stays removed.
        records: list[Record] = [renewed, *map(CLIENTS.drop, surplus)]
        await self._records.try_commit(records, [stored.unchanged])

    async def _surplus(self, owner: str, *, limit: int) -> Sequence[str]:
        """The registrations to remove so that an owner has room for one more: those not used for
        the longest time."""
        stored = await self._records.of_owner(CLIENTS, owner, limit=2 * limit)
        oldest = sorted(stored, key=_last_used)
        return [each.key for each in oldest[: max(0, len(stored) + 1 - limit)]]

    async def _surplus_in_all(self, now_ms: int) -> Sequence[str]:
        """The registration to remove when there are too many in total: among a random sample, the
        oldest unused one, or the oldest if all are in use. Raises Overloaded if the sample is
        empty."""
        if self._counted_ms is None or not 0 <= now_ms - self._counted_ms < COUNTED_MS:
            self._registered = await CLIENTS.count(self._records.store, at_most=MAX_REGISTERED)
            self._counted_ms = now_ms
        if self._registered < MAX_REGISTERED:
            return ()
        start = self._records.randomness.token_hex(_ID_BYTES)
        some = await CLIENTS.sample(self._records.store, start=start, now_ms=now_ms, limit=_SAMPLE)
        if not some:
            raise Overloaded("This server cannot register any more applications at present")
        return [min(some, key=_last_used).key]

    def _is_document(self, client_id: str) -> bool:
        plain = client_id.startswith("http://")
        return (
            client_metadata.is_document_url(client_id)
            and "#" not in client_id
            and (self._allow_http or not plain)
        )

    async def _described(self, client_id: str) -> Client | None:
        now_ms = self._records.now_ms()
        known = self._known.get(client_id)
        if known is not None and now_ms < known.until_ms:
            if known.is_missing:
                raise ClientUnavailable(ceil((known.until_ms - now_ms) / 1000))
            return known.client
        try:
            origin = await self._documents.origin_of(client_id)
            await self._take_one(origin)
            document = await self._documents.fetch(client_id, Purpose.CLIENT)
            client = client_metadata.read_client_document(
                await self._members(document, client_id),
                client_id=client_id,
                allow_http=self._allow_http,
            )
        except ClientUnavailable:
            raise
        except RemoteUnavailable as error:
            until_ms = now_ms + min(error.retry_after_s, NO_DOCUMENT_S) * 1000
            self._known.put(client_id, _KnownDocument(None, until_ms, is_missing=True))
            raise ClientUnavailable(error.retry_after_s) from error
        except (client_metadata.UnusableMetadata, OutboundError, RequestRefused, InvalidJose):
            client = None
        lasts_s = NO_DOCUMENT_S if client is None else DOCUMENT_S
        self._known.put(client_id, _KnownDocument(client, now_ms + lasts_s * 1000))
        return client

    async def _members(self, document: FetchedDocument, client_id: str) -> Json:
        """The members of a document. Raises InvalidJose, RequestRefused or OutboundError."""
        if document.media_type in (JSON, JSON_LD):
            return read_object(document.content)
        graph = await self._parse(document.content, document.media_type, document.final_url)
        return client_members(graph, client_id)

    async def _take_one(self, origin: str | None) -> None:
        """Count a fetch against the requester and against the origin of the document.

        Raises ClientUnavailable if either has reached its limit for this minute.
        """
        current = requester()
        limits = [(f"for {current}", DOCUMENTS_PER_REQUESTER)]
        if origin is not None:
            asked = f"from {secret_key(origin)}"
            # The narrowest limit first: a refused fetch must not use up a wider one.
            limits.insert(0, (f"{asked} for {current}", DOCUMENTS_OF_ONE_ORIGIN))
            limits.append((asked, DOCUMENTS_PER_ORIGIN))
        for name, per_minute in limits:
            wait_s = await self._records.take(
                f"client-document {name}", capacity=per_minute, period_s=60
            )
            if wait_s is not None:
                raise ClientUnavailable(ceil(wait_s))


def _last_used(stored: Versioned[Client]) -> tuple[bool, int]:
    """The sort key of registrations that may be removed: unused ones first."""
    return not _is_unused(stored.owner), stored.expires_ms or 0


def _is_unused(owner: str | None) -> bool:
    return owner is not None and owner.startswith(_UNUSED)


def _owner_in_use(owner: str | None, account_id: str) -> str:
    """The owner of a registration that an account uses. One that several accounts use belongs to
    none of them, so that no account can crowd it out."""
    used_by = _USED + account_id
    if owner is None or _is_unused(owner) or owner == used_by:
        return used_by
    return _USED_BY_SEVERAL
