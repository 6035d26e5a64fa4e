"""Reads the documents of WebIDs, and checks whom they trust."""

import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum
from math import ceil
from typing import Final, Generic, Protocol, TypeVar
from urllib.parse import urljoin

from podstead.authn.claims import same_issuer
from podstead.core import errors
from podstead.core.caches import BoundedCache, ExpiringCache
from podstead.core.clock import Clock
from podstead.core.identifiers import ResourcePath, parse_path, storage_root
from podstead.core.identity import AuthenticationMethod, Identity, IdentityRefinement, refined
from podstead.core.media_types import HTML, JSON_LD
from podstead.core.vocab import SOLID_OIDC_ISSUER
from podstead.jose.tokens import InvalidJose
from podstead.outbound.errors import Congested
from podstead.outbound.foreign_documents import DocumentFetcher, FetchedDocument, Purpose
from podstead.rdf.graph import Graph, Iri, RdfParser
from podstead.rdf.html_islands import data_islands
from podstead.storage.document_reader import ChangingTooFast, DocumentReader
from podstead.storage.protocol import DocumentSource, RateCounters, ReplayCache, TokenRegistry
from podstead.storage.records import Metadata

# Checks whether an identity that was proven a while ago is still valid (N-30, A-32).
#
# A subscriber sends credentials once, when it subscribes. The expiry of its token does not end the
# subscription, but a deliberate act does: revoking the token, deleting the pod, disabling the
# account.


class AccountStatus(Protocol):
    """Knows which accounts the operator has disabled."""

    async def is_disabled(self, storage: ResourcePath) -> bool:
        """Whether the account of a storage is disabled. Raises StorageError."""


@dataclass(frozen=True, slots=True)
class LocalWebIds:
    """The WebIDs of this server, whose documents are in the storages of accounts.

    ``accounts`` is ``None`` if storages have no accounts.
    """

    base_url: str
    accounts: AccountStatus | None = None

    def holds(self, web_id: str) -> bool:
        """Whether the document of a WebID is on this server."""
        return web_id.startswith(f"{self.base_url}/")

    async def is_disabled(self, web_id: str) -> bool:
        """Whether a WebID belongs to this server and its account is disabled."""
        if self.accounts is None or not self.holds(web_id):
            return False
        path = self.path_of(web_id)
        storage = None if path is None else storage_root(path)
        return storage is not None and await self.accounts.is_disabled(storage)

    def path_of(self, web_id: str) -> ResourcePath | None:
        """The path of the document of a WebID of this server; ``None`` if that is not a path."""
        path = web_id[len(self.base_url) :].partition("#")[0].partition("?")[0]
        try:
            return parse_path(path.encode())
        except (errors.BadRequest, UnicodeEncodeError):
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityStatus:
    """Checks identities again."""

    tokens: TokenRegistry
    web_ids: LocalWebIds
    refinements: Sequence[IdentityRefinement] = ()

    async def current(
        self, identity: Identity, *, before_deletion: bool = False
    ) -> Identity | None:
        """The identity as of now; ``None`` if it is not valid any longer."""
        if not await self.is_still_valid(identity, before_deletion=before_deletion):
            return None
        return await refined(identity, self.refinements)

    async def is_still_valid(self, identity: Identity, *, before_deletion: bool = False) -> bool:
        """Whether the token has not been revoked and the account has not been disabled.

        With ``before_deletion``, a simple token that was deleted together with its pod is still
        valid (N-18).
        """
        if identity.method is AuthenticationMethod.SIMPLE:
            revoked = await self._is_revoked(identity.token_id)
            if revoked or (revoked is None and not before_deletion):
                return False
        return not await self.web_ids.is_disabled(identity.iri)

    async def _is_revoked(self, token_id: str | None) -> bool | None:
        """``None`` if the token does not exist; tokens are deleted with their pod."""
        record = None if token_id is None else await self.tokens.read_token(token_id)
        return None if record is None else record.revoked_s is not None


# Reads the statements of WebID documents, from the store or from their servers.
#
# An agent is trusted to have a WebID because of what the document of the WebID states: the
# providers that may issue tokens for it, or the keys of the agent. Each kind of credentials
# extracts what it needs. Documents of this server are read as they are now, without access rules
# and without the network. What a version states is cached under that version, so it is never out of
# date.

T = TypeVar("T")

