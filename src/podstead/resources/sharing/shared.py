"""Lists what is shared with a person, and which of a person's resources others can access.

The index over access rules (:mod:`podstead.wac.sharing.index`) says where to look. Each resource in
a list is there because the gate decides so now: a resource that is shared with a person if the
person has a mode on it or on its contents, and one of the person's own if the person has Control.

Anybody can name a person in their own rules. The list of what is shared with somebody therefore
shows only the first resources of each storage, so that one storage cannot crowd out the others.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from podstead.core.identifiers import ResourcePath, is_container, storage_root, subject_of
from podstead.core.identity import Identity
from podstead.resources.context import ResourceContext
from podstead.resources.sharing.rules_index import is_index_complete
from podstead.storage.record_store import Versioned
from podstead.wac import effective, gate
from podstead.wac.acl import agent_name, local_path
from podstead.wac.modes import NO_MODES, Mode, Modes, any_member
from podstead.wac.sharing import index
from podstead.wac.sharing.access import AccessEntry, Scope
from podstead.wac.sharing.rules import Grantee, GranteeKind

PAGE: Final = 100
"""How many resources a page of a list has."""
OWN_PAGE: Final = 25
"""How many of a person's own resources, whose rules are read."""
OF_ONE_STORAGE: Final = 20
"""How many resources of one storage are on the page about all storages."""
MAX_LOOKED_AT: Final = 500
"""How many records one page of a list looks at."""
MAX_GROUPS: Final = 200
"""How many groups of this server are checked for one list."""

_AFTER_SLASH: Final = "0"
"""The character after the slash: what follows all paths below a container."""
_AFTER_GROUPS: Final = "h"
"""The string that follows the keys of all groups."""


@dataclass(frozen=True, slots=True)
class SharedResource:
    """A resource that a person can access, by the gate's decision: the modes on the resource itself
    (``here``) and, of a container, on what inherits from it."""

    resource: ResourcePath
    storage: ResourcePath
    here: Modes
    inside: Modes

    @property
    def modes(self) -> Modes:
        """The modes on the resource or, without any, on its contents."""
        return self.here or self.inside


@dataclass(frozen=True, slots=True)
class SharedWith:
    """A page of what is shared with a person.

    ``more_of`` are storages with more than is listed. ``after`` is where the next page begins, if
    there is one.
    """

    resources: tuple[SharedResource, ...]
    more_of: tuple[ResourcePath, ...] = ()
    after: str | None = None


@dataclass(frozen=True, slots=True)
class SharedBy:
    """One of a person's resources whose rules give access to others.

    ``entries`` are some of the grantees in the rules, without the owner; ``total`` is the number of
    all.
    """

    resource: ResourcePath
    entries: tuple[AccessEntry, ...]
    total: int


@dataclass(frozen=True, slots=True)
class EndingAccess:
    """What rules give to somebody until a time."""

    resource: ResourcePath
    grantee: Grantee
    ends_ms: int


