"""Authorizes every operation on a resource.

The requirements come from :mod:`podstead.wac.modes`, the identity from authentication, and the
stored state from one snapshot. The gate finds the rules and grants the operation, with the
preconditions of the decision, or refuses it. A refusal depends on the identity alone: it is
NotAuthenticated without one and AccessDenied otherwise, with the same text whether or not the
target exists (W-60, W-64). Nothing bypasses the rules, and access that no rule grants is refused.
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain
from typing import Protocol

import msgspec
from msgspec.structs import replace

from podstead.core.clock import Clock
from podstead.core.errors import AccessDenied, InsufficientScope, NotAuthenticated
from podstead.core.identifiers import ResourcePath, storage_root
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.core.value import Value
from podstead.storage.protocol import DocumentSource, Snapshot
from podstead.storage.records import Precondition
from podstead.wac import effective as wac_effective
from podstead.wac import modes as wac_modes
from podstead.wac.acl import ConditionContext, agent_name, earliest, origin_of
from podstead.wac.decision import Audience, Requester, Rules, agent_modes, audience_of

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

    async def find(
        self, target: ResourcePath, snapshot: Snapshot
    ) -> wac_effective.EffectiveAcl: ...


class _MemoizedLookups:
    """Finds the rules of each resource once, and the owner of each storage."""

    def __init__(self, acls: AclFinder, owners: StorageOwners) -> None:
        self._acls = acls
        self._owners = owners
        self._found: dict[ResourcePath, wac_effective.EffectiveAcl] = {}
        self._known: dict[ResourcePath, str | None] = {}

    async def find(self, target: ResourcePath, snapshot: Snapshot) -> wac_effective.EffectiveAcl:
        subject = wac_modes.governed(target).subject
        if subject not in self._found:
            self._found[subject] = await self._acls.find(subject, snapshot)
        return self._found[subject]

    async def owner_of(self, storage: ResourcePath) -> str | None:
        if storage not in self._known:
            self._known[storage] = await self._owners.owner_of(storage)
        return self._known[storage]


class _Moment:
    """A clock that stands still."""

    def __init__(self, at_ms: int) -> None:
        self._at_ms = at_ms

    def now_ms(self) -> int:
        return self._at_ms


class GrantedAccess(Value):
    """What the agent (``user``) and everyone (``public``) may do with the target of a request.

    ``user`` includes the public modes, and both include Append if they include Write. For an ACL
    they are all modes or none (W-54). ``preconditions`` are the versions or absence of the ACLs and
    group documents that the decision depends on; a write has them checked again when it is
    committed. ``cacheable`` is true if only a change of the store can change the decision, or
    time: ``until_ms`` is when a condition of the rules next begins or ends to hold.
    """

    user: wac_modes.Modes
    public: wac_modes.Modes
    preconditions: tuple[Precondition, ...] = ()
    cacheable: bool = True
    withheld: wac_modes.Modes = wac_modes.NO_MODES
    """The modes that the rules grant the agent, and a ceiling does not."""
    asks_at: str | None = None
    """The address of the page on which the person can allow these."""
    until_ms: int | None = None

    def allows(self, mode: wac_modes.Mode) -> bool:
        return mode in self.user

    @property
    def public_may_read(self) -> bool:
        return wac_modes.Mode.READ in self.public

    @property
    def wac_allow(self) -> str:
        """The value of the ``WAC-Allow`` header."""
        return wac_modes.wac_allow(self.user, self.public)

    def on(self, place: wac_modes.Governed) -> GrantedAccess:
        """What these modes on a subject mean on a path that it governs (W-40, W-54)."""
        if not place.is_acl:
            return self
        return replace(
            self,
            user=_on_acl(self.user),
            public=_on_acl(self.public),
            withheld=_on_acl(self.withheld),
        )


class Ceiling(Value):
    """The most that a request may be granted on a resource; every mode by default.

    ``user`` bounds the modes of the agent, ``public`` those that are granted to everyone. The
    ``preconditions`` must still hold when a write is committed. ``cacheable`` is true if only a
    change of the store can change the ceiling, or time: ``until_ms`` is when that may happen first.
    ``asks_at`` is the address of the page on which the person can allow more on this resource; the
    mode that is missing is added to it as ``&mode=…``.
    """

    user: wac_modes.Modes = wac_modes.ALL_MODES
    public: wac_modes.Modes = wac_modes.ALL_MODES
    preconditions: tuple[Precondition, ...] = ()
    cacheable: bool = True
    asks_at: str | None = None
    until_ms: int | None = None


class AccessRestriction(Protocol):
    """Restricts what the rules grant, such as a limit on what an application may do.

    The gate asks each restriction about each resource that it decides about for an identity with a
    limit (``Identity.limit``), and grants the modes
    that the rules and all restrictions have in common.
    """

    async def ceiling(
        self, agent: Identity, origin: str | None, subject: ResourcePath, snapshot: Snapshot
    ) -> Ceiling | None:
        """The most that a request of this agent may be granted on a resource that is not
        auxiliary; ``None`` for everything. What it raises refuses the request."""


class DecisionInputs(msgspec.Struct, frozen=True):
    """What a decision follows from: the rules that apply to the target in these circumstances, and
    the agent as the rules see it (``None`` for the public)."""

    rules: Rules
    requester: Requester | None
    circumstances: ConditionContext


class Gate:
    """Decides about every operation."""

    def __init__(
        self,
        *,
        acls: wac_effective.EffectiveAcls,
        groups: wac_effective.GroupMemberships,
        owners: StorageOwners,
        clock: Clock,
        restrictions: Sequence[AccessRestriction] = (),
    ) -> None:
        self._source_acls = acls
        self._acls: AclFinder = acls
        self._group_acls = acls
        self._groups = groups
        self._owners = owners
        self._clock = clock
        self._restrictions = tuple(restrictions)
        if restrictions:  # so that a request pays for restrictions only where there are any
            self._grant_on = self._restricted_grant_on  # type: ignore[method-assign]

    def over(self, source: DocumentSource) -> Gate:
        """The same gate on the ACLs of another source, with the current groups and owners."""
        other = Gate(
            acls=self._source_acls.over(source),
            groups=self._groups,
            owners=self._owners,
            clock=self._clock,
            restrictions=self._restrictions,
        )
        other._group_acls = self._group_acls
        return other

    def for_many(self, source: DocumentSource, *, at_ms: int | None = None) -> Gate:
        """As :meth:`over`, for many decisions about a few resources at one moment, by default now:
        their rules and owners are looked up once."""
        other = self.over(source)
        if at_ms is not None:
            other._clock = _Moment(at_ms)  # noqa: SLF001 - of this class
        once = _MemoizedLookups(other._acls, self._owners)  # noqa: SLF001 - of this class
        other._acls = other._owners = once  # noqa: SLF001 - of this class
        return other

    def of_past(self, source: DocumentSource, *, at_ms: int) -> Gate:
        """A gate on the ACLs of an earlier time, as of a moment. A decision of this gate about the
        present must allow the same: that one has the restrictions.

        Rules that name groups grant nothing, since nobody knows who was a member by then.
        """
        return Gate(
            acls=self._source_acls.over(source),
            groups=wac_effective.NoGroups(),
            owners=self._owners,
            clock=_Moment(at_ms),
        )

    async def authorize(
        self,
        agent: Identity | None,
        origin: str | None,
        target: ResourcePath,
        requirements: wac_modes.Requirements,
        snapshot: Snapshot,
    ) -> GrantedAccess:
        """Grant the operation, with its preconditions, or refuse it.

        ``origin`` is the Origin header as received; ``snapshot`` holds
        :func:`podstead.wac.effective.paths_to_read` of the target. Raises NotAuthenticated for
        the public and AccessDenied for an identity.
        """
        place = wac_modes.governed(target)
        grant = await self._grant_on(agent, origin, place.subject, snapshot)
        grants = {place.subject: grant}
        await self._check(requirements, agent, origin, snapshot, grants)
        if len(grants) > 1:
            cacheable, until_ms = True, None
            for other in grants.values():
                cacheable = cacheable and other.cacheable
                until_ms = earliest(until_ms, other.until_ms)
            grant = GrantedAccess(
                grant.user, grant.public, _preconditions(grants), cacheable, until_ms=until_ms
            )
        return grant.on(place)

    async def require(
        self,
        requirements: wac_modes.Requirements,
        agent: Identity | None,
        origin: str | None,
        snapshot: Snapshot,
    ) -> tuple[Precondition, ...]:
        """The same as :meth:`authorize` for operations without a single target; returns the
        preconditions."""
        grants: dict[ResourcePath, GrantedAccess] = {}
        await self._check(requirements, agent, origin, snapshot, grants)
        return _preconditions(grants)

    async def grant(
        self, agent: Identity | None, origin: str | None, target: ResourcePath, snapshot: Snapshot
    ) -> GrantedAccess:
        """What the agent may do with the target, which may be nothing; refuses nothing."""
        place = wac_modes.governed(target)
        grant = await self._grant_on(agent, origin, place.subject, snapshot)
        return grant.on(place)

    async def current_grant(
        self, agent: Identity | None, origin: str | None, target: ResourcePath
    ) -> tuple[GrantedAccess, Snapshot]:
        """What the agent may do with the target now, and the snapshot on which that was decided,
        which holds :func:`podstead.wac.effective.paths_to_read` of the target."""
        snapshot = await self._source_acls.source.read_metadata(wac_effective.paths_to_read(target))
        return await self.grant(agent, origin, target, snapshot), snapshot

    async def require_control(self, agent: Identity | None, subject: ResourcePath) -> None:
        """Raises NotAuthenticated or AccessDenied for an agent without Control of the subject."""
        grant, _ = await self.current_grant(agent, None, subject)
        if not grant.allows(wac_modes.Mode.CONTROL):
            raise NotAuthenticated if agent is None else AccessDenied

    async def grant_on_description(
        self, agent: Identity | None, origin: str | None, target: ResourcePath, snapshot: Snapshot
    ) -> GrantedAccess:
        """What the agent may do with a container without its members, in addition to :meth:`grant`;
        ``target`` is the container or its description. Only Read matters."""
        subject = wac_modes.governed(target).subject
        return await self._grant_on(agent, origin, subject, snapshot, of_description=True)

    async def decision_inputs(
        self, agent: Identity | None, origin: str | None, target: ResourcePath, snapshot: Snapshot
    ) -> DecisionInputs:
        """What :meth:`grant` decides from, for explaining the decision."""
        subject = wac_modes.governed(target).subject
        effective = await self._acls.find(subject, snapshot)
        effective, circumstances = await self._under_conditions(effective, agent)
        if agent is None:
            return DecisionInputs(effective.rules, None, circumstances)
        names = _names(agent.iri, agent.aliases)
        memberships = await self._memberships(names, effective)
        requester = Requester(
            names,
            memberships.groups,
            canonical_origin(origin),
            owns_storage=await self._owns(names, subject),
        )
        return DecisionInputs(effective.rules, requester, circumstances)

    async def audience(
        self, agent: Identity | None, origin: str | None, target: ResourcePath, snapshot: Snapshot
    ) -> Audience | None:
        """How far the right to read the target reaches; ``None`` if the agent may not know.

        An agent with Control knows the rules. An agent with Read knows whether everyone has it,
        from the ``WAC-Allow`` header. What rules grant through some client or issuer counts.
        """
        subject = wac_modes.governed(target).subject
        grant = await self._grant_on(agent, origin, subject, snapshot)
        if not grant.allows(wac_modes.Mode.CONTROL):
            known = grant.allows(wac_modes.Mode.READ) and grant.public_may_read
            return Audience.EVERYONE if known else None
        effective = await self._acls.find(subject, snapshot)
        owner = await self._owner_of(subject)
        rules = effective.rules.reaching(self._clock.now_ms())
        return audience_of(rules, () if owner is None else (owner,))

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
        requirements: wac_modes.Requirements,
        agent: Identity | None,
        origin: str | None,
        snapshot: Snapshot,
        grants: dict[ResourcePath, GrantedAccess],
    ) -> None:
        """Check every requirement, and add the grant on each subject to ``grants``."""
        if not requirements:  # only OPTIONS has none, and it never gets here (W-31)
            raise ValueError("An operation without requirements must not be authorized")
        for requirement in requirements:
            subject = requirement.subject
            grant = grants.get(subject)
            if grant is None:
                grant = grants[subject] = await self._grant_on(agent, origin, subject, snapshot)
            if requirement.mode not in grant.user:
                raise NotAuthenticated if agent is None else _denial(agent, requirement.mode, grant)

    def _restricted_grant_on(
        self,
        agent: Identity | None,
        origin: str | None,
        subject: ResourcePath,
        snapshot: Snapshot,
        *,
        of_description: bool = False,
    ) -> Coroutine[object, object, GrantedAccess]:
        """As :meth:`_grant_on`, within the ceiling of every restriction."""
        grant = Gate._grant_on(
            self, agent, origin, subject, snapshot, of_description=of_description
        )
        if agent is None or agent.limit is None:  # no further coroutine: most requests have none
            return grant
        return self._within_ceilings(grant, agent, origin, subject, snapshot)

    async def _within_ceilings(
        self,
        within: Awaitable[GrantedAccess],
        agent: Identity,
        origin: str | None,
        subject: ResourcePath,
        snapshot: Snapshot,
    ) -> GrantedAccess:
        grant = await within
        for restriction in self._restrictions:
            ceiling = await restriction.ceiling(agent, origin, subject, snapshot)
            if ceiling is None:
                continue
            public = grant.public & ceiling.public
            user = (grant.user & ceiling.user) | public
            grant = GrantedAccess(
                user,
                public,
                grant.preconditions + ceiling.preconditions,
                grant.cacheable and ceiling.cacheable,
                grant.withheld | (grant.user - user),
                grant.asks_at or ceiling.asks_at,
                earliest(grant.until_ms, ceiling.until_ms),
            )
        return grant

    async def _grant_on(
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
            effective = replace(effective, rules=effective.description)
        rules, preconditions = effective.rules, effective.preconditions
        public = rules.public
        if rules.conditional:
            effective, circumstances = await self._under_conditions(effective, agent)
            public = rules.under(ConditionContext(circumstances.now_ms)).public
            rules, preconditions = effective.rules, effective.preconditions
        if agent is None:
            return GrantedAccess(
                public,
                public,
                preconditions,
                effective.cacheable,
                until_ms=effective.until_ms,
            )
        if not agent.is_authenticated_agent:
            effective = replace(effective, rules=replace(rules, authenticated=rules.public))
        names = _names(agent.iri, agent.aliases)
        memberships = wac_effective.NO_MEMBERSHIPS
        if rules.groups:
            memberships = await self._memberships(names, effective)
        grant = await self._agent_grant(names, origin, subject, effective, memberships)
        return grant if public is rules.public else replace(grant, public=public)

    async def _under_conditions(
        self, effective: wac_effective.EffectiveAcl, agent: Identity | None
    ) -> tuple[wac_effective.EffectiveAcl, ConditionContext]:
        """The rules that apply to a request of the agent at this moment."""
        rules = effective.rules
        now_ms = self._clock.now_ms()
        if not rules.conditional:
            return effective, ConditionContext(now_ms)
        client, issuer = (None, None) if agent is None else (agent.client_id, agent.issuer)
        clients = issuers = wac_effective.NO_MEMBERSHIPS
        if client is not None and (groups := rules.client_groups):
            clients = await self._memberships(frozenset({client}), effective, groups)
        if issuer is not None and (groups := rules.issuer_groups):
            # The names of one provider may differ in a final slash.
            named = issuer.removesuffix("/")
            issuers = await self._memberships(frozenset({named, f"{named}/"}), effective, groups)
        circumstances = ConditionContext(now_ms, client, issuer, clients.groups, issuers.groups)
        until_ms = earliest(effective.until_ms, rules.next_change_ms(now_ms))
        resolved = replace(
            effective,
            rules=rules.under(circumstances),
            preconditions=effective.preconditions + clients.preconditions + issuers.preconditions,
            cacheable=effective.cacheable and clients.cacheable and issuers.cacheable,
            until_ms=earliest(until_ms, earliest(clients.until_ms, issuers.until_ms)),
        )
        return resolved, circumstances

    async def _memberships(
        self,
        names: frozenset[str],
        effective: wac_effective.EffectiveAcl,
        groups: frozenset[str] | None = None,
    ) -> wac_effective.Memberships:
        """Which of the groups, by default those that the rules name, have one of the names."""
        storage = effective.storage
        readable = partial(self._group_is_readable, storage)
        if groups is None:
            groups = effective.rules.groups
        return await self._groups.of(names, groups, storage=storage, readable=readable)

    async def _agent_grant(
        self,
        names: frozenset[str],
        origin: str | None,
        subject: ResourcePath,
        effective: wac_effective.EffectiveAcl,
        memberships: wac_effective.Memberships,
    ) -> GrantedAccess:
        """The modes of an agent with these names and memberships under the rules."""
        rules = effective.rules
        asked_from = canonical_origin(origin) if rules.name_origins else None
        granted = agent_modes(rules, Requester(names, memberships.groups, asked_from))
        # Ownership adds Control and nothing else, so it is not looked up for agents that have it.
        if wac_modes.Mode.CONTROL not in granted and await self._owns(names, subject):
            owner = Requester(names, memberships.groups, asked_from, owns_storage=True)
            granted = agent_modes(rules, owner)
        grant = GrantedAccess(
            granted,
            rules.public,
            effective.preconditions + memberships.preconditions,
            effective.cacheable and memberships.cacheable,
        )
        if effective.until_ms is None and memberships.until_ms is None:  # the usual case
            return grant
        until_ms = earliest(effective.until_ms, memberships.until_ms)
        return replace(grant, until_ms=until_ms)

    async def _group_is_readable(
        self, storage: ResourcePath | None, document: ResourcePath, snapshot: Snapshot
    ) -> wac_effective.Readable:
        """Whether the owner of a storage may read a group document outside it, so that rules in the
        storage reveal only what their owner may know.

        If the rules of the document name groups, those in its own storage apply. Rules that apply
        only through a client or an issuer do not.
        """
        place = wac_modes.governed(document)
        effective = await self._group_acls.find(place.subject, snapshot)
        effective, _ = await self._under_conditions(effective, None)
        rules = effective.rules
        grant = GrantedAccess(
            rules.public,
            rules.public,
            effective.preconditions,
            effective.cacheable,
            until_ms=effective.until_ms,
        )
        if not _may_know_content(grant.on(place)) and storage is not None:
            owner = await self._owners.owner_of(storage)
            if owner is not None:
                names = _names(owner, frozenset())
                memberships = await self._groups.of(
                    names, rules.groups, storage=effective.storage, readable=None
                )
                grant = await self._agent_grant(names, None, place.subject, effective, memberships)
        return wac_effective.Readable(
            _may_know_content(grant.on(place)),
            grant.preconditions,
            grant.cacheable,
            grant.until_ms,
        )

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


def _may_know_content(grant: GrantedAccess) -> bool:
    """Whether the agent may know the content: with Control, it can grant itself Read."""
    return grant.allows(wac_modes.Mode.READ) or grant.allows(wac_modes.Mode.CONTROL)


def _denial(agent: Identity, mode: wac_modes.Mode, grant: GrantedAccess) -> AccessDenied:
    """The error for an agent without a mode. It says so if only its application or token lacks the
    mode."""
    if mode in grant.withheld and agent.method is AuthenticationMethod.SIMPLE:
        return InsufficientScope(
            "You may do this, but this token may not, and what it may do never changes; another "
            "token can be created for it",
            scheme="Bearer",
        )
    if mode not in grant.withheld or grant.asks_at is None:
        return AccessDenied()
    is_bound = agent.method is AuthenticationMethod.DPOP
    return InsufficientScope(
        "You may do this, but the application that acts for you may not; the page at the address "
        "in WWW-Authenticate allows it",
        scheme="DPoP" if is_bound else "Bearer",
        asks_at=f"{grant.asks_at}&mode={mode}",
    )


def _on_acl(modes: wac_modes.Modes) -> wac_modes.Modes:
    """The modes on an ACL that follow from those on its subject (W-40, W-54)."""
    return wac_modes.ALL_MODES if wac_modes.Mode.CONTROL in modes else wac_modes.NO_MODES


def _preconditions(grants: Mapping[ResourcePath, GrantedAccess]) -> tuple[Precondition, ...]:
    """The preconditions of all grants, each once."""
    parts = [grant.preconditions for grant in grants.values()]
    return tuple(dict.fromkeys(chain.from_iterable(parts)))
