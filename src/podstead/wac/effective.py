"""Which rules apply to a resource? The walk to its effective ACL (WAC, "Effective ACL Resource").

The closest existing ACL decides alone (W-10): the resource's own with its ``acl:accessTo`` rules,
else that of the closest container that has one with its ``acl:default`` rules; levels never add up
and the walk is the same for resources that do not exist. An ACL that is not there means climbing
on. An ACL that is there decides even if it says nothing about the resource (W-8) or cannot be
understood (W-7): then it grants nothing. Trouble in reading is an error, never absence: falling
through to a parent's rules could give access that the ACL takes away.

With its answer comes what the answer relied on, so that a write can have it checked again in its
transaction. Parsed ACLs are kept by path and version, which changes with every write (W-5).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from podstead.core.bounded_cache import BoundedCache
from podstead.core.errors import Overloaded, RequestRefused, TargetTooLong
from podstead.core.identifiers import (
    ROOT,
    ResourcePath,
    acl_of,
    ancestors,
    auxiliary_kind,
    slash_variant,
    storage_root,
    subject_of,
)
from podstead.core.memoization import memoize_short_keys
from podstead.rdf.errors import UnknownContext
from podstead.rdf.parser import RdfParser
from podstead.storage.protocol import OpenBody, Snapshot, whole_body
from podstead.storage.records import Absent, AtVersion, Metadata, Precondition, Version
from podstead.wac.acl import DENYING_ACL, AclDocument, read_acl
from podstead.wac.decision import NO_RULES, Rules
from podstead.wac.modes import governed

MAX_ATTEMPTS = 8
"""How often documents are read again because they changed between looking and reading."""

MAX_DEPTH = 100
"""How deep resources may lie: deciding about one takes a look at everything above it."""

CACHE_OVERHEAD_BYTES = 1024
"""What a remembered document costs beside its content: key, objects and place, rounded up."""


class AclSource(Protocol):
    """Where ACLs and group documents are kept; every resource store is one."""

    async def read_metadata(self, paths: Iterable[ResourcePath]) -> Snapshot: ...

    async def open_body(self, metadata: Metadata) -> OpenBody | None: ...


@dataclass(frozen=True, slots=True)
class EffectiveAcl:
    """The rules that apply to one resource, and what was relied on to find them.

    ``lasting`` tells that they stay the same until the store changes.
    """

    rules: Rules
    preconditions: tuple[Precondition, ...]
    lasting: bool = True

    @property
    def storage(self) -> ResourcePath | None:
        """The storage that the ACL lies in, whose owner its rules are; ``None`` for none."""
        decisive = self.preconditions[-1]
        return storage_root(decisive.path) if isinstance(decisive, AtVersion) else None


@dataclass(frozen=True, slots=True)
class _KnownAcl:
    """One version of an ACL, in both ways of applying."""

    own: Rules
    inherited: Rules
    version: AtVersion
    lasting: bool = True


@memoize_short_keys
def paths_to_read(target: ResourcePath) -> tuple[ResourcePath, ...]:
    """Every path whose metadata decides about an operation on ``target``, for one snapshot.

    The target and, for an auxiliary, its subject; each container above; the slash twin of all of
    these (P-47, P-49); and the ACLs that the walk may meet. Raises TargetTooLong for a target
    more than ``MAX_DEPTH`` levels below the server's root.
    """
    if target.count("/") > MAX_DEPTH:
        raise TargetTooLong(f"A path can have at most {MAX_DEPTH} levels")
    names = [target]
    while auxiliary_kind(names[-1]) is not None:
        names.append(subject_of(names[-1]))
    subject = names[-1]
    places = [subject, *ancestors(subject)]
    twins = [slash_variant(place) for place in places if place != ROOT]
    return tuple(dict.fromkeys((*names, *places, *twins, *acl_paths(subject))))


@memoize_short_keys
def acl_paths(subject: ResourcePath) -> tuple[ResourcePath, ...]:
    """The paths at which the effective ACL of a subject may lie, the deciding order first."""
    return tuple(acl_of(place) for place in (subject, *ancestors(subject)))


@memoize_short_keys
def _absences(subject: ResourcePath) -> tuple[Absent, ...]:
    return tuple(Absent(path) for path in acl_paths(subject))


class EffectiveAcls:
    """Finds and reads effective ACLs."""

    def __init__(
        self,
        source: AclSource,
        parse: RdfParser,
        *,
        base_url: str,
        cache_bytes: int = 32 * 1024 * 1024,
    ) -> None:
        """``base_url`` is the server's origin without a trailing slash; ``cache_bytes`` bounds the
        ACLs that are kept parsed, by the length of their documents."""
        self._source = source
        self._parse = parse
        self._base_url = base_url
        self._known: BoundedCache[tuple[ResourcePath, Version], _KnownAcl] = BoundedCache(
            cache_bytes
        )

    def over(self, source: AclSource) -> EffectiveAcls:
        """The same on another source, such as one of a former moment, sharing what is parsed."""
        other = EffectiveAcls(source, self._parse, base_url=self._base_url, cache_bytes=0)
        other._known = self._known  # by version, and versions come but once
        return other

    async def find(self, target: ResourcePath, snapshot: Snapshot) -> EffectiveAcl:
        """The effective ACL that decides about ``target``.

        ``snapshot`` holds :func:`paths_to_read` of the target or of something below it; a newer
        one is read if an ACL has changed since. Raises StorageError, and Overloaded if ACLs
        change faster than they can be read.
        """
        subject = governed(target).subject
        absences = _absences(subject)
        for _ in range(MAX_ATTEMPTS):
            depth, metadata = _closest(subject, snapshot)
            if metadata is None:
                return EffectiveAcl(NO_RULES, absences)
            acl = self._known.get((metadata.path, metadata.version)) or await self._read(metadata)
            if acl is not None:
                rules = acl.inherited if depth else acl.own
                return EffectiveAcl(rules, (*absences[:depth], acl.version), acl.lasting)
            # All of the walk again: rules of different moments, put together, could grant what
            # neither moment granted.
            snapshot = await self._source.read_metadata(acl_paths(subject))
        raise Overloaded("The access rules are changing too fast to be read; try again")

    async def _read(self, metadata: Metadata) -> _KnownAcl | None:
        """Read one version of an ACL; ``None`` if it is no longer the current one."""
        body = await self._source.open_body(metadata)
        if body is None:
            return None
        version = AtVersion(metadata.path, metadata.version)
        try:
            document = await self._understand(metadata, await whole_body(body))
        except UnknownContext:
            # Not remembered, and under the key of other rules: the context may come back.
            return _KnownAcl(NO_RULES, NO_RULES, version, lasting=False)
        name = f"{metadata.path} {metadata.version}"
        acl = _KnownAcl(
            own=Rules.of(document.about_subject(), key=f"{name} own"),
            inherited=Rules.of(document.about_contents(), key=f"{name} inherited"),
            version=version,
        )
        key = (metadata.path, metadata.version)
        self._known.put(key, acl, weight=metadata.size_bytes + CACHE_OVERHEAD_BYTES)
        return acl

    async def _understand(self, metadata: Metadata, content: bytes) -> AclDocument:
        base_iri = self._base_url + metadata.path
        try:
            graph = await self._parse(content, metadata.content_type, base_iri)
        except UnknownContext:
            raise
        except RequestRefused:
            # W-7: fail closed for all; the owner rule keeps the owner's Control.
            return DENYING_ACL
        return read_acl(graph, subject_url=self._base_url + subject_of(metadata.path))


def _closest(subject: ResourcePath, snapshot: Snapshot) -> tuple[int, Metadata | None]:
    """How many levels up the closest ACL is, and its metadata.

    A path that the snapshot does not hold raises KeyError: not having looked is not absence.
    """
    for depth, path in enumerate(acl_paths(subject)):
        metadata = snapshot[path]
        if metadata is not None:
            return depth, metadata
    return 0, None
