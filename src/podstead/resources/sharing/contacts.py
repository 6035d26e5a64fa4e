"""Lists the people with a WebID in a person's own address books.

Address books are found through the type indexes that the profile names (Solid Type Indexes), and
read in the form in which Solid applications write them: an index of names, and a vCard for each
person with the WebID as ``vcard:url``. Everything is read with the person's rights, on this server
only, and whatever cannot be read or understood is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from podstead.core import vocab
from podstead.core.errors import RequestRefused
from podstead.core.identity import Identity
from podstead.rdf.graph import EMPTY_GRAPH, Graph, Iri, Literal, Object, Subject
from podstead.resources.documents import Documents
from podstead.resources.service import ResourceService
from podstead.resources.sharing.people import UnusableIri, agent_iri
from podstead.resources.sharing.reading import read_rdf
from podstead.wac.iris import local_path

MAX_CONTACTS: Final = 50
_MAX_DOCUMENTS: Final = 80
"""How many documents are read for one list."""
_MAX_NAME_CHARS: Final = 100

_INDEXES: Final = (Iri(vocab.SOLID + "privateTypeIndex"), Iri(vocab.SOLID + "publicTypeIndex"))
_FOR_CLASS: Final = Iri(vocab.SOLID + "forClass")
_INSTANCE: Final = Iri(vocab.SOLID + "instance")
_INSTANCES_IN: Final = Iri(vocab.SOLID + "instanceContainer")
_ADDRESS_BOOK: Final = Iri(vocab.VCARD + "AddressBook")
_INDIVIDUAL: Final = Iri(vocab.VCARD + "Individual")
_NAME_INDEX: Final = Iri(vocab.VCARD + "nameEmailIndex")
_NAME: Final = Iri(vocab.VCARD + "fn")
_URLS: Final = (Iri(vocab.VCARD + "url"), Iri(vocab.VCARD + "hasURL"))
_VALUE: Final = Iri(vocab.VCARD + "value")
_TYPE: Final = Iri(vocab.RDF_TYPE)
_WEB_ID: Final = Iri(vocab.VCARD + "WebId")
_CONTAINS: Final = Iri(vocab.LDP_CONTAINS)


@dataclass(frozen=True, slots=True)
class Contact:
    """Somebody in an address book."""

    name: str
    iri: str


@dataclass(frozen=True, slots=True)
class Contacts:
    """Reads address books."""

    base_url: str
    resources: ResourceService
    documents: Documents

    async def of(self, person: Identity) -> tuple[Contact, ...]:
        """The contacts of a person; none if the profile is not on this server."""
        reading = _Reading(self, person)
        profile = await reading.document(person.iri)
        found: dict[str, Contact] = {}
        for index in _objects(profile, Iri(person.iri), _INDEXES):
            graph = await reading.document(index.value)
            for card in await reading.cards(graph):
                contact = await reading.contact(card)
                if contact is not None:
                    found.setdefault(contact.iri, contact)
                if len(found) == MAX_CONTACTS:
                    break
        return tuple(found.values())


class _Reading:
    """Reads the documents for one list, each once."""

    def __init__(self, contacts: Contacts, person: Identity) -> None:
        self._contacts = contacts
        self._person = person
        self._read: dict[str, Graph] = {}

    async def document(self, iri: str) -> Graph:
        """The document that an IRI leads to; empty if the person cannot read it."""
        url = iri.partition("#")[0]
        if url in self._read:
            return self._read[url]
        path = local_path(url, self._contacts.base_url)
        graph = EMPTY_GRAPH
        if path is not None and len(self._read) < _MAX_DOCUMENTS:
            contacts = self._contacts
            try:
                found = await read_rdf(contacts.resources, contacts.documents, self._person, path)
                graph = found.document.graph
            except RequestRefused:
                graph = EMPTY_GRAPH
        self._read[url] = graph
        return graph

    async def cards(self, index: Graph) -> list[Iri]:
        """The vCards that a type index leads to."""
        cards: list[Iri] = []
        for registration in index.subjects(_FOR_CLASS, _ADDRESS_BOOK):
            for book in _objects(index, registration, [_INSTANCE]):
                graph = await self.document(book.value)
                for names in _objects(graph, book, [_NAME_INDEX]):
                    named = await self.document(names.value)
                    cards += [each for each in named.subjects(_NAME) if isinstance(each, Iri)]
        for registration in index.subjects(_FOR_CLASS, _INDIVIDUAL):
            cards += _objects(index, registration, [_INSTANCE])
            for container in _objects(index, registration, [_INSTANCES_IN]):
                cards += await self._cards_in(container)
        return list(dict.fromkeys(cards))[:_MAX_DOCUMENTS]

    async def _cards_in(self, container: Iri) -> list[Iri]:
        """The vCards in the documents of a container."""
        if not container.value.endswith("/"):
            return []
        listing = await self.document(container.value)
        cards: list[Iri] = []
        for member in _objects(listing, container, [_CONTAINS])[:_MAX_DOCUMENTS]:
            if not member.value.endswith("/"):
                graph = await self.document(member.value)
                cards += [each for each in graph.subjects(_NAME) if isinstance(each, Iri)]
        return cards

    async def contact(self, card: Iri) -> Contact | None:
        """The person of a vCard, if it has a name and a WebID."""
        graph = await self.document(card.value)
        names = [term.value for term in graph.objects(card, _NAME) if isinstance(term, Literal)]
        web_id = _web_id(graph, card)
        if not names or web_id is None:
            return None
        return Contact(names[0][:_MAX_NAME_CHARS], web_id)


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


def _objects(graph: Graph, subject: Subject, predicates: Iterable[Iri]) -> list[Iri]:
    return [
        term
        for predicate in predicates
        for term in graph.objects(subject, predicate)
        if isinstance(term, Iri)
    ]
