"""The groups that people make: documents in the folder ``groups`` of their pod.

Each document describes one ``vcard:Group`` with its name (``vcard:fn``) and members
(``vcard:hasMember``), as other Solid applications write them, and is read and written with the
rights of the person. What else it says stays.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from podstead.core import vocab
from podstead.core.clock import Randomness
from podstead.core.errors import NotFound, RequestRefused
from podstead.core.identifiers import ResourcePath
from podstead.core.identity import Identity
from podstead.rdf.graph import Graph, Iri, Literal
from podstead.resources.documents import is_rdf
from podstead.resources.sharing.documents import AgentDocuments
from podstead.resources.sharing.people import Contacts, stated_name
from podstead.resources.sharing.shared import SharedLists
from podstead.wac.acl import agent_name
from podstead.wac.gate import StorageOwners
from podstead.wac.sharing.rules import Grantee, agent, group

FOLDER: Final = "groups/"
MAX_GROUPS: Final = 100
"""How many documents of the folder are read."""
MAX_MEMBERS: Final = 500
MAX_NAME_CHARACTERS: Final = 100

_GROUP: Final = Iri(vocab.VCARD_GROUP)
_MEMBER: Final = Iri(vocab.VCARD_HAS_MEMBER)
_NAME: Final = Iri(vocab.VCARD_FN)
_TYPE: Final = Iri(vocab.RDF_TYPE)


@dataclass(frozen=True, slots=True)
class OwnGroup:
    """A group in a pod of the person; ``tag`` identifies the state of its document."""

    iri: str
    path: ResourcePath
    name: str
    members: tuple[str, ...]
    tag: str


@dataclass(frozen=True, slots=True)
class OwnGroups:
    """Lists, makes and changes groups."""

    documents: AgentDocuments
    randomness: Randomness

    async def of(self, person: Identity, pods: Sequence[ResourcePath]) -> Sequence[OwnGroup]:
        """The groups in the pods of a person. Raises ServerTrouble."""
        return [group for pod in pods for group in await self._in_pod(person, pod)]

    async def read(self, person: Identity, path: ResourcePath) -> OwnGroup:
        """The group of a document. Raises NotFound for a document without one, and what a GET
        raises."""
        read = await self.documents.read(person, path)
        graph = read.document.graph
        for subject in sorted(graph.subjects(_TYPE, _GROUP), key=str):
            # Rules about a group of another address are about whatever is there.
            if isinstance(subject, Iri) and self.documents.path_of(subject.value) == path:
                members = tuple(sorted(set(graph.iris(subject, _MEMBER))))
                name = stated_name(graph, subject) or path.rpartition("/")[2]
                return OwnGroup(subject.value, path, name, members, read.etag)
        raise NotFound

    async def create(
        self, person: Identity, pod: ResourcePath, name: str, members: Iterable[str]
    ) -> OwnGroup:
        """Make a group. Its address is never used again, so that no rule about a former group
        applies to it. Raises what a PUT raises."""
        path = ResourcePath(f"{pod}{FOLDER}{_slug(name)}-{self.randomness.token_hex(4)}.ttl")
        group = Iri(f"{self.documents.base_url}{path}#group")
        graph = Graph([(group, _TYPE, _GROUP)]) | _statements(group, name, members)
        await self.documents.create(person, path, graph, {"vcard": vocab.VCARD})
        return await self.read(person, path)

    async def change(
        self, person: Identity, group: OwnGroup, name: str, members: Iterable[str]
    ) -> None:
        """Name a group and its members anew, if its document is still as ``group`` says. Raises
        what a PUT raises, PreconditionFailed among that."""
        read = await self.documents.read(person, group.path)
        subject, graph = Iri(group.iri), read.document.graph
        former = Graph(
            (subject, predicate, each)
            for predicate in (_NAME, _MEMBER)
            for each in graph.objects(subject, predicate)
        )
        changed = (graph - former) | _statements(subject, name, members)
        await self.documents.replace(person, group.path, read, changed, etag=group.tag)

    async def remove(self, person: Identity, group: OwnGroup) -> None:
        """Delete the document of a group. Raises what a DELETE raises."""
        await self.documents.remove(person, group.path, group.tag)

    # --- steps ----------------------------------------------------------------------------

    async def _in_pod(self, person: Identity, pod: ResourcePath) -> Sequence[OwnGroup]:
        folder = ResourcePath(pod + FOLDER)
        try:
            members = await self.documents.members(person, folder, limit=MAX_GROUPS)
        except RequestRefused:
            return []
        found: list[OwnGroup] = []
        for each in members:
            if is_rdf(each.content_type) and not each.kind.is_container:
                try:
                    found.append(await self.read(person, each.path))
                except RequestRefused:
                    continue
        return found


def _statements(group: Iri, name: str, members: Iterable[str]) -> Graph:
    return Graph(
        [
            (group, _NAME, Literal(name)),
            *((group, _MEMBER, Iri(member)) for member in members),
        ]
    )


def _slug(name: str) -> str:
    """A name as part of an address."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40] or "group"


# Whom a person may mean: contacts, groups, and people who share with one another.
#
# Everything is the person's own: their address book and groups, the rules of their pods, and what
# others share with them. So nobody learns from it who has an account here.

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