class SharedLists:
    """Lists what is shared with a person and by a person."""

    def __init__(self, context: ResourceContext, owners: gate.StorageOwners) -> None:
        self._base_url = context.documents.url_of(ResourcePath(""))
        self._records = context.records
        self._gate = context.gate
        self._owners = owners

    async def is_complete(self) -> bool:
        """Whether the index contains all rules."""
        return await is_index_complete(self._records)

    async def shared_with(
        self,
        person: Identity,
        *,
        own: Collection[ResourcePath],
        storage: ResourcePath | None = None,
        after: str = "",
    ) -> SharedWith:
        """What is shared with a person in storages other than their ``own``: the first resources of
        each storage, or more of one ``storage``."""
        listing = _ListPage(own, PAGE if storage is not None else OF_ONE_STORAGE)
        below = storage or ""
        names = map(agent_name, (person.iri, *person.aliases))
        for prefix in sorted(map(index.agent_prefix, names)):
            async for acl in self._mentioned(prefix, below, listing, after=after):
                await self._consider(person, acl, listing)
        if not after:
            listing.begin_source()
            async for acl in self._mentioned(index.MANY, below, listing):
                await self._consider(person, acl, listing)
            listing.begin_source()
            await self._consider_groups(person, below, listing)
        return listing.result()

    async def shared_by(
        self, owner: Identity, storage: ResourcePath, *, after: str = ""
    ) -> tuple[Sequence[SharedBy], str | None]:
        """The resources in a storage whose rules name somebody other than its owner, and where the
        next page begins, if there is one."""
        web_id = await self._owners.owner_of(storage)
        found: list[SharedBy] = []
        looked_at, last = 0, after or storage
        while len(found) < OWN_PAGE and looked_at < MAX_LOOKED_AT:
            page = await self._records_of(storage, last)
            if not page:
                return found, None
            for acl, grantees, total in page:
                looked_at, last = looked_at + 1, acl
                others = [each for each in grantees if not _is_agent(each, web_id)]
                resource = subject_of(acl)
                if others and Mode.CONTROL in await self._modes(owner, resource):
                    entries = tuple(entry for each in others for entry in _entries(each, resource))
                    number = total - len(grantees) + len(others)
                    found.append(SharedBy(resource, entries, number))
                if len(found) >= OWN_PAGE:
                    break
        return found, last

    async def grantees(self, storages: Iterable[ResourcePath]) -> frozenset[Grantee]:
        """The people and groups in the rules of storages, as far as one list looks. Raises
        StorageError."""
        return frozenset(
            each.grantee
            for acl in await self._acls_of(storages)
            for each in acl.value.grantees
            if each.iri
        )

    async def places_of(
        self, group: str, storages: Iterable[ResourcePath]
    ) -> Sequence[ResourcePath]:
        """The resources in storages whose rules name a group, as far as one list looks. Raises
        StorageError."""
        return sorted(
            subject_of(ResourcePath(acl.key))
            for acl in await self._acls_of(storages)
            if any(each.iri == group for each in acl.value.grantees)
        )

    async def _acls_of(self, storages: Iterable[ResourcePath]) -> list[Versioned[index.IndexedAcl]]:
        return [
            acl
            for storage in storages
            for acl in await self._records.of_owner(index.ACLS, storage, limit=MAX_LOOKED_AT)
        ]

    async def ending(
        self, storage: ResourcePath, *, since_ms: int, until_ms: int
    ) -> Sequence[EndingAccess]:
        """What the rules in a storage give until a time in this period, the earliest end first, as
        far as one list looks."""
        listed = await self._records.of_owner(index.ACLS, storage, limit=MAX_LOOKED_AT)
        found = [
            EndingAccess(subject_of(ResourcePath(acl.key)), each.grantee, each.ends_ms)
            for acl in listed
            for each in acl.value.grantees
            if each.ends_ms is not None and since_ms <= each.ends_ms < until_ms
        ]
        return sorted(found, key=lambda each: (each.ends_ms, each.resource))

    # --- steps ----------------------------------------------------------------------------

    async def _records_of(
        self, storage: ResourcePath, after: str
    ) -> list[tuple[ResourcePath, Sequence[index.IndexedGrantee], int]]:
        """Some of the ACLs of a storage, in the order of their paths."""
        page = await index.ACLS.page(
            self._records.store, after=after, now_ms=self._records.now_ms(), limit=PAGE
        )
        return [
            (ResourcePath(each.key), each.value.grantees, each.value.total)
            for each in page
            if each.key.startswith(storage)
        ]

    async def _mentioned(
        self, prefix: str, below: str, listing: _ListPage, *, after: str = ""
    ) -> AsyncIterator[ResourcePath]:
        """The ACLs below a path that are recorded under a prefix, without those of storages with
        enough in the list."""
        after = max(prefix + below, after)
        while True:
            page = await self._page(after)
            for each in page:
                if not each.key.startswith(prefix + below):
                    return
                if not listing.may_look():
                    listing.continue_after(after)
                    return
                after = each.key
                acl = ResourcePath(after[len(prefix) :])
                storage = storage_root(acl)
                if storage is None:
                    continue
                if listing.has_enough_of(storage):
                    after = prefix + storage[:-1] + _AFTER_SLASH
                    break
                listing.looked_at += 1
                yield acl
            if not page:
                return

    async def _page(self, after: str, limit: int = PAGE) -> Sequence[Versioned[index.Mention]]:
        store, now_ms = self._records.store, self._records.now_ms()
        return await index.MENTIONS.page(store, after=after, now_ms=now_ms, limit=limit)

    async def _consider_groups(self, person: Identity, below: str, listing: _ListPage) -> None:
        """Add what the groups of this server give to a person, from a limited number of groups.

        The search begins at a different place for each person, so that somebody's mass of groups
        does not displace all others for everybody.
        """
        start = index.GROUPS + hashlib.sha256(person.iri.encode()).hexdigest()[:8]
        looked_at = 0
        for first, end in ((start, _AFTER_GROUPS), (index.GROUPS, start)):
            after = first
            while looked_at < MAX_GROUPS and listing.may_look():
                page = await self._page(after, limit=1)
                if not page or page[0].key >= end:
                    break
                looked_at += 1
                prefix = page[0].key[: index.prefix_length(page[0].key)]
                if self._is_here(page[0].value.iri):
                    await self._consider_group(person, prefix, below, listing)
                after = prefix + _AFTER_SLASH

    async def _consider_group(
        self, person: Identity, prefix: str, below: str, listing: _ListPage
    ) -> None:
        listing.without.clear()
        async for acl in self._mentioned(prefix, below, listing):
            storage = storage_root(acl)
            if not await self._consider(person, acl, listing) and storage is not None:
                listing.without.add(storage)  # not a member, by the groups of this storage
        listing.without.clear()

    def _is_here(self, group: str) -> bool:
        """Whether the group is on this server. Other groups are looked up when a shared resource is
        accessed, and not for a list."""
        return local_path(group.partition("#")[0], self._base_url) is not None

    async def _consider(self, person: Identity, acl: ResourcePath, listing: _ListPage) -> bool:
        """List the subject of an ACL if the person has access; whether that is so."""
        resource = subject_of(acl)
        storage = storage_root(resource)
        if storage is None or resource in listing.found:
            return True
        here, inside = await self._modes(person, resource), NO_MODES
        if is_container(resource):
            inside = await self._modes(person, any_member(resource))
        if here or inside:
            listing.add(SharedResource(resource, storage, here, inside))
        return bool(here or inside)

    async def _modes(self, agent: Identity, resource: ResourcePath) -> Modes:
        if resource.count("/") > effective.MAX_DEPTH:
            return NO_MODES
        grant, _ = await self._gate.current_grant(agent, None, resource)
        return grant.user


