"""Previews what an edit of the rules changes, and for whom, by asking the gate under both rule
sets.

This module does not decide: the same gate is asked about the store as it is and as it would be.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from podstead.core.clock import Randomness
from podstead.core.errors import TargetTooLong
from podstead.core.identifiers import ResourcePath, acl_of, is_container
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.storage.blobs.body_store import ContentBody
from podstead.storage.open_body import OpenBody
from podstead.storage.protocol import DocumentSource, ResourceStore, Snapshot
from podstead.storage.records import Metadata, ResourceKind, Version
from podstead.wac.acl import local_path
from podstead.wac.conditions import ALWAYS, PeriodCondition
from podstead.wac.decision import Requester, agent_modes
from podstead.wac.gate import Gate
from podstead.wac.modes import Mode, Modes, any_member
from podstead.wac.sharing.rules import AUTHENTICATED, EVERYONE, Grantee, GranteeKind

_REVEALING = frozenset({Mode.READ, Mode.CONTROL})


class VisibleGroups:
    """The groups whose members one agent may learn, each looked up once.

    Explaining or previewing what somebody can do reveals which groups have that person as a member.
    Anyone who manages a resource can name any group in its rules, including groups of the storage's
    owner, and must not learn from the answers who is in a group whose document they may not read.
    """

    def __init__(self, gate: Gate, agent: Identity | None, *, base_url: str) -> None:
        self._gate = gate
        self._agent = agent
        self._base_url = base_url
        self._known: dict[str, bool] = {}

    async def hidden(self, groups: Iterable[str]) -> frozenset[str]:
        """The groups of this server whose documents the agent may not read. Documents of other
        servers are fetched without credentials, so they are public."""
        return frozenset([group for group in groups if not await self._may_see(group)])

    async def _may_see(self, group: str) -> bool:
        document = group.partition("#")[0]
        if document not in self._known:
            self._known[document] = await self._may_read(document)
        return self._known[document]

    async def _may_read(self, document: str) -> bool:
        path = local_path(document, self._base_url)
        if path is None:
            return True
        try:
            grant, _ = await self._gate.current_grant(self._agent, None, path)
        except TargetTooLong:
            return False
        # With Control, the agent can grant itself Read.
        return bool(_REVEALING & grant.user)


MAX_GRANTEES: Final = 200
"""The number of agents and groups for which a preview is computed."""

_MAX_LOOKED_AT: Final = 2_000
"""How many resources inside a container are checked for rules of their own."""
_SAMPLE: Final = 5
_PAGE: Final = 200
_NAME_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Difference:
    """What one grantee can do now, and could do after the edit, with the periods of the rules."""

    grantee: Grantee
    before: Modes
    after: Modes
    before_period: PeriodCondition = ALWAYS
    after_period: PeriodCondition = ALWAYS

    @property
    def is_change(self) -> bool:
        return (self.before, self.before_period) != (self.after, self.after_period)


@dataclass(frozen=True, slots=True)
class Inside:
    """What is inside a container: some resources that inherit its rules, and how many have rules of
    their own, which an edit of the container's rules does not reach.

    ``is_complete`` is false if there was too much to look at.
    """

    inheriting: tuple[ResourcePath, ...] = ()
    with_own_rules: int = 0
    is_complete: bool = True


NOTHING_INSIDE = Inside()


class Comparison:
    """Asks for two decisions about one resource: as the rules are, and as they would be."""

    def __init__(
        self, before: Gate, after: Gate, visible: VisibleGroups, *, randomness: Randomness
    ) -> None:
        """The gates decide by the rules as they are and as they would be. ``visible`` are the
        groups whose members the person who asks may learn."""
        self._before = before
        self._after = after
        self._visible = visible
        # An agent that no rule names, in place of everybody who is signed in.
        self._somebody = f"urn:podstead:somebody:{randomness.token_hex(_NAME_BYTES)}"

    async def differences(
        self, grantees: Iterable[Grantee], resource: ResourcePath
    ) -> tuple[Difference, ...]:
        """What the edit changes on the resource, for each grantee."""
        return tuple(
            [
                Difference(
                    grantee,
                    await self._modes(self._before, grantee, resource),
                    await self._modes(self._after, grantee, resource),
                )
                for grantee in grantees
            ]
        )

    async def differences_inside(
        self, grantees: Iterable[Grantee], container: ResourcePath
    ) -> tuple[Difference, ...]:
        """The same for everything inside that has no rules of its own."""
        return await self.differences(grantees, any_member(container))

    async def lost_by(self, agent: Identity, resource: ResourcePath) -> Modes:
        """The modes that an agent has now and would not have after the edit, including through
        groups that the person who asks may not see."""
        before = await _granted(self._before, agent, resource)
        return before - await _granted(self._after, agent, resource)

    async def _modes(self, gate: Gate, grantee: Grantee, resource: ResourcePath) -> Modes:
        """What the gate grants: to an agent by name, to the public, to an agent whom no rule names,
        or to the members of a group as such."""
        agent = None
        if grantee != EVERYONE and grantee.kind is not GranteeKind.GROUP:
            iri = self._somebody if grantee == AUTHENTICATED else grantee.iri
            agent = Identity(iri, AuthenticationMethod.SESSION)
        grant, snapshot = await gate.current_grant(agent, None, resource)
        if grantee == EVERYONE:
            return grant.user
        inputs = await gate.decision_inputs(agent, None, resource, snapshot)
        if grantee.kind is GranteeKind.GROUP:
            return agent_modes(inputs.rules, Requester(frozenset(), frozenset({grantee.iri})))
        hidden = await self._visible.hidden(inputs.rules.groups)
        if not hidden or inputs.requester is None:
            return grant.user
        groups = inputs.requester.groups - hidden
        return agent_modes(inputs.rules, replace(inputs.requester, groups=groups))


async def _granted(gate: Gate, agent: Identity | None, resource: ResourcePath) -> Modes:
    grant, _ = await gate.current_grant(agent, None, resource)
    return grant.user


async def inspect_container(store: ResourceStore, container: ResourcePath) -> Inside:
    """Which resources inside a container inherit its rules. A container with rules of its own
    counts as one resource, whatever it contains."""
    if not is_container(container):
        return NOTHING_INSIDE
    inheriting: list[ResourcePath] = []
    with_own, looked_at = 0, 0
    pending = [container]
    while pending:
        current, after = pending.pop(), None
        while True:
            members = await store.list_members(current, after=after, limit=_PAGE)
            if not members:
                break
            after = members[-1].path
            looked_at += len(members)
            acls = await store.read_metadata([acl_of(member.path) for member in members])
            for member in members:
                if acls[acl_of(member.path)] is not None:
                    with_own += 1
                    continue
                inheriting.append(member.path)
                if is_container(member.path):
                    pending.append(member.path)
            if looked_at >= _MAX_LOOKED_AT:
                return Inside(tuple(inheriting[:_SAMPLE]), with_own, is_complete=False)
    return Inside(tuple(inheriting[:_SAMPLE]), with_own)


class SnapshotSource:
    """The store as it is when it is first read, as far as that is enough.

    If a requested body has been replaced since, everything is read again.
    """

    def __init__(self, store: DocumentSource, paths: Iterable[ResourcePath]) -> None:
        """``paths`` are read together when one of them is wanted."""
        self._store = store
        self._paths = tuple(paths)
        self._snapshot: Snapshot | None = None

    async def read_metadata(self, paths: Iterable[ResourcePath]) -> Snapshot:
        wanted = tuple(paths)
        if not set(wanted).issubset(self._paths):
            return await self._store.read_metadata(wanted)
        if self._snapshot is None:
            self._snapshot = await self._store.read_metadata(self._paths)
        return self._snapshot

    async def open_body(self, metadata: Metadata) -> OpenBody | None:
        body = await self._store.open_body(metadata)
        if body is None:
            self._snapshot = None
        return body


class HypotheticalSource:
    """A store in which one ACL has other content, or does not exist.

    ``version`` must be new, because parsed ACLs are cached by version.
    """

    def __init__(
        self,
        store: DocumentSource,
        acl: ResourcePath,
        *,
        content: bytes | None,
        content_type: str,
        version: Version,
    ) -> None:
        self._store = store
        self._acl = acl
        self._content = b"" if content is None else content
        self._metadata: Metadata | None = None
        if content is not None:
            self._metadata = Metadata(
                acl, ResourceKind.ACL, version, content_type, len(content), 0, 0
            )

    async def read_metadata(self, paths: Iterable[ResourcePath]) -> Snapshot:
        """The metadata of what is stored, and of the ACL as it would be."""
        wanted = tuple(paths)
        snapshot = await self._store.read_metadata(wanted)
        return {**snapshot, self._acl: self._metadata} if self._acl in wanted else snapshot

    async def open_body(self, metadata: Metadata) -> OpenBody | None:
        """The body of a version, that of the ACL as it would be included."""
        if self._metadata is not None and metadata.version == self._metadata.version:
            return ContentBody(self._content)
        return await self._store.open_body(metadata)