FAILURE_S: Final = 30
MAX_CACHED_FAILURES: Final = 4096
CACHE_CHARACTERS: Final = 4 * 1024 * 1024
"""The total size of the WebIDs in a cache and of what their documents state."""
MAX_TRIPLES: Final = 10_000
MAX_DOCUMENT_BYTES: Final = 1024 * 1024
"""The limit for a document of this server; foreign documents have the same (A-111)."""
_UNREADABLE: Final = "The WebID's document could not be read"
_DISABLED: Final = "The WebID's account is disabled"
_MISNAMED: Final = "The WebID leads to this server but does not begin with its base URL"


class UnusableDocument(Exception):
    """The document cannot be read or parsed; ``str()`` is a fixed public phrase."""

    def __init__(self, phrase: str = _UNREADABLE) -> None:
        super().__init__(phrase)


@dataclass(frozen=True, slots=True)
class DocumentLimits:
    """The largest document that is read; ``None`` for no limit."""

    max_bytes: int | None = MAX_DOCUMENT_BYTES
    max_triples: int | None = MAX_TRIPLES


DEFAULT_LIMITS: Final = DocumentLimits()
UNLIMITED: Final = DocumentLimits(None, None)
"""Only for documents of this server, whose size was checked when they were stored."""


@dataclass(frozen=True, slots=True)
class ProfileSources:
    """Where WebID documents come from."""

    local: LocalWebIds
    store: DocumentSource
    foreign: DocumentFetcher
    parse: RdfParser
    clock: Clock


class WebIdDocuments(Generic[T]):
    """Extracts one kind of statement from WebID documents."""

    def __init__(
        self,
        sources: ProfileSources,
        *,
        extract: Callable[[Graph, str], T],
        weigh: Callable[[T], int],
        limits: DocumentLimits = DEFAULT_LIMITS,
    ) -> None:
        """``extract`` receives the graph of the document and the name by which it was requested,
        and may raise UnusableDocument; ``weigh`` returns the number of characters in a result."""
        self._sources = sources
        self._extract = extract
        self._limits = limits
        self._stored: DocumentReader[T] = DocumentReader(
            sources.store,
            self._interpret,
            kind="WebID documents",
            weigh=lambda _, found: weigh(found),
            max_weight=CACHE_CHARACTERS,
            max_bytes=limits.max_bytes,
        )
        self._unusable = ExpiringCache[str, bool](MAX_CACHED_FAILURES)

    def is_local(self, name: str) -> bool:
        """Whether the document of a WebID is on this server."""
        return self._sources.local.holds(name)

    async def stored(self, name: str) -> T | None:
        """What a document of this server states now; ``None`` if it does not exist.

        ``name`` is its URL, with or without a fragment. Raises UnusableDocument, also for the
        document of a disabled account.
        """
        path = self._sources.local.path_of(name)
        if path is None:
            raise UnusableDocument
        if await self._sources.local.is_disabled(name):
            raise UnusableDocument(_DISABLED)
        try:
            return await self._stored.current(name, path)
        except (errors.BodyTooLarge, ChangingTooFast) as error:
            raise UnusableDocument from error

    async def _interpret(self, name: str, metadata: Metadata, content: bytes) -> T:
        return await self._read(content, metadata.content_type, _url_of(name), name)

    async def fetched(self, name: str) -> T:
        """Fetch a foreign document and return what it states. Raises UnusableDocument, and
        RemoteUnavailable if it cannot be fetched at present.

        An unusable document is not fetched again for a while (A-191); the fetcher itself remembers
        failed fetches.
        """
        sources = self._sources
        if self._unusable.get(name, sources.clock.now_ms()):
            raise UnusableDocument
        try:
            document = await sources.foreign.fetch(_url_of(name), Purpose.WEB_ID)
        except errors.OwnDocument as error:
            raise UnusableDocument(_MISNAMED) from error
        except errors.RemoteUnavailable:
            raise
        except errors.OutboundError as error:
            raise UnusableDocument from error
        try:
            if document.media_type == HTML:
                return self._extract(await self._islands(document), name)
            return await self._read(document.content, document.media_type, document.final_url, name)
        except UnusableDocument:
            expires_at_ms = sources.clock.now_ms() + FAILURE_S * 1000
            self._unusable.put(name, value=True, expires_at_ms=expires_at_ms)
            raise

    async def _read(self, content: bytes, content_type: str, base_iri: str, name: str) -> T:
        return self._extract(await self._parse(content, content_type, base_iri), name)

    async def _islands(self, document: FetchedDocument) -> Graph:
        """The graph of all data islands of a page.

        Only foreign pages are read this way. On this server, writing identity statements needs
        Control, which is checked for RDF documents and not for pages.
        """
        try:
            islands = data_islands(document.content.decode())
            base_iri = urljoin(document.final_url, islands.base_reference)
        except ValueError as error:
            raise UnusableDocument from error
        graph = Graph()
        for text in islands.texts:
            graph |= await self._parse(text.encode(), JSON_LD, base_iri)
        if not islands.texts or _exceeds(len(graph), self._limits.max_triples):
            raise UnusableDocument
        return graph

    async def _parse(self, content: bytes, content_type: str, base_iri: str) -> Graph:
        try:
            graph = await self._sources.parse(content, content_type, base_iri)
        except errors.RemoteUnavailable:  # one of its JSON-LD contexts
            raise
        except (errors.RequestRefused, errors.OutboundError) as error:
            raise UnusableDocument from error
        if _exceeds(len(graph), self._limits.max_triples):
            raise UnusableDocument
        return graph


