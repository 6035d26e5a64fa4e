"""Sharing links: their records, their visits, and the agent that each of them is to access rules.

The secret of a link is in its address only. Its SHA-256 is the public ID of the link, the key of
its record, and part of the IRI of its agent, which an ordinary rule of an ACL names. The record
says what applies besides: an end, a number of uses, a password. It
has the path of the resource, follows when that is moved, and opens nothing once its rules no longer
name the link. What other rules name it makes no difference.

Whoever opens a link gets a visit: a value that only this server can make, in a cookie of the link.
Nothing is stored for a visit. The link itself is read again for each request and each decision.
"""

import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import msgspec

from podstead.core.errors import Conflict, NotFound
from podstead.core.identifiers import ResourcePath, acl_of, is_container, moved_path, storage_root
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.core.numbers import whole_number
from podstead.features.links import MOST_LINKS, LinkSettings
from podstead.resources.planning import PodRecordsHook
from podstead.resources.sharing.documents import Edit
from podstead.resources.sharing.service import SharingService, SharingState
from podstead.storage import protocol, record_store
from podstead.storage.records import PodRecord, Precondition, Record
from podstead.wac.acl import earliest
from podstead.wac.gate import Ceiling
from podstead.wac.modes import NO_MODES, Mode, Modes
from podstead.wac.sharing.editing import AccessChange
from podstead.wac.sharing.index import MENTIONS, agent_prefix
from podstead.wac.sharing.rules import agent

VIEW: Final = "view"
EDIT: Final = "edit"
ADD: Final = "add"
MODES: Final[Mapping[str, Modes]] = {
    VIEW: frozenset({Mode.READ}),
    EDIT: frozenset({Mode.READ, Mode.APPEND, Mode.WRITE}),
    ADD: frozenset({Mode.APPEND}),
}
"""What a link lets people do, by its kind. Adding is for the folder itself: what has been added
cannot be read or changed."""
KEPT_NAMES: Final = 500
"""The number of ended links of a pod whose names are kept."""
NAME_KEPT_S: Final = 365 * 24 * 3600
MAX_NAME_CHARACTERS: Final = 100
MAX_USES: Final = 1_000_000
VISIT_S: Final = 12 * 3600
"""How long a browser can use a link that it has opened before it must open it again."""
DAY_S: Final = 24 * 3600

_SECRET_BYTES: Final = 32
_ID_DIGITS: Final = 32
_END_OF_TIME_S: Final = 10**14
_NONCE_BYTES: Final = 8


class SharingLink(msgspec.Struct, frozen=True):
    """A link for the resource at ``path``. Its key is its public ID, and the root of the pod its
    owner. Times are Unix seconds."""

    path: str
    kind: str
    name: str
    created_s: int
    ends_s: int | None = None
    max_uses: int | None = None
    password_hash: str | None = None
    paused: bool = False


class LinkUses(msgspec.Struct, frozen=True):
    """How often a link was opened, and when last. The key is that of the link."""

    count: int
    last_s: int


class EndedLink(msgspec.Struct, frozen=True):
    """The name of a link that has ended, for the activity of its pod. The key is that of the link,
    and the root of the pod its owner."""

    name: str


LINKS: Final = record_store.RecordKind("sharing-link", SharingLink)
USES: Final = record_store.RecordKind("sharing-link-uses", LinkUses)
ENDED: Final = record_store.RecordKind("sharing-link-ended", EndedLink)


class TooManyLinks(Conflict):
    """The pod has as many links as it may have."""


class UsedUp(NotFound):
    """The link has been opened as often as it may be."""


@dataclass(frozen=True, slots=True)
class OpenLink:
    """A link that can be used now, and what it is for. It is what ``Identity.limit`` has for the
    agent of a link."""

    link_id: str
    link: SharingLink
    path: ResourcePath
    owner: str
    ends_s: int | None
    unchanged: Precondition

    @property
    def kind(self) -> str:
        return self.link.kind

    @property
    def needs_form(self) -> bool:
        """Whether opening it takes more than its address: programs that fetch the addresses in
        messages must not use it up."""
        return self.link.password_hash is not None or self.link.max_uses is not None

    def covers(self, path: ResourcePath) -> bool:
        """Whether the link is for this resource: its own, or one in its folder."""
        inside = is_container(self.path) and path.startswith(self.path) and self.kind != ADD
        return path == self.path or inside


