"""Finds the person meant by a typed name, e-mail address or WebID, lists the people in a person's
own address books, and reads the names of groups.

A name is that of a pod of this server and means its owner. An e-mail address means somebody only if
that person's own public profile states the address, so that the answer reveals nothing that is not
public, least of all who has an account. Look-ups are limited for each person who makes them;
those of people from other servers for each network.

Address books are found through the type indexes that the profile names (Solid Type Indexes), and
read in the form in which Solid applications write them: an index of names, and a vCard for each
person with the WebID as ``vcard:url``. Documents are read with the person's rights, through the
service that answers GET, on this server only; whatever cannot be read or understood is left out.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol
from urllib.parse import urlsplit

from podstead.core import vocab
from podstead.core.clock import Randomness
from podstead.core.errors import BadRequest, NotFound, RateLimited, RequestRefused
from podstead.core.identifiers import ResourcePath
from podstead.core.identity import Identity
from podstead.core.request_context import limit_key
from podstead.rdf.graph import EMPTY_GRAPH, Graph, Iri, Literal, Object
from podstead.resources.codes import ResourceCodes
from podstead.resources.documents import is_rdf
from podstead.resources.sharing.documents import AgentDocuments
from podstead.resources.sharing.shared import SharedLists
from podstead.storage.record_store import RecordStore
from podstead.wac.acl import NOSTR_DID, agent_name
from podstead.wac.gate import StorageOwners
from podstead.wac.sharing.rules import Grantee, agent, group

LOOKUPS_PER_HOUR: Final = 60
MAX_IRI_CHARS: Final = 2_000

_HOUR_S: Final = 3600
_EMAIL_PROPERTIES: Final = tuple(
    Iri(iri)
    for iri in (
        vocab.FOAF + "mbox",
        vocab.VCARD + "hasEmail",
        vocab.VCARD + "email",
        vocab.VCARD + "value",
    )
)


class UnusableIri(BadRequest):
    """The text is not the IRI of a person, a group or an application."""

    code = ResourceCodes.NO_ADDRESS_OF_PERSON


class NobodyFound(NotFound):
    """Nobody visible to the person has this name or address."""

    code = ResourceCodes.NOBODY_FOUND


class EmailOwners(Protocol):
    """Knows the accounts with e-mail addresses."""

    async def web_id_of(self, email: str) -> str | None:
        """The WebID of the account; ``None`` if there is none."""


class NoAccounts:
    """A server without accounts."""

    async def web_id_of(self, email: str) -> None:
        """None."""


@dataclass(frozen=True, slots=True)
class PeopleDirectory:
    """Finds agents by what people call them."""

    documents: AgentDocuments
    records: RecordStore
    emails: EmailOwners

    async def find(self, person: Identity, text: str) -> str:
        """The IRI of the agent that ``person`` means.

        Raises UnusableIri, NobodyFound and RateLimited.
        """
        wanted = text.strip()
        if "://" in wanted or wanted.startswith("did:"):
            return agent_iri(wanted)
        await self._count(person)
        if "@" in wanted:
            return await self._by_email(person, wanted)
        pod = await self.records.store.read_pod(wanted) if wanted else None
        if pod is None:
            raise NobodyFound
        return agent_name(pod.owner)

    async def _by_email(self, person: Identity, email: str) -> str:
        web_id = await self.emails.web_id_of(email)
        # For an unknown address another profile is read, so that the answer takes as long.
        profile = await self.documents.graph(None, web_id or person.iri)
        if web_id is None or not _states(profile, email):
            raise NobodyFound
        return agent_name(web_id)

    async def _count(self, person: Identity) -> None:
        key = f"people:{limit_key(person, base_url=self.documents.base_url)}"
        wait_s = await self.records.take(key, capacity=LOOKUPS_PER_HOUR, period_s=_HOUR_S)
        if wait_s is not None:
            raise RateLimited(retry_after_s=wait_s)


def agent_iri(text: str) -> str:
    """The canonical IRI of an agent or group: an HTTP URL, or the DID of a key. Raises
    UnusableIri."""
    try:
        iri = Iri(text).value
        parts = urlsplit(iri)
        usable = bool(parts.hostname) if parts.scheme in ("http", "https") else False
    except ValueError as error:
        raise UnusableIri from error
    if len(iri) > MAX_IRI_CHARS or not (usable or iri.startswith(NOSTR_DID)):
        raise UnusableIri
    return agent_name(iri)


def _states(profile: Graph, email: str) -> bool:
    """Whether a profile states an e-mail address, in one of the usual ways."""
    wanted = email.casefold()
    for _, predicate, object_ in profile:
        if predicate in _EMAIL_PROPERTIES and isinstance(object_, Iri | Literal):
            stated = object_.value.removeprefix("mailto:").casefold()
            if stated == wanted:
                return True
    return False


MAX_CONTACTS: Final = 50
_MAX_DOCUMENTS: Final = 80
"""How many documents are read for one list."""
_MAX_NAME_CHARS: Final = 100

PRIVATE_INDEX: Final = Iri(vocab.SOLID + "privateTypeIndex")
TYPE_INDEXES: Final = (PRIVATE_INDEX, Iri(vocab.SOLID + "publicTypeIndex"))
FOR_CLASS: Final = Iri(vocab.SOLID + "forClass")
INSTANCE: Final = Iri(vocab.SOLID + "instance")
INSTANCES_IN: Final = Iri(vocab.SOLID + "instanceContainer")
ADDRESS_BOOK: Final = Iri(vocab.VCARD + "AddressBook")
NAME_INDEX: Final = Iri(vocab.VCARD + "nameEmailIndex")
_INDIVIDUAL: Final = Iri(vocab.VCARD + "Individual")
_KNOWS: Final = Iri(vocab.FOAF_KNOWS)
_NAME: Final = Iri(vocab.VCARD_FN)
_URLS: Final = (Iri(vocab.VCARD + "url"), Iri(vocab.VCARD + "hasURL"))
_VALUE: Final = Iri(vocab.VCARD + "value")
_TYPE: Final = Iri(vocab.RDF_TYPE)
_WEB_ID: Final = Iri(vocab.VCARD + "WebId")
_CONTAINS: Final = Iri(vocab.LDP_CONTAINS)


@dataclass(frozen=True, slots=True)
class Contact:
    """Somebody in an address book, or whom the profile says that the person knows; then ``name``
    may be empty."""

    name: str
    iri: str


@dataclass(frozen=True, slots=True)
class Contacts:
    """Reads address books."""

    documents: AgentDocuments

    async def of(self, person: Identity) -> tuple[Contact, ...]:
        """The contacts of a person, and whom the profile names (``foaf:knows``); none if the
        profile is not on this server."""
        reading = _ContactReader(self.documents, person)
        profile = await reading.document(person.iri)
        found: dict[str, Contact] = {}
        for index in profile.iris(Iri(person.iri), *TYPE_INDEXES):
            graph = await reading.document(index)
            for card in await reading.cards(graph):
                contact = await reading.contact(card)
                if contact is not None:
                    found.setdefault(contact.iri, contact)
                if len(found) == MAX_CONTACTS:
                    break
        for known in profile.iris(Iri(person.iri), _KNOWS)[:MAX_CONTACTS]:
            with suppress(UnusableIri):
                iri = agent_iri(known)
                found.setdefault(iri, Contact(stated_name(profile, Iri(known)), iri))
        return tuple(found.values())[:MAX_CONTACTS]


class _ContactReader:
    """Reads the documents for one list, each once."""

    def __init__(self, documents: AgentDocuments, person: Identity) -> None:
        self._documents = documents
        self._person = person
        self._read: dict[str, Graph] = {}

    async def document(self, iri: str) -> Graph:
        """The document that an IRI leads to; empty if the person cannot read it."""
        url = iri.partition("#")[0]
        if url not in self._read:
            if len(self._read) >= _MAX_DOCUMENTS:
                return EMPTY_GRAPH
            self._read[url] = await self._documents.graph(self._person, url)
        return self._read[url]

    async def cards(self, index: Graph) -> list[Iri]:
        """The vCards that a type index leads to."""
        cards: list[Iri] = []
        for book, is_folder in registered(index, ADDRESS_BOOK):
            if not is_folder:
                graph = await self.document(book)
                for names in graph.iris(Iri(book), NAME_INDEX):
                    cards += _named(await self.document(names))
        for place, is_folder in registered(index, _INDIVIDUAL):
            cards += await self._cards_in(place) if is_folder else [Iri(place)]
        return list(dict.fromkeys(cards))[:_MAX_DOCUMENTS]

    async def _cards_in(self, container: str) -> list[Iri]:
        """The contacts in the documents of a container."""
        if not container.endswith("/"):
            return []
        listing = await self.document(container)
        cards: list[Iri] = []
        for member in listing.iris(Iri(container), _CONTAINS)[:_MAX_DOCUMENTS]:
            if not member.endswith("/"):
                cards += _named(await self.document(member))
        return cards

    async def contact(self, card: Iri) -> Contact | None:
        """The person of a vCard, if it has a name and a WebID."""
        graph = await self.document(card.value)
        name, web_id = stated_name(graph, card), _web_id(graph, card)
        return Contact(name, web_id) if name and web_id is not None else None


def _web_id(graph: Graph, card: Iri) -> str | None:
    """The WebID of a vCard: a URL that is typed as one, or that has a fragment."""
    for predicate in _URLS:
        for term in graph.objects(card, predicate):
            is_typed = not isinstance(term, Literal) and _WEB_ID in graph.objects(term, _TYPE)
            for value in _values(graph, term):
                if is_typed or "#" in value:
                    try:
                        return agent_iri(value)
                    except UnusableIri:
                        continue
    return None


def _values(graph: Graph, term: Object) -> list[str]:
    """The value of a property: the term itself, or the ``vcard:value`` of a node."""
    if isinstance(term, Literal):
        return [term.value]
    inner = [each.value for each in graph.objects(term, _VALUE) if isinstance(each, Iri | Literal)]
    return inner or ([term.value] if isinstance(term, Iri) else [])


def registered(index: Graph, class_: Iri) -> Iterator[tuple[str, bool]]:
    """What a type index registers for a class, and whether it is a container of such things."""
    for registration in index.subjects(FOR_CLASS, class_):
        yield from ((each, False) for each in index.iris(registration, INSTANCE))
        yield from ((each, True) for each in index.iris(registration, INSTANCES_IN))


def _named(graph: Graph) -> list[Iri]:
    return [each for each in graph.subjects(_NAME) if isinstance(each, Iri)]


_MAX_GROUP_DOCUMENTS: Final = 50
"""How many documents are read for one page."""

_NAMES: Final = (Iri(vocab.VCARD_FN), Iri(vocab.FOAF_NAME), Iri(vocab.RDFS + "label"))


@dataclass(frozen=True, slots=True)
class GroupNames:
    """Reads the names of groups."""

    documents: AgentDocuments

    async def of(self, person: Identity | None, groups: Iterable[str]) -> dict[str, str]:
        """The names of those groups that state one in a document that the person may read."""
        read: dict[str, Graph] = {}
        names = {}
        for iri in groups:
            url = iri.partition("#")[0]
            if url not in read and len(read) < _MAX_GROUP_DOCUMENTS:
                read[url] = await self.documents.graph(person, url)
            name = stated_name(read.get(url, EMPTY_GRAPH), Iri(iri))
            if name:
                names[iri] = name
        return names


def stated_name(graph: Graph, group: Iri) -> str:
    """The first of its names in alphabetical order, without characters that do not show as
    themselves; empty without a name."""
    for predicate in _NAMES:
        stated = graph.literals(group, predicate)
        names = sorted(" ".join("".join(filter(str.isprintable, each)).split()) for each in stated)
        for name in names:
            if name:
                return name[:_MAX_NAME_CHARS]
    return ""


# The groups that people make: documents in the folder ``groups`` of their pod.
#
# Each document describes one ``vcard:Group`` with its name (``vcard:fn``) and members
# (``vcard:hasMember``), as other Solid applications write them, and is read and written with the
# rights of the person. What else it says stays.

FOLDER: Final = "groups/"
MAX_GROUPS: Final = 100
"""How many documents of the folder are read."""
MAX_MEMBERS: Final = 500
MAX_NAME_CHARACTERS: Final = 100

_GROUP: Final = Iri(vocab.VCARD_GROUP)
_MEMBER: Final = Iri(vocab.VCARD_HAS_MEMBER)


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
