"""Reads former states, for agents who may read the resource now and could read it then.

Now, the rules at its address decide, with all restrictions, such as the limits of an application;
where nothing is left, those of the container above it do. Then, the ACL decided that governed the
resource at the end of the state: each state names that ACL and its version, which is either still
stored or kept as a former state itself. If it is gone, nobody could read the state. Without the
second condition, somebody to whom a document is shown today would see what its owner had removed
before; without the first, a person would keep what was taken away from them.

Rules that name groups do not count then, since nobody knows who was a member. An ACL needs Control
of its subject, now and by what it said itself.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from podstead.core.conditional import Conditions
from podstead.core.errors import NotFound
from podstead.core.identifiers import ResourcePath, is_container, storage_root, subject_of
from podstead.core.identity import Identity
from podstead.core.operation import Operation
from podstead.features.history.retention import Retentions
from podstead.resources import outcome, service, uploads
from podstead.storage.former_states import FORMER_STATE, FormerState, former_state_of
from podstead.storage.open_body import OpenBody, whole_body
from podstead.storage.protocol import Snapshot
from podstead.storage.record_store import RecordStore
from podstead.storage.records import Metadata, ResourceKind
from podstead.wac.effective import acl_paths
from podstead.wac.gate import Gate
from podstead.wac.modes import Mode, any_member, governed

PAGE: Final = 500
"""How many states are looked at before other requests run."""

_SELECT: Final = f"SELECT {FORMER_STATE} FROM former_states WHERE root = %s AND"  # noqa: S608


class _RulesOfThen:
    """Implements DocumentSource with one ACL, which is stored or kept as a former state."""

    def __init__(self, records: RecordStore, acl: Metadata, kept: FormerState | None) -> None:
        self._store = records.store
        self.acl = acl
        self._kept = kept

    async def read_metadata(self, paths: Iterable[ResourcePath]) -> Snapshot:
        return {path: self.acl if path == self.acl.path else None for path in paths}

    async def open_body(self, metadata: Metadata) -> OpenBody | None:
        if self._kept is None:
            return await self._store.open_body(metadata)
        return await self._store.open_former(self._kept)


@dataclass(frozen=True, slots=True)
class FormerStateService:
    """The former states of all resources."""

    records: RecordStore
    gate: Gate
    retentions: Retentions

    async def select(
        self, root: ResourcePath, condition: str, *values: object
    ) -> list[FormerState]:
        """States of a storage, with the end of a SELECT, that are not older than what is kept.
        Raises StorageError."""
        rows = await self.records.store.fetch(f"{_SELECT} {condition}", root, *values)
        return self._kept(root, [former_state_of(row) for row in rows])

    async def pages(
        self, root: ResourcePath, condition: str, *values: object
    ) -> AsyncIterator[Sequence[FormerState]]:
        """As :meth:`select`, ordered by path and beginning, some at a time."""
        paged = f"{condition} AND (path, modified_ms, version) > (%s, %s, %s)"
        paged = f"{_SELECT} {paged} ORDER BY path, modified_ms, version LIMIT %s"
        key: tuple[str, int, str] = ("", 0, "")
        while rows := await self.records.store.fetch(paged, root, *values, *key, PAGE):
            states = [former_state_of(row) for row in rows]
            yield self._kept(root, states)
            last = states[-1]
            key = last.path, last.modified_ms, last.version
            await asyncio.sleep(0)

    def _kept(self, root: ResourcePath, states: Sequence[FormerState]) -> list[FormerState]:
        retention, now_ms = self.retentions.of(root), self.records.now_ms()
        return [each for each in states if retention.is_kept(each, now_ms)]

    async def controls(
        self, agent: Identity | None, origin: str | None, path: ResourcePath
    ) -> bool:
        """Whether the agent has Control of a resource now."""
        grant, _ = await self.gate.current_grant(agent, origin, path)
        return grant.allows(Mode.CONTROL)

    async def may(
        self, agent: Identity | None, origin: str | None, state: FormerState, *needed: Mode
    ) -> bool:
        """Whether the agent has the modes on the resource of a state, and had them then."""
        grant, _ = await self.gate.current_grant(agent, origin, state.path)
        if not all(map(grant.allows, needed)):
            return False
        return await self.could(agent, origin, state, *needed)

    async def could(
        self, agent: Identity | None, origin: str | None, state: FormerState, *needed: Mode
    ) -> bool:
        """Whether the agent had the modes on the resource at the end of a state."""
        if state.kind == ResourceKind.ACL.value:
            needed = (Mode.CONTROL,)  # of the subject
        rules = await self._rules_of(state)
        if rules is None:
            return False
        subject = _subject(state, rules.acl.path)
        snapshot: dict[ResourcePath, Metadata | None] = dict.fromkeys(acl_paths(subject))
        snapshot[rules.acl.path] = rules.acl
        gate = self.gate.of_past(rules, at_ms=state.ended_ms)
        grant = await gate.grant(agent, origin, subject, snapshot)
        return all(map(grant.allows, needed))

    async def open(self, state: FormerState) -> OpenBody:
        """The body of a state. Raises NotFound if it is no longer kept, StorageError."""
        body = await self.records.store.open_former(state)
        if body is None:
            raise NotFound
        return body

    async def content(self, state: FormerState) -> bytes:
        """The whole body, which the caller knows to be small enough. Raises as :meth:`open`."""
        return await whole_body(await self.open(state))

    async def _rules_of(self, state: FormerState) -> _RulesOfThen | None:
        acl, version = state.acl, state.acl_version
        if state.kind == ResourceKind.ACL.value:
            return _RulesOfThen(self.records, state.metadata, state)
        if acl is None or version is None:
            return None
        current = (await self.records.store.read_metadata([acl]))[acl]
        if current is not None and current.version == version:
            return _RulesOfThen(self.records, current, None)
        root = storage_root(acl)
        if root is None:
            return None
        condition = "path = %s AND version = %s AND kind = %s"
        kept: Sequence[FormerState] = await self.select(
            root, condition, acl, version, ResourceKind.ACL.value
        )
        return _RulesOfThen(self.records, kept[0].metadata, kept[0]) if kept else None


async def write_again(
    resources: service.ResourceService,
    agent: Identity | None,
    former: Metadata,
    body: OpenBody,
    conditions: Conditions,
) -> None:
    """Let a resource have its former content, by an ordinary PUT. Raises what that raises."""
    content_type = former.content_type
    operation = Operation(
        "PUT",
        former.path,
        uploads.DraftBody(body),
        conditions=conditions,
        content_type=content_type,
    )
    await resources.handle(outcome.ResourceRequest(operation, agent))


def _subject(state: FormerState, acl: ResourcePath) -> ResourcePath:
    """A path that the ACL governs as it did the resource, which may have been moved since."""
    subject = governed(state.path).subject
    if acl in acl_paths(subject):
        return subject
    place = subject_of(acl)
    return any_member(place) if is_container(place) else place
