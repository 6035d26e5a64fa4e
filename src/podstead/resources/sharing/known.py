"""Whom a person may mean: contacts, groups, and people who share with one another.

Everything is the person's own: their address book and groups, the rules of their pods, and what
others share with them. So nobody learns from it who has an account here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from podstead.core.identifiers import ResourcePath
from podstead.core.identity import Identity
from podstead.resources.sharing.groups import OwnGroups
from podstead.resources.sharing.people import Contacts
from podstead.resources.sharing.shared import SharedLists
from podstead.wac.acl import agent_name
from podstead.wac.gate import StorageOwners
from podstead.wac.sharing.rules import Grantee, agent, group

MAX_SUGGESTED: Final = 200
"""How many people and groups one list has."""


def by_address(grantee: Grantee) -> tuple[str, str]:
    """The key of an order that is the same each time."""
    return grantee.kind.value, grantee.iri


@dataclass(frozen=True, slots=True)
class Known:
    """Somebody whom the person may mean, with the name that the person has given them; empty if
    there is none."""

    grantee: Grantee
    name: str = ""


@dataclass(frozen=True, slots=True)
class KnownPeople:
    """Lists whom people may mean."""

    contacts: Contacts
    groups: OwnGroups
    lists: SharedLists
    owners: StorageOwners

    async def named(self, person: Identity, pods: Sequence[ResourcePath]) -> Sequence[Known]:
        """Contacts and groups, which the person has named. Raises ServerTrouble."""
        return [
            *(Known(agent(each.iri), each.name) for each in await self.contacts.of(person)),
            *(Known(group(each.iri), each.name) for each in await self.groups.of(person, pods)),
        ]

    async def suggested(self, person: Identity, pods: Sequence[ResourcePath]) -> Sequence[Known]:
        """These, and those whom the person shares with or who share with the person, each once and
        without the person. Raises ServerTrouble."""
        found = {each.grantee: each for each in await self.named(person, pods)}
        for grantee in sorted(await self.lists.grantees(pods), key=by_address):
            found.setdefault(grantee, Known(grantee))
        shared = await self.lists.shared_with(person, own=pods)
        for storage in dict.fromkeys(each.storage for each in shared.resources):
            owner = await self.owners.owner_of(storage)
            if owner is not None:
                found.setdefault(agent(owner), Known(agent(owner)))
        own = set(map(agent_name, person.names()))
        others = [each for each in found.values() if each.grantee.iri not in own]
        return others[:MAX_SUGGESTED]