class _ListPage:
    """What has been found for one page. The bounds are those of each source."""

    def __init__(self, own: Collection[ResourcePath], of_one_storage: int) -> None:
        self.found: dict[ResourcePath, SharedResource] = {}
        self.looked_at = 0
        self.without: set[ResourcePath] = set()
        """Storages that are skipped for now."""
        self._before = 0
        self._is_first_source = True
        self._after: str | None = None
        self._own = own
        self._of_one_storage = of_one_storage
        self._numbers: dict[ResourcePath, int] = {}
        self._more_of: dict[ResourcePath, None] = {}

    def begin_source(self) -> None:
        self.looked_at = 0
        self._before = len(self.found)
        self._is_first_source = False

    def may_look(self) -> bool:
        return len(self.found) - self._before < PAGE and self.looked_at < MAX_LOOKED_AT

    def continue_after(self, key: str) -> None:
        """Note where the next page begins; only mentions of the person are paged."""
        if self._is_first_source and self._after is None:
            self._after = key

    def has_enough_of(self, storage: ResourcePath) -> bool:
        if storage in self._own or storage in self.without:
            return True
        if self._numbers.get(storage, 0) < self._of_one_storage:
            return False
        self._more_of[storage] = None
        return True

    def add(self, resource: SharedResource) -> None:
        self.found[resource.resource] = resource
        self._numbers[resource.storage] = self._numbers.get(resource.storage, 0) + 1

    def result(self) -> SharedWith:
        resources = sorted(self.found.values(), key=lambda each: each.resource)
        return SharedWith(tuple(resources), tuple(self._more_of), self._after)


def _is_agent(grantee: index.IndexedGrantee, web_id: str | None) -> bool:
    return (
        web_id is not None
        and grantee.kind == GranteeKind.AGENT.value
        and grantee.iri == agent_name(web_id)
    )


def _entries(grantee: index.IndexedGrantee, resource: ResourcePath) -> Sequence[AccessEntry]:
    """What the rules grant to one grantee, as people see it."""
    here, inside = grantee.modes_here, grantee.modes_inside
    if not is_container(resource) or here == inside:
        return [AccessEntry(grantee.grantee, here, Scope.BOTH)]
    return [
        *([AccessEntry(grantee.grantee, here, Scope.THIS)] if here else []),
        *([AccessEntry(grantee.grantee, inside, Scope.INSIDE)] if inside else []),
    ]
