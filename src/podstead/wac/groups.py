"""Looks up whether an agent is a member of the groups that rules name (``acl:agentGroup``, W-14).

A group is a node in a document, and its members are the objects of its ``vcard:hasMember``. What a
rule grants reveals who is a member, so a document is used only for rules whose owner may read it
(decision 0014):

- in the storage of the rules, always;
- elsewhere on this server, if its own rules let that owner or everybody read it;
- on another server, always, because it is fetched without credentials.

The rules of a group document are evaluated with the groups of its own storage only, so evaluation
always ends. A foreign document is used for a few seconds. A document that cannot be fetched or
parsed has no members, while a failure of the store is an error.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from podstead.core import vocab
from podstead.core.caches import ExpiringCache
from podstead.core.clock import Clock
from podstead.core.errors import OutboundError, RequestRefused
from podstead.core.identifiers import ResourcePath
from podstead.outbound.foreign_documents import DocumentFetcher, Purpose
from podstead.rdf.errors import UnknownContext
from podstead.rdf.graph import Graph, Iri, RdfParser
from podstead.storage.document_reader import DocumentReader
from podstead.storage.protocol import DocumentSource, Snapshot
from podstead.storage.records import Absent, AtVersion, Metadata, Precondition
from podstead.wac.acl import agent_name, earliest, local_path
from podstead.wac.effective import CACHE_OVERHEAD_BYTES, MAX_DEPTH, cache_weight, paths_to_read

MAX_GROUP_DOCUMENT_BYTES = 1024 * 1024
"""A larger document of this server has no members: reading it would delay the request."""

REMOTE_FRESH_MS = 10_000
"""How long a fetched document is used."""
REMOTE_RETRY_MS = 30_000
"""How long a failed fetch is not repeated."""
REMOTE_BUDGET_MS = 10_000
"""How long one decision may spend fetching; documents not fetched by then count as empty."""

MAX_DOCUMENTS_ELSEWHERE = 16
"""How many group documents in other storages one decision uses. The rules of each are evaluated,
so without a bound one ACL could make every request to its resource expensive."""

Members = Mapping[str, frozenset[str]]
"""The members of each group of one document."""

_NO_MEMBERS: Members = {}

_TRANSIENT = (OutboundError, UnknownContext)
"""Failures to parse a document that may not happen the next time."""


@dataclass(frozen=True, slots=True)
class Readable:
    """Whether the owner of the rules may read a group document, with the preconditions."""

    may_read: bool
    preconditions: tuple[Precondition, ...]
    cacheable: bool
    until_ms: int | None = None
    """When time may change it first; ``None`` for never."""


AskReadable = Callable[[ResourcePath, Snapshot], Awaitable[Readable]]
"""Decides about a group document; the snapshot holds :func:`podstead.wac.effective.paths_to_read`
of it."""


@dataclass(frozen=True, slots=True)
class Memberships:
    """The groups that have the agent as a member, with the preconditions."""

    groups: frozenset[str]
    preconditions: tuple[Precondition, ...]
    cacheable: bool = True
    """Whether only a change of the store, or time, can change them: false if a foreign document was
    used."""
    until_ms: int | None = None
    """When time may change them first; ``None`` for never."""


NO_MEMBERSHIPS = Memberships(frozenset(), ())


@dataclass(frozen=True, slots=True)
class _LocalMembers:
    """The members in documents of this server at one moment, with the preconditions."""

    documents: Mapping[ResourcePath, Members]
    preconditions: tuple[Precondition, ...]
    cacheable: bool = True
    """Whether only a change of the store, or time, can change them, and who may read the
    documents."""
    until_ms: int | None = None


class GroupMemberships:
    """Looks up members in local and foreign group documents."""

    def __init__(
        self,
        source: DocumentSource,
        parse: RdfParser,
        foreign: DocumentFetcher,
        clock: Clock,
        *,
        base_url: str,
        cache_bytes: int = 16 * 1024 * 1024,
    ) -> None:
        """``base_url`` is the server's origin without a trailing slash; ``cache_bytes`` bounds the
        cache of stored documents and that of fetched ones, by the length of the documents."""
        self._parse = parse
        self._foreign = foreign
        self._clock = clock
        self._base_url = base_url
        self._stored: DocumentReader[Members] = DocumentReader(
            source,
            self._interpret,
            kind="group documents",
            weigh=cache_weight,
            max_weight=cache_bytes,
        )
        self._fetched: ExpiringCache[str, Members] = ExpiringCache(cache_bytes)

    async def of(
        self,
        names: frozenset[str],
        groups: frozenset[str],
        *,
        storage: ResourcePath | None,
        readable: AskReadable | None,
    ) -> Memberships:
        """Which of ``groups`` have one of ``names`` as a member.

        ``storage`` is the one that contains the rules. Documents elsewhere on this server are used
        if they are ``readable``; if that is ``None``, neither they nor foreign documents have
        members. Raises StorageError, and Overloaded if stored group documents change faster than
        they can be read.
        """
        if not groups:
            return NO_MEMBERSHIPS
        local: dict[str, ResourcePath] = {}
        in_storage, elsewhere = set[ResourcePath](), set[ResourcePath]()
        remote: list[str] = []
        # Sorted, so that the bounds on number and time leave out the same groups each time.
        for group in sorted(groups):
            path = local_path(group.partition("#")[0], self._base_url)
            if path is not None:
                local[group] = path
                is_in_storage = storage is not None and path.startswith(storage)
                (in_storage if is_in_storage else elsewhere).add(path)
            elif readable is not None:
                # ``None`` means that this decision is itself about reading a group document. Such a
                # decision never needs another server.
                remote.append(group)
        stored = await self._local_members(in_storage, elsewhere, readable)
        members = {
            group: stored.documents.get(path, _NO_MEMBERS).get(self._node(group, path), frozenset())
            for group, path in local.items()
        }
        members |= await self._remote_members(remote)
        joined = frozenset(group for group in members if not names.isdisjoint(members[group]))
        cacheable = not remote and stored.cacheable
        return Memberships(joined, stored.preconditions, cacheable, stored.until_ms)

    # --- documents of this server ---------------------------------------------------------

    async def _local_members(
        self,
        in_storage: set[ResourcePath],
        elsewhere: set[ResourcePath],
        readable: AskReadable | None,
    ) -> _LocalMembers:
        """The members in the documents in the storage of the rules, and in those elsewhere that are
        readable."""
        # One snapshot for the documents and their rules, so that a document is never read under
        # rules that did not apply to this version of it.
        candidates = () if readable is None or not elsewhere else _usable(elsewhere)
        wanted = in_storage.union(*map(paths_to_read, candidates)) if candidates else in_storage
        if not wanted:
            return _LocalMembers({}, ())
        read = partial(self._members_at, sorted(in_storage), candidates, readable)
        return await self._stored.retry(wanted, read)

    async def _members_at(
        self,
        in_storage: Sequence[ResourcePath],
        candidates: Sequence[ResourcePath],
        readable: AskReadable | None,
        snapshot: Snapshot,
    ) -> _LocalMembers:
        """As :meth:`_local_members` in one snapshot. Raises Superseded if a document has changed
        since."""
        decisions = [(path, await readable(path, snapshot)) for path in candidates if readable]
        paths = [*in_storage, *(path for path, decision in decisions if decision.may_read)]
        cacheable = all(decision.cacheable for _, decision in decisions)
        documents: dict[ResourcePath, Members] = {}
        for path in paths:
            try:
                documents[path] = await self._members_in(snapshot[path])
            except _TRANSIENT:  # not cached, because the same version may be parsed the next time
                documents[path], cacheable = _NO_MEMBERS, False
        # A write that these grant is decided again if any of them changes before it is committed,
        # the rules of the group documents included.
        preconditions = tuple(_precondition(path, snapshot[path]) for path in paths)
        until_ms: int | None = None
        for _, decision in decisions:
            preconditions += decision.preconditions
            until_ms = earliest(until_ms, decision.until_ms)
        return _LocalMembers(documents, preconditions, cacheable, until_ms)

    async def _members_in(self, metadata: Metadata | None) -> Members:
        if metadata is None or metadata.size_bytes > MAX_GROUP_DOCUMENT_BYTES:
            return _NO_MEMBERS
        members = self._stored.cached(metadata.path, metadata)
        return await self._stored.read(metadata.path, metadata) if members is None else members

    async def _interpret(self, path: str, metadata: Metadata, content: bytes) -> Members:
        return await self._parse_members(content, metadata.content_type, self._base_url + path)

    def _node(self, group: str, path: ResourcePath) -> str:
        """The group's IRI as its document spells it, however the rules spell it."""
        _, separator, fragment = group.partition("#")
        return f"{self._base_url}{path}{separator}{fragment}"

    # --- documents of other servers -------------------------------------------------------

    async def _remote_members(self, groups: Iterable[str]) -> dict[str, frozenset[str]]:
        deadline_ms = self._clock.now_ms() + REMOTE_BUDGET_MS if groups else 0
        found: dict[str, frozenset[str]] = {}
        for group in groups:
            members = await self._fetch(group.partition("#")[0], deadline_ms)
            found[group] = members.get(group, frozenset())
        return found

    async def _fetch(self, url: str, deadline_ms: int) -> Members:
        now_ms = self._clock.now_ms()
        known = self._fetched.get(url, now_ms)
        if known is not None:
            return known
        if now_ms >= deadline_ms:
            return _NO_MEMBERS
        size_bytes = 0
        try:
            document = await self._foreign.fetch(url, Purpose.GROUP)
            size_bytes = len(document.content)
            members = await self._parse_members(
                document.content, document.media_type, document.final_url
            )
            lifetime_ms = REMOTE_FRESH_MS
        except _TRANSIENT:
            members, lifetime_ms = _NO_MEMBERS, REMOTE_RETRY_MS
        # Counted from the end of the fetch, which may take as long as the document stays in use.
        self._fetched.put(
            url,
            members,
            expires_at_ms=self._clock.now_ms() + lifetime_ms,
            weight=size_bytes + CACHE_OVERHEAD_BYTES,
        )
        return members

    async def _parse_members(self, content: bytes, content_type: str, base_iri: str) -> Members:
        """The members that the content states; none if it is not RDF. Raises UnknownContext or
        OutboundError if a JSON-LD context is not available."""
        try:
            graph = await self._parse(content, content_type, base_iri)
        except UnknownContext:  # also a RequestRefused, but a temporary one
            raise
        except RequestRefused:
            return _NO_MEMBERS
        return members_of_groups(graph)


