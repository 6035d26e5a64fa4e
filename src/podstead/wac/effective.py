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

from __future__ import annotations

from copy import copy
from functools import partial

from podstead.core import identifiers
from podstead.core.caches import memoize_short_keys
from podstead.core.errors import RequestRefused, TargetTooLong
from podstead.core.value import Value
from podstead.rdf.errors import UnknownContext
from podstead.rdf.graph import RdfParser
from podstead.storage.document_reader import DocumentReader
from podstead.storage.protocol import DocumentSource, Snapshot
from podstead.storage.records import Absent, AtVersion, Metadata, Precondition
from podstead.wac.acl import DENYING_ACL, read_acl
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

    def over(self, source: DocumentSource) -> EffectiveAcls:
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