class SharingLinks:
    """Makes, finds and ends links, and restricts their agents (:class:`AccessRestriction`)."""

    def __init__(
        self,
        records: record_store.RecordStore,
        *,
        base_url: str,
        keys: Sequence[bytes],
        limits: Callable[[], LinkSettings],
    ) -> None:
        """``keys`` sign visits, the newest first. ``limits`` tells the settings in effect."""
        self.records = records
        self._limits = limits
        self._agents = f"{base_url}/.links/"
        self._keys = keys

    @property
    def max_days(self) -> int:
        """After how many days links end at the latest; 0 for no such limit."""
        return self._limits().sharing_link_max_days

    def agent_of(self, link_id: str) -> str:
        """The IRI of the agent of a link."""
        return f"{self._agents}{link_id}#it"

    def id_of(self, iri: str) -> str | None:
        """The link whose agent has this IRI; ``None`` if it is another agent."""
        link_id = iri.removeprefix(self._agents).removesuffix("#it")
        return link_id if iri == self.agent_of(link_id) else None

    def end_of(self, link: SharingLink) -> int | None:
        """When a link ends; ``None`` for never."""
        latest_s = link.created_s + self.max_days * DAY_S if self.max_days else None
        return earliest(link.ends_s, latest_s)

    async def find(self, link_id: str) -> OpenLink | None:
        """The link, if it can be used now. Raises StorageError."""
        stored = await self.records.read(LINKS, link_id)
        if stored is None or stored.value.paused or stored.owner is None:
            return None
        ends_s = self.end_of(stored.value)
        if ends_s is not None and ends_s <= self.records.now_s():
            return None
        if not await self.has_rule(stored):
            return None
        path = ResourcePath(stored.value.path)
        return OpenLink(link_id, stored.value, path, stored.owner, ends_s, stored.unchanged)

    async def has_rule(self, stored: record_store.Versioned[SharingLink]) -> bool:
        """Whether the rules of the link's resource name it."""
        acl = acl_of(ResourcePath(stored.value.path))
        key = agent_prefix(self.agent_of(stored.key)) + acl
        return await self.records.read(MENTIONS, key) is not None

    # Opening

    def identity_of(self, found: OpenLink) -> Identity:
        """The identity of the agent of a link."""
        return Identity(
            self.agent_of(found.link_id),
            AuthenticationMethod.FEATURE,
            expires_at_s=found.ends_s,
            is_authenticated_agent=False,
            limit=found,
        )

    async def count_use(self, found: OpenLink) -> None:
        """Count that a link is opened. Raises UsedUp, StorageError, Overloaded."""
        now_s, most = self.records.now_s(), found.link.max_uses

        async def compute() -> record_store.Changes[None]:
            stored = await self.records.read(USES, found.link_id)
            before = 0 if stored is None else stored.value.count
            if most is not None and before >= most:
                raise UsedUp
            unchanged: Precondition = (
                USES.absent(found.link_id) if stored is None else stored.unchanged
            )
            put = USES.put(found.link_id, LinkUses(before + 1, now_s), owner=found.owner)
            return record_store.Changes(None, [put], [unchanged, found.unchanged])

        if most is not None:
            await self.records.transact(compute)
            return
        with suppress(record_store.Contention):  # many people open it at the same time
            await self.records.transact(compute)

    def new_visit(self, link_id: str) -> str:
        """A visit of the link, which begins now."""
        until_s = self.records.now_s() + VISIT_S
        text = f"{until_s}.{self.records.randomness.token_hex(_NONCE_BYTES)}"
        return f"{text}.{_signature(self._keys[0], link_id, text)}"

    def is_visit(self, link_id: str, value: str) -> bool:
        """Whether this is a visit of the link that has not ended."""
        text, _dot, signature = value.rpartition(".")
        until_s = whole_number(text.partition(".")[0], _END_OF_TIME_S) or 0
        return until_s > self.records.now_s() and any(
            hmac.compare_digest(_signature(key, link_id, text).encode(), signature.encode())
            for key in self._keys
        )

    # What the gate asks

    async def ceiling(
        self,
        agent_: Identity,
        origin: str | None,
        subject: ResourcePath,
        snapshot: protocol.Snapshot,
    ) -> Ceiling | None:
        """What the link allows at this moment, whatever rules name its agent. Raises
        StorageError."""
        del origin, snapshot
        if not isinstance(agent_.limit, OpenLink):
            return None
        found = await self.find(agent_.limit.link_id)
        if found is None:
            return Ceiling(NO_MODES, cacheable=False)
        modes = MODES[found.kind] if found.covers(subject) else NO_MODES
        until_ms = None if found.ends_s is None else found.ends_s * 1000
        return Ceiling(modes, preconditions=(found.unchanged,), until_ms=until_ms)

    # For those who have Control

    async def create(
        self,
        sharing: SharingService,
        owner: Identity | None,
        state: SharingState,
        link: SharingLink,
    ) -> str:
        """Make a link for a resource, and return its secret, which is not stored. Raises
        TooManyLinks, and what :meth:`SharingService.save` raises."""
        resource = state.access.resource
        pod = storage_root(resource)
        if pod is None:
            raise NotFound
        await self._make_room(pod)
        secret = self.records.randomness.token_hex(_SECRET_BYTES)
        link_id = link_id_of(secret)
        modes = MODES[link.kind]
        inside = modes if is_container(resource) and link.kind != ADD else None
        change = AccessChange(agent(self.agent_of(link_id)), modes, inside)
        record = LINKS.put(link_id, link, owner=pod)
        await sharing.save(owner, resource, Edit((change,)), state.token, records=[record])
        return secret

    async def of_resource(
        self, resource: ResourcePath, link_id: str
    ) -> record_store.Versioned[SharingLink] | None:
        """The record of a link for this resource; ``None`` if it has ended, or is for another
        resource: anybody who knows its public ID can name its agent in rules of their own. Raises
        StorageError."""
        stored = await self.records.read(LINKS, link_id)
        return None if stored is None or stored.value.path != resource else stored

    async def end(
        self, sharing: SharingService, owner: Identity | None, state: SharingState, link_id: str
    ) -> None:
        """Remove a link and its rule, or only the rule of the resource if the link is for another.
        Raises NotFound if the rules of the resource itself do not name it, and what
        :meth:`SharingService.save` raises."""
        resource, iri = state.access.resource, self.agent_of(link_id)
        if not any(
            each.grantee.iri == iri and each.inherited_from is None for each in state.access.entries
        ):
            raise NotFound
        inside = NO_MODES if is_container(resource) else None
        change = AccessChange(agent(iri), NO_MODES, inside)
        records: Sequence[Record] = ()
        stored = await self.of_resource(resource, link_id)
        if stored is not None:
            records = await self._removal([stored])
        await sharing.save(owner, resource, Edit((change,)), state.token, records=records)

    async def pause(self, state: SharingState, link_id: str, *, paused: bool) -> None:
        """Let a link of the resource open nothing for a while, or again. Raises NotFound,
        StorageError, Overloaded."""
        stored = await self.of_resource(state.access.resource, link_id)
        if stored is None:
            raise NotFound
        link = msgspec.structs.replace(stored.value, paused=paused)
        await self.records.commit([LINKS.replace(stored, link)], [stored.unchanged])

    async def _make_room(self, pod: ResourcePath) -> None:
        """Remove the records of links that open nothing any more, if there are many. Raises
        TooManyLinks."""
        most = self._limits().sharing_links_per_pod
        stored = await self.records.of_owner(LINKS, pod, limit=MOST_LINKS)
        if len(stored) < most:
            return
        unused = [each for each in stored if not await self.has_rule(each)]
        if len(stored) - len(unused) >= most:
            raise TooManyLinks(f"A pod can have at most {most} links; end some first")
        await self.records.commit(await self._removal(unused), [each.unchanged for each in unused])

    async def _removal(
        self, links: Sequence[record_store.Versioned[SharingLink]]
    ) -> Sequence[Record]:
        """What removes links of one pod, and keeps their names. Raises StorageError."""
        owner, until_ms = links[0].owner or "", self.records.now_ms() + NAME_KEPT_S * 1000
        kept = await self.records.of_owner(ENDED, owner, limit=2 * KEPT_NAMES)
        oldest = sorted(kept, key=lambda each: each.expires_ms or 0)
        surplus = oldest[: max(0, len(kept) + len(links) - KEPT_NAMES)]
        return [
            *(kind.drop(each.key) for each in links for kind in (LINKS, USES)),
            *(ENDED.drop(each.key) for each in surplus),
            *(
                ENDED.put(each.key, EndedLink(each.value.name), owner=owner, expires_ms=until_ms)
                for each in links
            ),
        ]

    async def name_of(self, pod: ResourcePath, link_id: str) -> str | None:
        """The name of a link of a pod, also after it has ended; ``None`` if that is not known.
        Raises StorageError."""
        link = await self.records.read(LINKS, link_id)
        if link is not None:
            return link.value.name if link.owner == pod else None
        ended = await self.records.read(ENDED, link_id)
        return ended.value.name if ended is not None and ended.owner == pod else None


