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

from copy import copy
from dataclasses import dataclass
from functools import partial

from podstead.core.errors import RequestRefused, TargetTooLong
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
from podstead.storage.document_reader import DocumentReader
from podstead.storage.protocol import DocumentSource, Snapshot
from podstead.storage.records import Absent, AtVersion, Metadata, Precondition
from podstead.wac.acl import DENYING_ACL, read_acl
from podstead.wac.decision import NO_RULES, Rules
from podstead.wac.modes import governed

MAX_DEPTH = 100
"""How deep resources may lie: deciding about one takes a look at everything above it."""

CACHE_OVERHEAD_BYTES = 1024
"""What a remembered document costs beside its content: key, objects and place, rounded up."""


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
        source: DocumentSource,
        parse: RdfParser,
        *,
        base_url: str,
        cache_bytes: int = 32 * 1024 * 1024,
    ) -> None:
        """``base_url`` is the server's origin without a trailing slash; ``cache_bytes`` bounds the
        ACLs that are kept parsed, by the length of their documents."""
        self._parse = parse
        self._base_url = base_url
        self._acls: DocumentReader[_KnownAcl] = DocumentReader(
            source, self._interpret, kind="access rules", weigh=cache_weight, max_weight=cache_bytes
        )

    def over(self, source: DocumentSource) -> EffectiveAcls:
        """The same on another source, such as one of an earlier moment, with the same cache."""
        other = copy(self)
        other._acls = self._acls.over(source)  # noqa: SLF001 - of this class
        return other

    async def find(self, target: ResourcePath, snapshot: Snapshot) -> EffectiveAcl:
        """The effective ACL that decides about ``target``.

        ``snapshot`` holds :func:`paths_to_read` of the target or of something below it; a newer
        one is read if an ACL has changed since. Raises StorageError, and Overloaded if ACLs
        change faster than they can be read.
        """
        subject = governed(target).subject
        depth, metadata = _closest(subject, snapshot)
        if metadata is None:
            return EffectiveAcl(NO_RULES, _absences(subject))
        acl = self._acls.cached(metadata.path, metadata)
        if acl is not None:
            return _effective(subject, depth, acl)
        # If the ACL is superseded, the whole walk is repeated: rules of different moments together
        # could grant what neither moment granted.
        return await self._acls.retry(acl_paths(subject), partial(self._read, subject), snapshot)

    async def _read(self, subject: ResourcePath, snapshot: Snapshot) -> EffectiveAcl:
        depth, metadata = _closest(subject, snapshot)
        if metadata is None:
            return EffectiveAcl(NO_RULES, _absences(subject))
        try:
            acl = await self._acls.read(metadata.path, metadata)
        except UnknownContext:
            # Not cached: the context may become available again.
            version = AtVersion(metadata.path, metadata.version)
            acl = _KnownAcl(NO_RULES, NO_RULES, version, lasting=False)
        return _effective(subject, depth, acl)

    async def _interpret(self, path: str, metadata: Metadata, content: bytes) -> _KnownAcl:
        try:
            graph = await self._parse(content, metadata.content_type, self._base_url + path)
        except UnknownContext:
            raise
        except RequestRefused:
            # W-7: fail closed for all; the owner rule keeps the owner's Control.
            document = DENYING_ACL
        else:
            document = read_acl(graph, subject_url=self._base_url + subject_of(metadata.path))
        return _KnownAcl(
            own=Rules.of(document.about_subject()),
            inherited=Rules.of(document.about_contents()),
            version=AtVersion(metadata.path, metadata.version),
        )


def cache_weight(metadata: Metadata, _: object) -> int:
    """What the result of reading an ACL or a group document weighs in a cache."""
    return metadata.size_bytes + CACHE_OVERHEAD_BYTES


def _effective(subject: ResourcePath, depth: int, acl: _KnownAcl) -> EffectiveAcl:
    rules = acl.inherited if depth else acl.own
    return EffectiveAcl(rules, (*_absences(subject)[:depth], acl.version), acl.lasting)


def _closest(subject: ResourcePath, snapshot: Snapshot) -> tuple[int, Metadata | None]:
    """How many levels up the closest ACL is, and its metadata.

    A path that the snapshot does not hold raises KeyError: not having looked is not absence.
    """
    for depth, path in enumerate(acl_paths(subject)):
        metadata = snapshot[path]
        if metadata is not None:
            return depth, metadata
    return 0, None
