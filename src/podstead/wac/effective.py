"""Finds the effective ACL of a resource (WAC, "Effective ACL Resource").

The closest existing ACL decides alone (W-10): the resource's own ACL with its ``acl:accessTo``
rules, or else the ACL of the closest container that has one, with its ``acl:default`` rules. Levels
never add up, and resources that do not exist are treated alike. An ACL decides even if it says
nothing about the resource (W-8) or cannot be parsed (W-7); then it grants nothing. A failure to
read it is an error and never taken for absence: the rules of a parent could grant access that the
ACL denies.

The result contains its preconditions, which a write has checked again in its transaction. Parsed
ACLs are cached by path and version, and the version changes with every write (W-5).
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial

from podstead.core import identifiers, vocab
from podstead.core.caches import ExpiringCache, memoize_short_keys
from podstead.core.clock import Clock
from podstead.core.errors import OutboundError, RequestRefused, TargetTooLong
from podstead.core.identifiers import ResourcePath
from podstead.core.value import Value
from podstead.outbound.foreign_documents import DocumentFetcher, Purpose
from podstead.rdf.errors import UnknownContext
from podstead.rdf.graph import Graph, Iri, RdfParser
from podstead.storage.document_reader import DocumentReader
from podstead.storage.protocol import DocumentSource, Snapshot
from podstead.storage.records import Absent, AtVersion, Metadata, Precondition
from podstead.wac.acl import DENYING_ACL, agent_name, earliest, local_path, read_acl
from podstead.wac.codes import WacCodes
from podstead.wac.decision import NO_RULES, Rules
from podstead.wac.modes import governed

MAX_DEPTH = 100
"""How many levels a path may have: a decision looks at every container above the resource."""

CACHE_OVERHEAD_BYTES = 1024
"""What a cached document occupies besides its content: key, objects and entry, rounded up."""


class EffectiveAcl(Value):
    """The rules that apply to one resource, with their preconditions.

    Those of ``description`` say who may read a container without its members. ``cacheable`` is true
    if they stay the same until the store changes, or the time ``until_ms`` comes.
    """

    rules: Rules
    preconditions: tuple[Precondition, ...]
    cacheable: bool = True
    description: Rules = NO_RULES
    until_ms: int | None = None

    @property
    def storage(self) -> identifiers.ResourcePath | None:
        """The storage that contains the ACL; ``None`` if there is no ACL or no storage."""
        decisive = self.preconditions[-1]
        return identifiers.storage_root(decisive.path) if isinstance(decisive, AtVersion) else None


class _KnownAcl(Value):
    """One version of an ACL: the rules for its subject, for everything below, and for the subject
    without its members."""

    own: Rules
    inherited: Rules
    version: AtVersion
    cacheable: bool = True
    description: Rules = NO_RULES


class _Surroundings(Value):
    """What a decision about a resource depends on besides the resource itself.

    ``paths`` are the resource, the containers above it, the slash variants of all of these (P-47,
    P-49), and the ACLs that may be the effective one. ``acls`` are these ACLs, the closest first,
    and ``absences`` are the preconditions that they do not exist.
    """

    paths: tuple[identifiers.ResourcePath, ...]
    acls: tuple[identifiers.ResourcePath, ...]
    absences: tuple[Absent, ...]


@memoize_short_keys
def _surroundings(subject: identifiers.ResourcePath) -> _Surroundings:
    """The surroundings of a resource that is not auxiliary.

    A document has the surroundings of its container and three paths more, each the container's path
    followed by a name.
    """
    if not identifiers.is_container(subject):
        above = _surroundings(identifiers.parent_container(subject) or identifiers.ROOT)
        acl = identifiers.acl_of(subject)
        return _Surroundings(
            (subject, identifiers.slash_variant(subject), acl, *above.paths),
            (acl, *above.acls),
            (Absent(acl), *above.absences),
        )
    places = (subject, *identifiers.ancestors(subject))
    variants = (identifiers.slash_variant(place) for place in places if place != identifiers.ROOT)
    acls = tuple(map(identifiers.acl_of, places))
    # The slash variant of a container can be the path of an ACL.
    return _Surroundings(
        tuple(dict.fromkeys((*places, *variants, *acls))), acls, tuple(map(Absent, acls))
    )


def paths_to_read(target: identifiers.ResourcePath) -> tuple[identifiers.ResourcePath, ...]:
    """Every path whose metadata a decision about ``target`` needs, for one snapshot.

    The target and, if it is auxiliary, its subject; each container above; the slash variants of all
    of these (P-47, P-49); and the ACLs that may be the effective one. Raises TargetTooLong for a
    target more than ``MAX_DEPTH`` levels below the server's root.
    """
    if target.count("/") > MAX_DEPTH:
        raise TargetTooLong(WacCodes.TOO_DEEP, number=MAX_DEPTH)
    names = [target]
    while identifiers.auxiliary_kind(names[-1]) is not None:
        names.append(identifiers.subject_of(names[-1]))
    paths = _surroundings(names[-1]).paths
    return paths if len(names) == 1 else tuple(dict.fromkeys((*names, *paths)))


def acl_paths(subject: identifiers.ResourcePath) -> tuple[identifiers.ResourcePath, ...]:
    """The paths at which the effective ACL of a subject may be, the closest first."""
    return _surroundings(subject).acls


class EffectiveAcls:
    """Finds and parses effective ACLs."""

    def __init__(
        self,
        source: DocumentSource,
        parse: RdfParser,
        *,
        base_url: str,
        cache_bytes: int = 32 * 1024 * 1024,
    ) -> None:
        """``base_url`` is the server's origin without a trailing slash; ``cache_bytes`` bounds the
        cache of parsed ACLs, by the length of their documents."""
        self.source = source
        self._parse = parse
        self._base_url = base_url
        self._acls: DocumentReader[_KnownAcl] = DocumentReader(
            source, self._interpret, kind="access rules", weigh=cache_weight, max_weight=cache_bytes
        )

    def over(self, source: DocumentSource) -> "EffectiveAcls":
        """The same finder on another source, such as an earlier snapshot, sharing the cache."""
        other = copy(self)
        other.source = source
        other._acls = self._acls.over(source)  # noqa: SLF001 - of this class
        return other

    async def find(self, target: identifiers.ResourcePath, snapshot: Snapshot) -> EffectiveAcl:
        """The effective ACL that decides about ``target``.

        ``snapshot`` holds :func:`paths_to_read` of the target or of something below it; a newer
        one is read if an ACL has changed since. Raises StorageError, and Overloaded if ACLs
        change faster than they can be read.
        """
        subject = governed(target).subject
        depth, metadata = _closest(subject, snapshot)
        if metadata is None:
            return EffectiveAcl(NO_RULES, _surroundings(subject).absences)
        acl = self._acls.cached(metadata.path, metadata)
        if acl is not None:
            return _effective(subject, depth, acl)
        # If the ACL has been superseded, all of this is repeated: rules of two moments together
        # could grant what was not granted at either.
        return await self._acls.retry(acl_paths(subject), partial(self._read, subject), snapshot)

    async def _read(self, subject: identifiers.ResourcePath, snapshot: Snapshot) -> EffectiveAcl:
        depth, metadata = _closest(subject, snapshot)
        if metadata is None:
            return EffectiveAcl(NO_RULES, _surroundings(subject).absences)
        try:
            acl = await self._acls.read(metadata.path, metadata)
        except UnknownContext:
            # Not cached: the context may become available again.
            version = AtVersion(metadata.path, metadata.version)
            acl = _KnownAcl(NO_RULES, NO_RULES, version, cacheable=False)
        return _effective(subject, depth, acl)

    async def _interpret(self, path: str, metadata: Metadata, content: bytes) -> _KnownAcl:
        try:
            graph = await self._parse(content, metadata.content_type, self._base_url + path)
        except UnknownContext:
            raise
        except RequestRefused:
            # W-7: fail closed for everybody; the owner still has Control by the owner rule.
            document = DENYING_ACL
        else:
            document = read_acl(
                graph, subject_url=self._base_url + identifiers.subject_of(metadata.path)
            )
        return _KnownAcl(
            own=Rules.of(document.about_subject()),
            inherited=Rules.of(document.about_contents()),
            version=AtVersion(metadata.path, metadata.version),
            description=Rules.of(document.about_description()),
        )


def cache_weight(metadata: Metadata, _: object) -> int:
    """What the result of reading an ACL or a group document weighs in a cache."""
    return metadata.size_bytes + CACHE_OVERHEAD_BYTES


def _effective(subject: identifiers.ResourcePath, depth: int, acl: _KnownAcl) -> EffectiveAcl:
    rules, description = (acl.inherited, NO_RULES) if depth else (acl.own, acl.description)
    preconditions: tuple[Precondition, ...] = (
        *_surroundings(subject).absences[:depth],
        acl.version,
    )
    return EffectiveAcl(rules, preconditions, acl.cacheable, description)


def _closest(subject: identifiers.ResourcePath, snapshot: Snapshot) -> tuple[int, Metadata | None]:
    """How many levels up the closest ACL is, and its metadata.

    Raises KeyError for a path that is not in the snapshot, because that does not mean absence.
    """
    for depth, path in enumerate(acl_paths(subject)):
        metadata = snapshot[path]
        if metadata is not None:
            return depth, metadata
    return 0, None


# Looks up whether an agent is a member of the groups that rules name (``acl:agentGroup``, W-14).
#
# A group is a node in a document, and its members are the objects of its ``vcard:hasMember``. What
# a rule grants reveals who is a member, so a document is used only for rules whose owner may read
# it (decision 0014):
#
# - in the storage of the rules, always;
# - elsewhere on this server, if its own rules let that owner or everybody read it;
# - on another server, always, because it is fetched without credentials.
#
# The rules of a group document are evaluated with the groups of its own storage only, so evaluation
# always ends. A foreign document is used for a few seconds. A document that cannot be fetched or
# parsed has no members, while a failure of the store is an error.

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