def _exceeds(size: int, limit: int | None) -> bool:
    return limit is not None and size > limit


def _url_of(name: str) -> str:
    return name.partition("#")[0]


# Limits how often a client may cause look-ups of unknown WebIDs and issuers.
#
# Look-ups are counted for each client address, issuers and WebIDs separately. A name that any
# worker has found before is looked up again without being counted, so a client that names unknown
# ones does not shut out others at its address. A failed look-up of the name ends that.

LOOKUPS_PER_MINUTE: Final = 30
KNOWN_S: Final = 6 * 3600
"""How long all workers know a name that one of them has found."""
STALE_S: Final = 15 * 60
"""How long an expired WebID document stays in use while limits of this server prevent the
look-up."""
FAILED_S: Final = 3600
"""How long look-ups of a known name count after one has failed, unless it is found again."""
MAX_FAILED: Final = 4096


class TooManyLookups(errors.RemoteUnavailable):
    """The client has caused too many look-ups recently."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__("Too many WebIDs or issuers that are not known here: try again later")
        self.retry_after_s = retry_after_s


OWN_LIMITS: Final = (TooManyLookups, Congested)
"""Limits of this server prevented a look-up: this says nothing about the other server."""


class LookupKind(Enum):
    """What is looked up; each kind has a limit of its own."""

    ISSUER = "issuer"
    WEB_ID = "webid"


class SharedCounters(RateCounters, ReplayCache, Protocol):
    """The state about look-ups that all workers share."""


class LookupLimits:
    """Counts the look-ups of each client address, for all kinds of credentials together."""

    def __init__(self, shared: SharedCounters, clock: Clock) -> None:
        self._shared = shared
        self._clock = clock
        self._running: Counter[tuple[LookupKind, str]] = Counter()
        self._failed = ExpiringCache[tuple[LookupKind, str], bool](MAX_FAILED)

    @asynccontextmanager
    async def of(
        self, kind: LookupKind, name: str, client_address: str | None
    ) -> AsyncIterator[None]:
        """Count the look-up of a name, which is made within this context, unless it is known or
        being looked up at this moment. Without a client address, nothing is counted. Raises
        TooManyLookups."""
        looked_up = (kind, name)
        digest = hashlib.sha256(f"known {kind.value} {name}".encode()).digest()
        if client_address is not None and not self._running[looked_up]:
            failed = self._failed.get(looked_up, self._clock.now_ms())
            if failed or not await self._shared.is_used(digest, now_ms=self._clock.now_ms()):
                await self.take(kind.value, client_address)
        self._running[looked_up] += 1
        try:
            yield
        except OWN_LIMITS:
            raise
        except Exception:
            expires_at_ms = self._clock.now_ms() + FAILED_S * 1000
            self._failed.put(looked_up, value=True, expires_at_ms=expires_at_ms)
            raise
        finally:
            self._running[looked_up] -= 1
            if not self._running[looked_up]:
                del self._running[looked_up]
        self._failed.discard(looked_up)
        now_ms = self._clock.now_ms()
        await self._shared.use_once(digest, until_ms=now_ms + KNOWN_S * 1000, now_ms=now_ms)

    async def take(self, what: str, client_address: str) -> None:
        """Count one action of a client. Raises TooManyLookups if there were too many."""
        wait_s = await self._shared.take(
            f"lookup {what} {client_address}",
            capacity=LOOKUPS_PER_MINUTE,
            per_s=LOOKUPS_PER_MINUTE / 60,
            now_ms=self._clock.now_ms(),
        )
        if wait_s is not None:
            raise TooManyLookups(ceil(wait_s))


# Checks whether a WebID trusts a provider to issue its tokens (Solid-OIDC section 6.1, A-109).
#
# Anybody can run a provider that issues tokens for any WebID. A token is valid only if the document
# of the WebID names the provider with ``solid:oidcIssuer``. Documents of this server are read as
# they are now; foreign documents are fetched and used for some minutes. Fetching is counted for the
# client address that a caller passes; ``None`` counts nothing.

POSITIVE_S: Final = 300
NEGATIVE_S: Final = 30
MAX_NAMED_PROVIDERS: Final = 64
"""Providers that one WebID may name."""


@dataclass(frozen=True, slots=True)
class _Foreign:
    issuers: frozenset[str]
    read_ms: int

    def is_fresh_for(self, issuer: str, now_ms: int) -> bool:
        """Whether this may still be used for the issuer. An absent issuer is remembered for a
        shorter time, because people add a provider and try again at once (A-110)."""
        fresh_s = POSITIVE_S if _names(self.issuers, issuer) else NEGATIVE_S
        return now_ms < self.read_ms + fresh_s * 1000


class WebIdIssuers:
    """Knows which providers each WebID names."""

    def __init__(self, sources: ProfileSources, lookups: LookupLimits) -> None:
        self._lookups = lookups
        self._clock = sources.clock
        self._documents = WebIdDocuments(sources, extract=_issuers_of, weigh=_weight)
        self._cache = BoundedCache[str, _Foreign](CACHE_CHARACTERS)

    async def is_named_here(self, web_id: str, issuer: str) -> bool:
        """Whether the WebID's document is on this server and names the issuer."""
        try:
            return self._documents.is_local(web_id) and await self.trusts(web_id, issuer, None)
        except InvalidJose:
            return False

    async def trusts(self, web_id: str, issuer: str, client_address: str | None) -> bool:
        """Whether the WebID's document names the issuer. Raises InvalidJose if it is unusable, and
        RemoteUnavailable if it cannot be fetched at present."""
        try:
            if self._documents.is_local(web_id):
                issuers = await self._documents.stored(web_id) or frozenset()
            else:
                issuers = await self._foreign_issuers(web_id, issuer, client_address)
        except UnusableDocument as error:
            raise InvalidJose(str(error)) from error
        return _names(issuers, issuer)

    async def named_by(self, web_id: str, client_address: str | None) -> frozenset[str]:
        """The providers that the WebID's document names. Raises as :meth:`trusts` does."""
        try:
            if self._documents.is_local(web_id):
                return await self._documents.stored(web_id) or frozenset()
            return await self._foreign_issuers(web_id, "", client_address)
        except UnusableDocument as error:
            raise InvalidJose(str(error)) from error

    async def _foreign_issuers(
        self, web_id: str, issuer: str, client_address: str | None
    ) -> frozenset[str]:
        known = self._cache.get(web_id)
        if known is not None and known.is_fresh_for(issuer, self._clock.now_ms()):
            return known.issuers
        try:
            async with self._lookups.of(LookupKind.WEB_ID, web_id, client_address):
                issuers = await self._documents.fetched(web_id)
        except OWN_LIMITS:
            stale_from_ms = self._clock.now_ms() - (POSITIVE_S + STALE_S) * 1000
            if known is None or not _names(known.issuers, issuer) or known.read_ms < stale_from_ms:
                raise
            return known.issuers
        read = _Foreign(issuers, self._clock.now_ms())
        self._cache.put(web_id, read, weight=len(web_id) + _weight(issuers))
        return issuers


def _issuers_of(graph: Graph, web_id: str) -> frozenset[str]:
    issuers = frozenset(graph.iris(Iri(web_id), Iri(SOLID_OIDC_ISSUER)))
    if len(issuers) > MAX_NAMED_PROVIDERS:
        raise UnusableDocument
    return issuers


def _names(issuers: frozenset[str], issuer: str) -> bool:
    return any(same_issuer(issuer, named) for named in issuers)


def _weight(issuers: frozenset[str]) -> int:
    return sum(map(len, issuers))