def link_id_of(secret: str) -> str:
    """The public ID of the link with this secret."""
    return record_store.secret_key(secret)[:_ID_DIGITS]


def _signature(key: bytes, link_id: str, text: str) -> str:
    message = f"sharing link {link_id} {text}".encode()
    return hmac.new(key, message, hashlib.sha256).hexdigest()


class SharingLinksHook(PodRecordsHook):
    """Lets the records of links follow what is moved, and a pod that is renamed. They are removed
    with their pod as what belongs to it."""

    def __init__(self, records: record_store.RecordStore) -> None:
        super().__init__(records, LINKS, USES, ENDED)

    async def of_move(
        self,
        source: ResourcePath,
        destination: ResourcePath,
        containers: Sequence[ResourcePath],
    ) -> record_store.Changes[None]:
        del containers
        pod = storage_root(source)
        records: list[Record] = []
        preconditions: list[Precondition] = []
        if pod is None or pod != storage_root(destination):
            return record_store.Changes(None)
        for link in await self._records.of_owner(LINKS, pod):
            path = moved_path(link.value.path, source, destination)
            if path != link.value.path:
                value = msgspec.structs.replace(link.value, path=path)
                records.append(LINKS.replace(link, value))
                preconditions.append(link.unchanged)
        return record_store.Changes(None, records, preconditions)

    def changed(
        self,
        value: msgspec.Struct,
        pod: PodRecord,
        renamed: Callable[[ResourcePath], ResourcePath],
    ) -> msgspec.Struct:
        del pod
        if not isinstance(value, SharingLink):
            return value
        return msgspec.structs.replace(value, path=renamed(ResourcePath(value.path)))
