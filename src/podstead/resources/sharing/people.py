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

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol
from urllib.parse import urlsplit

from podstead.core import vocab
from podstead.core.errors import BadRequest, NotFound, RateLimited
from podstead.core.identity import Identity
from podstead.core.request_context import limit_key
from podstead.rdf.graph import EMPTY_GRAPH, Graph, Iri, Literal, Object
from podstead.resources.sharing.documents import AgentDocuments
from podstead.storage.record_store import RecordStore
from podstead.wac.acl import NOSTR_DID, agent_name

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

    def __init__(self) -> None:
        super().__init__("This is not the address (WebID) of a person or group")


class NobodyFound(NotFound):
    """Nobody visible to the person has this name or address."""

    def __init__(self) -> None:
        super().__init__("Nobody was found by this name or address")


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
_NAME: Final = Iri(vocab.VCARD + "fn")
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
        for group in groups:
            url = group.partition("#")[0]
            if url not in read and len(read) < _MAX_GROUP_DOCUMENTS:
                read[url] = await self.documents.graph(person, url)
            name = stated_name(read.get(url, EMPTY_GRAPH), Iri(group))
            if name:
                names[group] = name
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