def _usable(elsewhere: set[ResourcePath]) -> tuple[ResourcePath, ...]:
    """The documents to use, of all that the rules name."""
    # Nothing is stored at deeper paths, and paths_to_read refuses them.
    possible = sorted(path for path in elsewhere if path.count("/") <= MAX_DEPTH)
    return tuple(possible[:MAX_DOCUMENTS_ELSEWHERE])


def _precondition(path: ResourcePath, metadata: Metadata | None) -> Precondition:
    return Absent(path) if metadata is None else AtVersion(path, metadata.version)


def members_of_groups(graph: Graph) -> Members:
    """The members of every group of a document, under their canonical names."""
    has_member = Iri(vocab.VCARD_HAS_MEMBER)
    return {
        group.value: frozenset(map(agent_name, graph.iris(group, has_member)))
        for group in graph.subjects(has_member)
        if isinstance(group, Iri)
    }


class NoGroups(GroupMemberships):
    """Knows the members of no group."""

    def __init__(self) -> None:
        """Reads nothing."""

    async def of(
        self,
        names: frozenset[str],  # noqa: ARG002
        groups: frozenset[str],  # noqa: ARG002
        *,
        storage: ResourcePath | None,  # noqa: ARG002
        readable: AskReadable | None,  # noqa: ARG002
    ) -> Memberships:
        return NO_MEMBERSHIPS
