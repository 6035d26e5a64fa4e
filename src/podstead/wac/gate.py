"""Authorizes every operation on a resource.

The requirements come from :mod:`podstead.wac.modes`, the identity from authentication, and the
stored state from one snapshot. The gate finds the rules and grants the operation, with the
preconditions of the decision, or refuses it. A refusal depends on the identity alone: it is
NotAuthenticated without one and AccessDenied otherwise, with the same text whether or not the
target exists (W-60, W-64). Nothing bypasses the rules, and access that no rule grants is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from itertools import chain
from typing import Protocol

import msgspec

from podstead.core.errors import AccessDenied, NotAuthenticated
from podstead.core.identifiers import ResourcePath, storage_root
from podstead.core.identity import Identity
from podstead.core.value import Value
from podstead.storage.protocol import DocumentSource, Snapshot
from podstead.storage.records import Precondition
from podstead.wac.acl import agent_name, origin_of
from podstead.wac.decision import Reach, Requester, Rules, agent_modes, reach_of
from podstead.wac.effective import EffectiveAcl, EffectiveAcls
from podstead.wac.groups import NO_MEMBERSHIPS, GroupMemberships, Memberships, Readable
from podstead.wac.modes import (
    ALL_MODES,
    NO_MODES,
    Governed,
    Mode,
    Modes,
    Requirements,
    governed,
    wac_allow,
)

OPAQUE_ORIGIN = "null"
"""Stands for every Origin that is not a web origin, such as that of a sandboxed page."""


class StorageOwners(Protocol):
    """Knows the owner of each storage. The gate asks for every identity without Control, so answers
    should be cheap."""

    async def owner_of(self, storage: ResourcePath) -> str | None:
        """The owner's IRI; ``None`` if the path is not the root of a storage. Raises
        StorageError."""


class AclFinder(Protocol):
    """Finds the rules that apply (:class:`podstead.wac.effective.EffectiveAcls`)."""

    async def find(self, target: ResourcePath, snapshot: Snapshot) -> EffectiveAcl: ...


class _FoundOnce:
    """Finds the rules of each resource once, and the owner of each storage."""

    def __init__(self, acls: AclFinder, owners: StorageOwners) -> None:
        self._acls = acls
        self._owners = owners
        self._found: dict[ResourcePath, EffectiveAcl] = {}
        self._known: dict[ResourcePath, str | None] = {}

    async def find(self, target: ResourcePath, snapshot: Snapshot) -> EffectiveAcl:
        subject = governed(target).subject
        if subject not in self._found:
            self._found[subject] = await self._acls.find(subject, snapshot)
        return self._found[subject]

    async def owner_of(self, storage: ResourcePath) -> str | None:
        if storage not in self._known:
            self._known[storage] = await self._owners.owner_of(storage)
        return self._known[storage]


class GrantedAccess(Value):
    """What the agent (``user``) and everyone (``public``) may do with the target of a request.

    ``user`` includes the public modes, and both include Append if they include Write. For an ACL
    they are all modes or none (W-54). ``preconditions`` are the versions or absence of the ACLs and
    group documents that the decision depends on; a write has them checked again when it is
    committed. ``lasting`` is true if only a change of the store can change the decision.
    """

    user: Modes
    public: Modes
    preconditions: tuple[Precondition, ...] = ()
    lasting: bool = True

    def allows(self, mode: Mode) -> bool:
        return mode in self.user

    @property
    def public_may_read(self) -> bool:
        return Mode.READ in self.public

    @property
    def wac_allow(self) -> str:
        """The value of the ``WAC-Allow`` header."""
        return wac_allow(self.user, self.public)

    def on(self, place: Governed) -> GrantedAccess:
        """What these modes on a subject mean on a path that it governs (W-40, W-54)."""
        if not place.is_acl:
            return self
        return GrantedAccess(
            _on_acl(self.user), _on_acl(self.public), self.preconditions, self.lasting
        )


class Basis(msgspec.Struct, frozen=True):
    """The rules that apply to a target, and the agent in their terms; ``None`` for the public."""

    rules: Rules
    requester: Requester | None


class Gate:
    """Decides about every operation."""

    def __init__(
        self, *, acls: EffectiveAcls, groups: GroupMemberships, owners: StorageOwners
    ) -> None:
        self._source_acls = acls
        self._acls: AclFinder = acls
        self._group_acls = acls
        self._groups = groups
        self._owners = owners

    def over(self, source: DocumentSource) -> Gate:
        """The same gate on the ACLs of another source, with the current groups and owners."""
        other = Gate(acls=self._source_acls.over(source), groups=self._groups, owners=self._owners)
        other._group_acls = self._group_acls
        return other

    def for_many(self, source: DocumentSource) -> Gate:
        """As :meth:`over`, for many decisions about a few resources at one moment: their rules and
        owners are looked up once."""
        other = self.over(source)
        once = _FoundOnce(other._acls, self._owners)  # noqa: SLF001 - of this class
        other._acls = other._owners = once  # noqa: SLF001 - of this class
        return other

    async def authorize(
        self,
        agent: Identity | None,
        origin: str | None,
        target: ResourcePath,
        requirements: Requirements,
        snapshot: Snapshot,
    ) -> GrantedAccess:
        """Grant the operation, with its preconditions, or refuse it.

        ``origin`` is the Origin header as received; ``snapshot`` holds
        :func:`podstead.wac.effective.paths_to_read` of the target. Raises NotAuthenticated for
        the public and AccessDenied for an identity; StorageError and Overloaded if the rules
        cannot be read; ValueError if there are no requirements, because only OPTIONS has none and
        it never gets here (W-31).
        """
        place = governed(target)
        held = await self._held(agent, origin, place.subject, snapshot)
        holdings = {place.subject: held}
        await self._check(requirements, agent, origin, snapshot, holdings)
        if len(holdings) > 1:
            lasting = all(other.lasting for other in holdings.values())
            held = GrantedAccess(held.user, held.public, _preconditions(holdings), lasting)
        return held.on(place)

    async def require(
        self,
        requirements: Requirements,
        agent: Identity | None,
        origin: str | None,
        snapshot: Snapshot,
    ) -> tuple[Precondition, ...]:
        """The same as :meth:`authorize` for operations without a single target; returns the
        preconditions."""
        holdings: dict[ResourcePath, GrantedAccess] = {}
        await self._check(requirements, agent, origin, snapshot, holdings)
        return _preconditions(holdings)

    async def grant(
        self, agent: Identity | None, origin: str | None, target: ResourcePath, snapshot: Snapshot
    ) -> GrantedAccess:
        """What the agent may do with the target, which may be nothing; refuses nothing."""
        place = governed(target)
        held = await self._held(agent, origin, place.subject, snapshot)
        return held.on(place)

    async def grant_on_description(
        self, agent: Identity | None, origin: str | None, target: ResourcePath, snapshot: Snapshot
    ) -> GrantedAccess:
        """What the agent may do with a container without its members, in addition to :meth:`grant`;
        ``target`` is the container or its description. Only Read matters."""
        subject = governed(target).subject
        return await self._held(agent, origin, subject, snapshot, of_description=True)

    async def basis(
        self, agent: Identity | None, origin: str | None, target: ResourcePath, snapshot: Snapshot
    ) -> Basis:
        """What :meth:`grant` decides on, for explaining the decision. Raises the same errors."""
        subject = governed(target).subject
        effective = await self._acls.find(subject, snapshot)
        if agent is None:
            return Basis(effective.rules, None)
        names = _names(agent.iri, agent.aliases)
        memberships = await self._memberships(names, effective)
        requester = Requester(
            names,
            memberships.groups,
            canonical_origin(origin),
            owns_storage=await self._owns(names, subject),
        )
        return Basis(effective.rules, requester)

    async def reach(
        self, agent: Identity | None, origin: str | None, target: ResourcePath, snapshot: Snapshot
    ) -> Reach | None:
        """How far the right to read the target reaches; ``None`` if the agent may not know.

        An agent with Control knows the rules. An agent with Read knows whether everyone has it,
        from the ``WAC-Allow`` header.
        """
        subject = governed(target).subject
        held = await self._held(agent, origin, subject, snapshot)
        if not held.allows(Mode.CONTROL):
            known = held.allows(Mode.READ) and held.public_may_read
            return Reach.EVERYONE if known else None
        effective = await self._acls.find(subject, snapshot)
        owner = await self._owner_of(subject)
        return reach_of(effective.rules, () if owner is None else (owner,))

    async def owner_of(self, target: ResourcePath) -> str | None:
        """The name of the owner of the target's storage."""
        return await self._owner_of(target)

    async def another_owns(self, agent: Identity, target: ResourcePath) -> bool:
        """Whether somebody else owns the target's storage."""
        storage = storage_root(target)
        owner = None if storage is None else await self._owners.owner_of(storage)
        # Mostly the owner asks, under the exact name in the pod's record.
        if owner is None or owner == agent.iri:
            return False
        return agent_name(owner) not in _names(agent.iri, agent.aliases)

    async def _check(
        self,
        requirements: Requirements,
        agent: Identity | None,
        origin: str | None,
        snapshot: Snapshot,
        holdings: dict[ResourcePath, GrantedAccess],
    ) -> None:
        """Check every requirement, and add the grant on each subject to ``holdings``."""
        if not requirements:
            raise ValueError("An operation without requirements must not be authorized")
        for requirement in requirements:
            subject = requirement.subject
            held = holdings.get(subject)
            if held is None:
                held = holdings[subject] = await self._held(agent, origin, subject, snapshot)
            if requirement.mode not in held.user:
                raise NotAuthenticated if agent is None else AccessDenied

    async def _held(
        self,
        agent: Identity | None,
        origin: str | None,
        subject: ResourcePath,
        snapshot: Snapshot,
        *,
        of_description: bool = False,
    ) -> GrantedAccess:
        """The modes on a resource that is not auxiliary, or on its description."""
        effective = await self._acls.find(subject, snapshot)
        if of_description:
            effective = msgspec.structs.replace(effective, rules=effective.description)
        rules, preconditions = effective.rules, effective.preconditions
        if agent is None:
            return GrantedAccess(rules.public, rules.public, preconditions, effective.lasting)
        names = _names(agent.iri, agent.aliases)
        memberships = NO_MEMBERSHIPS
        if rules.groups:
            memberships = await self._memberships(names, effective)
        return await self._held_by(names, origin, subject, effective, memberships)

    async def _memberships(self, names: frozenset[str], effective: EffectiveAcl) -> Memberships:
        storage = effective.storage
        readable = partial(self._group_is_readable, storage)
        return await self._groups.of(
            names, effective.rules.groups, storage=storage, readable=readable
        )

    async def _held_by(
        self,
        names: frozenset[str],
        origin: str | None,
        subject: ResourcePath,
        effective: EffectiveAcl,
        memberships: Memberships,
    ) -> GrantedAccess:
        """The modes of an agent with these names and memberships under the rules."""
        rules = effective.rules
        asked_from = canonical_origin(origin) if rules.name_origins else None
        held = agent_modes(rules, Requester(names, memberships.groups, asked_from))
        # Ownership adds Control and nothing else, so it is not looked up for agents that have it.
        if Mode.CONTROL not in held and await self._owns(names, subject):
            owner = Requester(names, memberships.groups, asked_from, owns_storage=True)
            held = agent_modes(rules, owner)
        return GrantedAccess(
            held,
            rules.public,
            effective.preconditions + memberships.preconditions,
            effective.lasting and memberships.lasting,
        )

    async def _group_is_readable(
        self, storage: ResourcePath | None, document: ResourcePath, snapshot: Snapshot
    ) -> Readable:
        """Whether the owner of a storage may read a group document outside it, so that rules in the
        storage reveal only what their owner may know.

        If the rules of the document name groups, those in its own storage apply.
        """
        place = governed(document)
        effective = await self._group_acls.find(place.subject, snapshot)
        rules = effective.rules
        held = GrantedAccess(rules.public, rules.public, effective.preconditions, effective.lasting)
        if not _reveals(held.on(place)) and storage is not None:
            owner = await self._owners.owner_of(storage)
            if owner is not None:
                names = _names(owner, frozenset())
                memberships = await self._groups.of(
                    names, rules.groups, storage=effective.storage, readable=None
                )
                held = await self._held_by(names, None, place.subject, effective, memberships)
        return Readable(_reveals(held.on(place)), held.preconditions, held.lasting)

    async def _owns(self, names: frozenset[str], subject: ResourcePath) -> bool:
        """Whether one of the names is that of the owner of the resource's storage."""
        owner = await self._owner_of(subject)
        return owner is not None and owner in names

    async def _owner_of(self, subject: ResourcePath) -> str | None:
        """The name of the owner of the resource's storage, if it is in one."""
        storage = storage_root(subject)
        owner = None if storage is None else await self._owners.owner_of(storage)
        return None if owner is None else agent_name(owner)


@lru_cache(maxsize=4096)
def _names(agent: str, aliases: frozenset[str]) -> frozenset[str]:
    return frozenset(map(agent_name, (agent, *aliases)))


def canonical_origin(origin: str | None) -> str | None:
    """The Origin of a request as rules name it; ``None`` only if there is none."""
    return None if origin is None else origin_of(origin) or OPAQUE_ORIGIN


def _reveals(held: GrantedAccess) -> bool:
    """Whether the agent may know the content: with Control, it can grant itself Read."""
    return held.allows(Mode.READ) or held.allows(Mode.CONTROL)


def _on_acl(modes: Modes) -> Modes:
    """The modes on an ACL that follow from those on its subject (W-40, W-54)."""
    return ALL_MODES if Mode.CONTROL in modes else NO_MODES


def _preconditions(holdings: Mapping[ResourcePath, GrantedAccess]) -> tuple[Precondition, ...]:
    """The preconditions of all grants, each once."""
    parts = [held.preconditions for held in holdings.values()]
    return tuple(dict.fromkeys(chain.from_iterable(parts)))
