"""Shares a resource: shows who has access and why, previews an edit, and makes it.

Everything here is done for an agent who has Control of the resource, which the gate decides. Rules
are read and written as operations on resources (:mod:`.rules_document`), and what they mean is the
gate's decision (:mod:`.preview`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from msgspec.structs import replace

from podstead.core.clock import Randomness
from podstead.core.errors import BadRequest, Conflict, RequestRefused, TargetTooLong
from podstead.core.identifiers import ROOT, ResourcePath, acl_of, is_container, storage_root
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.core.media_types import TURTLE
from podstead.rdf.codecs import Document
from podstead.resources.codes import ResourceCodes
from podstead.resources.context import ResourceContext
from podstead.resources.reading import pages_of_members
from podstead.resources.service import ResourceService
from podstead.resources.sharing import documents
from podstead.storage.blobs.body_store import ContentBody
from podstead.storage.open_body import OpenBody
from podstead.storage.protocol import DocumentSource, ResourceStore, Snapshot
from podstead.storage.records import Metadata, Record, ResourceKind, Version, random_version
from podstead.wac.acl import ALWAYS, PeriodCondition, agent_name, local_path, opens_description
from podstead.wac.decision import Requester, agent_modes
from podstead.wac.effective import paths_to_read
from podstead.wac.gate import Gate, StorageOwners
from podstead.wac.modes import Mode, Modes, any_member
from podstead.wac.sharing import rules as sharing_rules
from podstead.wac.sharing.access import AccessList, Explanation, access_list, explain


class OwnerLockedOut(Conflict):
    """The edit would take something from the owner of the storage."""

    code = ResourceCodes.OWNER_LOCKED_OUT


class NeedsConfirmation(Conflict):
    """The editing agent would no longer have Control, and has not confirmed that."""

    code = ResourceCodes.CONFIRMATION_NEEDED


class NoParentContainer(Conflict):
    """The root of a storage has no container above from which it could inherit."""

    code = ResourceCodes.NOTHING_ABOVE


@dataclass(frozen=True, slots=True)
class SharingState:
    """Who has access to a resource at ``now_ms``; ``token`` identifies the state of the rules."""

    access: AccessList
    token: str
    can_inherit: bool
    now_ms: int


class Consequence(Enum):
    """What a person should know before saving an edit."""

    GETS_OWN_RULES = "gets own rules"
    """The resource no longer follows the rules of the containers above."""
    LOSES_OWN_RULES = "loses own rules"
    EVERYONE_CAN_CHANGE = "everyone can change"
    """Everybody, without signing in, can change or delete something."""
    PROFILE_HIDDEN = "profile hidden"
    """The document of the owner's WebID would not be public any more, so that other servers could
    not verify who the owner is."""
    LOSES_CONTROL = "loses control"
    """The editing person can no longer manage the resource, and has to confirm that."""
    OWNER_LOSES = "owner loses"
    """The owner would lose access: the edit is refused."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What an edit would change on the resource (``here``) and on what inherits from it."""

    here: tuple[Difference, ...]
    inside: tuple[Difference, ...]
    members: Inside
    consequences: frozenset[Consequence]

    @property
    def changes_anything(self) -> bool:
        rules = {Consequence.GETS_OWN_RULES, Consequence.LOSES_OWN_RULES}
        return bool(rules & self.consequences) or any(
            difference.is_change for difference in (*self.here, *self.inside)
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """Why an agent can do what it can with a resource.

    ``decided_by`` is the resource whose ACL decides: the resource itself or a container above it.
    """

    explanation: Explanation
    decided_by: ResourcePath
    hidden_groups: tuple[str, ...] = ()
    """Groups in the rules that the answer leaves out, because the person who asked may not know
    their members."""


class SharingService:
    """Shows and edits who has access."""

    def __init__(
        self, context: ResourceContext, resources: ResourceService, owners: StorageOwners
    ) -> None:
        self._rules = documents.RulesDocuments(context, resources)
        self._documents = context.documents
        self._store = context.store
        self._gate = context.gate
        self._records = context.records
        self._randomness = context.records.randomness
        self._owners = owners

    async def view(self, agent_: Identity | None, resource: ResourcePath) -> SharingState:
        """Who has access to the resource.

        Raises NotAuthenticated and AccessDenied without Control, NotFound, RulesOutOfReach and
        RulesUnreadable.
        """
        current = await self._rules.read(agent_, resource)
        access = access_list(
            self._rule_set(current),
            resource,
            inherited_from=None if current.is_own else current.of,
            owner=await self._owner_of(resource),
        )
        can_inherit = storage_root(resource) != resource
        return SharingState(access, current.token, can_inherit, self._records.now_ms())

    async def preview(
        self, agent_: Identity | None, resource: ResourcePath, edit: documents.Edit, token: str
    ) -> Preview:
        """What the edit would change. Raises what :meth:`view` raises, RulesChanged unless the
        rules are in the state of the token, NoParentContainer, and BadRequest for an end that has
        passed."""
        current = await self._current(agent_, resource, token)
        return await self._preview(agent_, current, edit)

    async def save(
        self,
        agent_: Identity | None,
        resource: ResourcePath,
        edit: documents.Edit,
        token: str,
        *,
        confirmed: bool = False,
        records: Sequence[Record] = (),
    ) -> Preview:
        """Make the edit, and return what it changed. ``records`` are written with the rules, if
        these change.

        Raises what :meth:`preview` raises, OwnerLockedOut, NeedsConfirmation unless ``confirmed``,
        and everything that a PUT or DELETE of the ACL raises. Nothing is changed then.
        """
        current = await self._current(agent_, resource, token)
        preview = await self._preview(agent_, current, edit)
        if Consequence.OWNER_LOSES in preview.consequences:
            raise OwnerLockedOut
        if Consequence.LOSES_CONTROL in preview.consequences and not confirmed:
            raise NeedsConfirmation
        document = self._edited(current, edit)
        if document is not None:
            if not current.is_own or document.graph != current.document.graph:
                await self._rules.write(agent_, current, document, records)
        elif current.is_own:
            await self._rules.remove(agent_, current)
        return preview

    async def explain(
        self,
        agent_: Identity | None,
        resource: ResourcePath,
        *,
        person: str | None,
        origin: str | None = None,
        inside: bool = False,
    ) -> Answer:
        """Why a person, ``None`` for the public, can do what they can with the resource, or with
        what is ``inside`` it; from an application if there is an ``origin``.

        Raises what :meth:`view` raises.
        """
        current = await self._rules.read(agent_, resource)
        rules = self._rule_set(current)
        own = current.is_own and not inside
        applying = rules.about_subject() if own else rules.about_contents()
        identity = None if person is None else Identity(person, AuthenticationMethod.SESSION)
        target = any_member(resource) if inside else resource
        _, snapshot = await self._gate.current_grant(identity, origin, target)
        inputs = await self._gate.decision_inputs(identity, origin, target, snapshot)
        requester = inputs.requester
        hidden = frozenset[str]()
        if requester is not None and (agent_ is None or person != agent_.iri):
            hidden = await self._visible_groups(agent_).hidden(inputs.rules.groups)
            requester = replace(requester, groups=requester.groups - hidden)
        explanation = explain(applying, requester, inputs.circumstances)
        return Answer(explanation, current.of, tuple(sorted(hidden)))

    # --- steps ----------------------------------------------------------------------------

    async def _current(
        self, agent_: Identity | None, resource: ResourcePath, token: str
    ) -> documents.RulesDocument:
        current = await self._rules.read(agent_, resource)
        if current.token != token:
            raise documents.RulesChanged
        return current

    async def _preview(
        self, agent_: Identity | None, current: documents.RulesDocument, edit: documents.Edit
    ) -> Preview:
        resource = current.resource
        if edit.inheritance is documents.Inheritance.RESUME and storage_root(resource) == resource:
            raise NoParentContainer
        begins_ms, ends_ms = self._moments_of(edit)
        document = self._edited(current, edit)
        # A possible member of a container has the same containers and rules above it.
        lowest = any_member(resource) if is_container(resource) else resource
        now = SnapshotSource(self._store, paths_to_read(lowest))
        source = await self._source_after(current, document, now)

        def compared(at_ms: int | None = None) -> Comparison:
            return Comparison(
                self._gate.for_many(now, at_ms=at_ms),
                self._gate.for_many(source, at_ms=at_ms),
                self._visible_groups(agent_),
                randomness=self._randomness,
            )

        # What is granted later is shown as it will be then.
        begins_last_ms = max(begins_ms, default=None)
        comparison = compared(begins_last_ms)
        owner = await self._owner_of(resource)
        after = await self._rules_after(agent_, current, document)
        if after is None:
            grantees = (
                sharing_rules.EVERYONE,
                sharing_rules.AUTHENTICATED,
                *(() if agent_ is None else (sharing_rules.agent(agent_.iri),)),
            )
        else:
            grantees = _grantees(edit, owner, self._rule_set(current), after)
        here = await comparison.differences(grantees, resource)
        inside: tuple[Difference, ...] = ()
        if is_container(resource):
            inside = await comparison.differences_inside(grantees, resource)
        consequences = set(_consequences(current, document, (*here, *inside)))
        # What is lost now, and when the new rules begin and end.
        moments = {None, *begins_ms, *ends_ms} - {begins_last_ms}
        for each in (comparison, *map(compared, moments)):
            consequences |= {
                lost async for lost in self._losses(agent_, resource, owner, each, after)
            }
        changed = {change.grantee for change in edit.changes}
        before_rules = self._rule_set(current)
        if after is not None:
            periods = _Periods(
                before_rules, after, was_own=current.is_own, is_own=document is not None
            )
            here = tuple(periods.of(each, changed) for each in here)
            inside = tuple(periods.of(each, changed, inside=True) for each in inside)
        members = await inspect_container(self._store, resource)
        return Preview(here, inside, members, frozenset(consequences))

    def _moments_of(self, edit: documents.Edit) -> tuple[Sequence[int], Sequence[int]]:
        """When what an edit grants begins, as far as it has not begun, and when it ends. Raises
        BadRequest for a period that is over or empty."""
        periods = [each.period for each in edit.changes if each.here or each.inside]
        now_ms = self._records.now_ms()
        begins_ms = [each.begins_ms for each in periods if (each.begins_ms or 0) > now_ms]
        ends_ms = [each.ends_ms for each in periods if each.ends_ms is not None]
        if ends_ms and min(ends_ms) <= now_ms:
            raise BadRequest(ResourceCodes.END_HAS_PASSED)
        if any(each.ends_ms and (each.begins_ms or 0) >= each.ends_ms for each in periods):
            raise BadRequest(ResourceCodes.ENDS_BEFORE_IT_BEGINS)
        return [each for each in begins_ms if each is not None], ends_ms

    async def _losses(
        self,
        agent_: Identity | None,
        resource: ResourcePath,
        owner: str | None,
        comparison: Comparison,
        after: sharing_rules.RuleSet | None,
    ) -> AsyncIterator[Consequence]:
        """What somebody must not lose, or not by mistake."""
        if owner is not None:
            if await _loses_modes(owner, comparison, resource):
                yield Consequence.OWNER_LOSES
            to_all = await comparison.differences((sharing_rules.EVERYONE,), resource)
            if self._hides_profile(owner, resource, to_all, after):
                yield Consequence.PROFILE_HIDDEN
        if agent_ is not None and Mode.CONTROL in await comparison.lost_by(agent_, resource):
            yield Consequence.LOSES_CONTROL

    async def _source_after(
        self, current: documents.RulesDocument, document: Document | None, now: SnapshotSource
    ) -> DocumentSource:
        """The store as it would be after the edit."""
        if document is None and not current.is_own:
            return now
        acl = acl_of(current.resource)
        content = None
        if document is not None:
            content = await self._documents.write(document, TURTLE, path=acl)
        return HypotheticalSource(
            now,
            acl,
            content=content,
            content_type=TURTLE,
            version=random_version(self._randomness),
        )

    async def _rules_after(
        self, agent_: Identity | None, current: documents.RulesDocument, document: Document | None
    ) -> sharing_rules.RuleSet | None:
        """The rules after the edit, for the grantees that they name; ``None`` if the agent may not
        see them, and must not learn from a preview what they grant to others."""
        if document is not None:
            url = self._rules.url_of(current.resource)
            return sharing_rules.read_rules(document.graph, subject_url=url)
        if not current.is_own:
            return self._rule_set(current)
        try:
            return self._rule_set(await self._rules.read_above(agent_, current.resource))
        except RequestRefused:
            return None

    def _hides_profile(
        self,
        owner: str,
        resource: ResourcePath,
        here: tuple[Difference, ...],
        after: sharing_rules.RuleSet | None,
    ) -> bool:
        """Whether the resource is the owner's profile, and everyone would lose Read on it and on
        its description."""
        if after is not None and any(
            rule.authorization.public
            and not rule.authorization.conditions
            and opens_description(rule.authorization)
            for rule in after.rules
        ):
            return False
        is_profile = local_path(owner.partition("#")[0], self._rules.url_of(ROOT)) == resource
        return is_profile and any(
            each.grantee == sharing_rules.EVERYONE and Mode.READ in each.before - each.after
            for each in here
        )

    def _visible_groups(self, agent_: Identity | None) -> VisibleGroups:
        base_url = self._rules.url_of(ResourcePath(""))
        return VisibleGroups(self._gate, agent_, base_url=base_url)

    def _edited(self, current: documents.RulesDocument, edit: documents.Edit) -> Document | None:
        return documents.edited(current, edit, url=self._rules.url_of(current.resource))

    def _rule_set(self, rules: documents.RulesDocument) -> sharing_rules.RuleSet:
        return sharing_rules.read_rules(
            rules.document.graph, subject_url=self._rules.url_of(rules.of)
        )

    async def _owner_of(self, resource: ResourcePath) -> str | None:
        storage = storage_root(resource)
        owner = None if storage is None else await self._owners.owner_of(storage)
        return None if owner is None else agent_name(owner)


def _grantees(
    edit: documents.Edit, owner: str | None, *rule_sets: sharing_rules.RuleSet
) -> tuple[sharing_rules.Grantee, ...]:
    """Everybody whom an edit may concern, those that it names first."""
    named = (
        grantee
        for rules in rule_sets
        for rule in rules.rules
        for grantee in sharing_rules.grantees_of(rule.authorization)
    )
    owners = () if owner is None else (sharing_rules.agent(owner),)
    changed = (change.grantee for change in edit.changes)
    found = dict.fromkeys(
        (*changed, sharing_rules.EVERYONE, sharing_rules.AUTHENTICATED, *owners, *named)
    )
    return tuple(found)[:MAX_GRANTEES]


@dataclass(frozen=True, slots=True)
class _Periods:
    """When plain rules apply, before and after an edit.

    ``was_own`` and ``is_own`` say whether the rules are those of the resource, and not those of a
    container above it.
    """

    before: sharing_rules.RuleSet
    after: sharing_rules.RuleSet
    was_own: bool
    is_own: bool

    def of(
        self,
        difference: Difference,
        changed: Collection[sharing_rules.Grantee],
        *,
        inside: bool = False,
    ) -> Difference:
        """The difference with the periods, for grantees that the edit names."""
        grantee = difference.grantee
        if grantee not in changed:
            return difference
        was_subject, is_subject = self.was_own and not inside, self.is_own and not inside
        return dataclasses.replace(
            difference,
            before_period=_period_for(grantee, self.before, is_subject=was_subject),
            after_period=_period_for(grantee, self.after, is_subject=is_subject),
        )


def _period_for(
    grantee: sharing_rules.Grantee, rules: sharing_rules.RuleSet, *, is_subject: bool
) -> PeriodCondition:
    """The period of what plain rules grant; that of all time if there are several."""
    applying = rules.about_subject() if is_subject else rules.about_contents()
    periods = {
        rule.period
        for rule in applying
        if rule.is_plain and grantee in sharing_rules.grantees_of(rule.authorization)
    }
    return periods.pop() if len(periods) == 1 else ALWAYS


def _consequences(
    current: documents.RulesDocument, document: Document | None, differences: tuple[Difference, ...]
) -> Iterator[Consequence]:
    if document is not None and not current.is_own:
        yield Consequence.GETS_OWN_RULES
    if document is None and current.is_own:
        yield Consequence.LOSES_OWN_RULES
    for difference in differences:
        gained = difference.after - difference.before
        if difference.grantee == sharing_rules.EVERYONE and gained & {Mode.WRITE, Mode.CONTROL}:
            yield Consequence.EVERYONE_CAN_CHANGE


async def _loses_modes(owner: str, comparison: Comparison, resource: ResourcePath) -> bool:
    """Whether the owner would lose a mode on the resource or on what is inside."""
    identity = Identity(owner, AuthenticationMethod.SESSION)
    if await comparison.lost_by(identity, resource):
        return True
    return is_container(resource) and bool(await comparison.lost_by(identity, any_member(resource)))


# Previews what an edit of the rules changes, and for whom, by asking the gate under both rule
# sets.
#
# This module does not decide: the same gate is asked about the store as it is and as it would be.

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

    grantee: sharing_rules.Grantee
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
        self, grantees: Iterable[sharing_rules.Grantee], resource: ResourcePath
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
        self, grantees: Iterable[sharing_rules.Grantee], container: ResourcePath
    ) -> tuple[Difference, ...]:
        """The same for everything inside that has no rules of its own."""
        return await self.differences(grantees, any_member(container))

    async def lost_by(self, agent: Identity, resource: ResourcePath) -> Modes:
        """The modes that an agent has now and would not have after the edit, including through
        groups that the person who asks may not see."""
        before = await _granted(self._before, agent, resource)
        return before - await _granted(self._after, agent, resource)

    async def _modes(
        self, gate: Gate, grantee: sharing_rules.Grantee, resource: ResourcePath
    ) -> Modes:
        """What the gate grants: to an agent by name, to the public, to an agent whom no rule names,
        or to the members of a group as such."""
        agent = None
        if (
            grantee != sharing_rules.EVERYONE
            and grantee.kind is not sharing_rules.GranteeKind.GROUP
        ):
            iri = self._somebody if grantee == sharing_rules.AUTHENTICATED else grantee.iri
            agent = Identity(iri, AuthenticationMethod.SESSION)
        grant, snapshot = await gate.current_grant(agent, None, resource)
        if grantee == sharing_rules.EVERYONE:
            return grant.user
        inputs = await gate.decision_inputs(agent, None, resource, snapshot)
        if grantee.kind is sharing_rules.GranteeKind.GROUP:
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
        async for members in pages_of_members(store, pending.pop(), page_members=_PAGE):
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
