"""Finds the things of one kind in what a person may read, and stores edited and new ones.

The type indexes that the profile names lead to documents, to folders and to address books (Solid
Type Indexes). All is read and written as the person, through the service that answers GET and PUT.
What a document says about things in other documents is not shown as theirs; the index of an address
book only gives names.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from podstead.core import vocab
from podstead.core.codes import ErrorCode
from podstead.core.errors import Conflict, NotFound, PreconditionFailed, RequestRefused
from podstead.core.identifiers import ResourcePath, is_container
from podstead.core.identity import Identity
from podstead.core.media_types import N3
from podstead.features.personal_data import entries
from podstead.features.personal_data.kinds import CONTACTS, DC, KINDS, PersonalDataKind
from podstead.rdf.graph import EMPTY_GRAPH, Graph, Iri, Literal, Triple
from podstead.rdf.identity_statements import ProfileChange
from podstead.resources.documents import is_rdf
from podstead.resources.sharing import people
from podstead.resources.sharing.documents import AgentDocuments, ReadDocument

MAX_DOCUMENTS: Final = 300
MAX_STATEMENTS: Final = 60_000
MAX_ENTRIES: Final = 3_000
MAX_DOCUMENT_BYTES: Final = 512 * 1024
MAX_SECONDS: Final = 5.0
"""The limits of one list: how much is read for it, and for how long."""
MAX_CARDS: Final = 100
"""How many contacts an address book may have for all of them to be read; of others, only the names
in its index are listed."""

_TYPE: Final = Iri(vocab.RDF_TYPE)
_PREFERENCES: Final = Iri(vocab.PIM + "preferencesFile")
_REGISTRATION: Final = Iri(vocab.SOLID + "TypeRegistration")
_IN_BOOK: Final = Iri(vocab.VCARD + "inAddressBook")
_NAME: Final = Iri(vocab.VCARD_FN)


class PersonalDataCodes(ErrorCode):
    """The errors of this feature."""

    NO_INDEX = (
        "The profile names no private type index",
        "Your profile does not say where applications keep things, so nothing can be added here.",
    )


@dataclass(frozen=True, slots=True)
class PlacedEntry:
    """An entry and the document that it is in."""

    entry: entries.PersonalEntry
    document: ResourcePath


@dataclass(frozen=True, slots=True)
class AddressBook:
    """An address book, and the document with the names of those who are in it."""

    iri: str
    names: ResourcePath


@dataclass
class FoundEntries:
    """What a search for things of one kind has found."""

    places: dict[str, PlacedEntry] = field(default_factory=dict)
    """By the IRI of the thing."""
    containers: list[ResourcePath] = field(default_factory=list)
    documents: list[ResourcePath] = field(default_factory=list)
    books: list[AddressBook] = field(default_factory=list)
    private_index: ResourcePath | None = None
    unreadable: set[str] = field(default_factory=set)
    """What could not be read or understood."""
    elsewhere: set[str] = field(default_factory=set)
    """What is on other servers."""
    is_complete: bool = True


@dataclass(frozen=True, slots=True)
class Collections:
    """Reads and writes the things that people keep."""

    documents: AgentDocuments

    async def find(
        self, person: Identity, pods: Sequence[ResourcePath], kind: PersonalDataKind
    ) -> FoundEntries:
        """All things of a kind, within the limits. Raises ServerTrouble."""
        return await _Search(self.documents, person, pods, kind).run()

    async def read(
        self, person: Identity | None, path: ResourcePath, iri: str
    ) -> tuple[entries.PersonalEntry, ReadDocument]:
        """A thing and its document; without an IRI, the first thing in it. Raises what a GET
        raises, and NotFound."""
        read = await self.documents.read(person, path)
        graph, url = read.document.graph, self.documents.base_url + path
        for kind, subject in things_in(graph, url):
            if subject.value == iri or not iri:
                return entries.read_entry(graph, subject, kind), read
        raise NotFound

    async def save(
        self,
        person: Identity | None,
        place: PlacedEntry,
        read: ReadDocument,
        wanted: Mapping[str, Sequence[str]],
    ) -> None:
        """Give a thing these values, if its document is still as it was read. Raises
        PreconditionFailed, and what a PUT raises."""
        graph = read.document.graph
        change = entries.edit_of(graph, place.entry, wanted)
        await self.documents.replace(person, place.document, read, change.applied(graph))

    async def remove(self, person: Identity | None, place: PlacedEntry, read: ReadDocument) -> None:
        """Delete a thing: with its document if that is about nothing else. Raises as
        :meth:`save`."""
        graph, url = read.document.graph, self.documents.base_url + place.document
        if entries.is_only_thing(graph, place.entry, url):
            await self.documents.remove(person, place.document, read.etag)
        else:
            changed = entries.without(graph, place.entry)
            await self.documents.replace(person, place.document, read, changed)

    async def rename_in_books(
        self, person: Identity, pods: Sequence[ResourcePath], iri: str, name: str | None
    ) -> None:
        """Let the address books list a contact by another name, or by none. Raises
        RequestRefused."""
        contact = Iri(iri)
        for book in await _Search(self.documents, person, pods, CONTACTS).books():
            graph = (await self.documents.read(person, book.names)).document.graph
            about = graph.about(contact)
            if name is None:
                deletes = [(contact, each, value) for each in about for value in about[each]]
                inserts = []
            else:
                deletes = [(contact, _NAME, value) for value in about.get(_NAME, ())]
                inserts = [(contact, _NAME, Literal(name))] if deletes else []
            deletes = [each for each in deletes if type(each[2]) in (Iri, Literal)]
            if deletes != inserts:
                await self._patch(person, book.names, deletes, inserts)

    async def add(
        self,
        person: Identity,
        pods: Sequence[ResourcePath],
        kind: PersonalDataKind,
        wanted: Mapping[str, Sequence[str]],
        *,
        key: str,
    ) -> ResourcePath:
        """Store a new thing where things of its kind are kept, and make such a place if there is
        none; ``key`` is a name that nothing has yet. The document. Raises Conflict without a type
        index, and what a PUT raises."""
        found = await self.find(person, pods, kind)
        if not (found.books or found.containers or found.documents):
            await self._make_place(person, found, pods, kind)
        base_url = self.documents.base_url
        if found.books:
            book = found.books[0]
            folder = book.names.rpartition("/")[0]
            path = ResourcePath(f"{folder}/Person/{key}/index.ttl")
            iri = f"{base_url}{path}#this"
            await self.documents.create(
                person, path, entries.new_entry(kind, iri, wanted), kind.prefixes
            )
            name = Literal(next(iter(wanted.get("name", ())), ""))
            listed: list[Triple] = [
                (Iri(iri), _IN_BOOK, Iri(book.iri)),
                (Iri(iri), _NAME, name),
            ]
            await self._patch(person, book.names, (), listed)
            return path
        if found.containers:
            path = ResourcePath(f"{found.containers[0]}{key}.ttl")
            graph = entries.new_entry(kind, f"{base_url}{path}#this", wanted)
            await self.documents.create(person, path, graph, kind.prefixes)
            return path
        path = found.documents[0]
        read = await self.documents.read(person, path)
        graph = read.document.graph | entries.new_entry(kind, f"{base_url}{path}#{key}", wanted)
        await self.documents.replace(person, path, read, graph)
        return path

    async def _make_place(
        self,
        person: Identity,
        found: FoundEntries,
        pods: Sequence[ResourcePath],
        kind: PersonalDataKind,
    ) -> None:
        index = found.private_index
        if index is None or not pods:
            raise Conflict(PersonalDataCodes.NO_INDEX)
        base_url = self.documents.base_url
        folder = ResourcePath(pods[0] + kind.folder)
        type_, relation, place = next(iter(kind.types)), people.INSTANCES_IN, Iri(base_url + folder)
        if kind is CONTACTS:
            type_, relation, place = (
                people.ADDRESS_BOOK,
                people.INSTANCE,
                Iri(f"{base_url}{folder}index.ttl#this"),
            )
            names, groups = f"{folder}people.ttl", f"{folder}groups.ttl"
            book: list[Triple] = [
                (place, _TYPE, people.ADDRESS_BOOK),
                (place, Iri(DC + "title"), Literal("Contacts")),
                (place, people.NAME_INDEX, Iri(base_url + names)),
                (place, Iri(vocab.VCARD + "groupIndex"), Iri(base_url + groups)),
                (place, Iri(vocab.ACL + "owner"), Iri(person.iri)),
            ]
            for path, triples in ((names, []), (groups, []), (f"{folder}index.ttl", book)):
                prefixes = {"vcard": vocab.VCARD, "dc": DC}
                try:
                    await self.documents.create(
                        person, ResourcePath(path), Graph(triples), prefixes
                    )
                except PreconditionFailed:
                    continue  # from an attempt that did not come to its end
            found.books.append(AddressBook(place.value, ResourcePath(names)))
        else:
            found.containers.append(folder)
        registration = Iri(f"{base_url}{index}#{kind.name}")
        registered: list[Triple] = [
            (registration, _TYPE, _REGISTRATION),
            (registration, people.FOR_CLASS, type_),
            (registration, relation, place),
        ]
        await self._patch(person, index, (), registered)

    async def _patch(
        self,
        person: Identity,
        path: ResourcePath,
        deletes: Sequence[Triple],
        inserts: Sequence[Triple],
    ) -> None:
        patch = ProfileChange(tuple(deletes), tuple(inserts)).as_patch()
        await self.documents.send(person, "PATCH", path, patch, content_type=N3)


def things_in(graph: Graph, document_url: str) -> Iterator[tuple[PersonalDataKind, Iri]]:
    """The things of all kinds that a document is about."""
    for kind in KINDS.values():
        for each in entries.subjects_in(graph, document_url, kind):
            yield kind, each


class _Search:
    """One search, which reads each document once, within the limits."""

    def __init__(
        self,
        documents: AgentDocuments,
        person: Identity,
        pods: Sequence[ResourcePath],
        kind: PersonalDataKind,
    ) -> None:
        self._documents = documents
        self._person = person
        self._pods = tuple(pods)
        self._kind = kind
        self._read: dict[ResourcePath, Graph] = {}
        self._gone: set[ResourcePath] = set()
        self._statements = 0
        self._ends_at = asyncio.get_running_loop().time() + MAX_SECONDS
        self._found = FoundEntries()

    async def run(self) -> FoundEntries:
        for index in await self._type_indexes():
            graph = await self._graph(index)
            for type_ in (
                *self._kind.types,
                *((people.ADDRESS_BOOK,) if self._kind is CONTACTS else ()),
            ):
                for place, is_folder in people.registered(graph, type_):
                    if is_folder:
                        await self._take_container(place)
                    else:
                        await self._take_instance(place, type_)
        return self._found

    async def books(self) -> Sequence[AddressBook]:
        """The address books, without the contacts in them."""
        for index in await self._type_indexes():
            graph = await self._graph(index)
            for place, is_folder in people.registered(graph, people.ADDRESS_BOOK):
                if not is_folder:
                    await self._names_in(place, await self._graph(place))
        return self._found.books

    async def _names_in(self, book: str, graph: Graph) -> list[Graph]:
        """The names that an address book lists."""
        found = []
        for names in graph.iris(Iri(book), people.NAME_INDEX):
            found.append(await self._graph(names))
            index = self._documents.path_of(names)
            if index is not None and self._is_own(index) and index in self._read:
                self._found.books.append(AddressBook(book, index))
        return found

    async def _type_indexes(self) -> list[str]:
        """The type indexes, the private ones first; those in the usual places if the profile is on
        another server or names none."""
        web_id = Iri(self._person.iri)
        profile = EMPTY_GRAPH
        if self._documents.path_of(web_id.value) is not None:
            profile = await self._graph(web_id.value)
        preferences = profile.iris(web_id, _PREFERENCES)
        stated = [profile, *[await self._graph(each) for each in preferences]]
        named = [
            (index, each)
            for index in people.TYPE_INDEXES
            for graph in stated
            for each in graph.iris(web_id, index)
        ]
        if not named:
            base_url = self._documents.base_url
            named = [
                (index, f"{base_url}{pod}settings/{name}TypeIndex.ttl")
                for pod in self._pods
                for index, name in zip(people.TYPE_INDEXES, ("private", "public"), strict=True)
            ]
        for index, each in named:
            path = self._documents.path_of(each)
            if index == people.PRIVATE_INDEX and path is not None and self._is_own(path):
                self._found.private_index = self._found.private_index or path
        return list(dict.fromkeys(each for _, each in named))

    def _is_own(self, path: ResourcePath) -> bool:
        return path.startswith(self._pods) if self._pods else False

    async def _take_instance(self, place: str, type_: Iri) -> None:
        graph = await self._graph(place)
        path = self._documents.path_of(place)
        if path is None:
            return
        if type_ != people.ADDRESS_BOOK:
            self._take(graph, path)
            if self._is_own(path) and path not in self._found.documents and path in self._read:
                self._found.documents.append(path)
            return
        for named in await self._names_in(place, graph):
            contacts = named.subjects(_NAME)
            for contact in contacts:
                document = self._documents.path_of(contact.value)
                if document is None or not isinstance(contact, Iri):
                    self._found.elsewhere.add(contact.value)
                    continue
                card = named
                if len(contacts) <= MAX_CARDS:
                    card = await self._graph(contact.value)
                    if document in self._gone:
                        continue
                about = card if card.about(contact) else named
                self._keep(about, contact, document)

    async def _take_container(self, place: str) -> None:
        path = self._documents.path_of(place)
        if path is None or not is_container(path):
            self._found.elsewhere.add(place)
            return
        limit = MAX_DOCUMENTS + 1
        if self._is_own(path) and path not in self._found.containers:
            self._found.containers.append(path)
        try:
            members = await self._documents.members(self._person, path, limit=limit)
        except NotFound:
            return
        except RequestRefused:
            self._found.unreadable.add(path)
            return
        self._found.is_complete = self._found.is_complete and len(members) < limit
        for each in members:
            if is_rdf(each.content_type) and not is_container(each.path):
                if each.size_bytes > MAX_DOCUMENT_BYTES:
                    self._found.unreadable.add(each.path)
                    continue
                graph = await self._graph(self._documents.base_url + each.path)
                self._take(graph, each.path)

    def _take(self, graph: Graph, path: ResourcePath) -> None:
        for each in entries.subjects_in(graph, self._documents.base_url + path, self._kind):
            self._keep(graph, each, path)

    def _keep(self, graph: Graph, thing: Iri, path: ResourcePath) -> None:
        places = self._found.places
        if len(places) >= MAX_ENTRIES:
            self._found.is_complete = False
        elif thing.value not in places:
            entry = entries.read_entry(
                graph, thing, self._kind, max_lines=entries.MAX_LINES_IN_LIST
            )
            places[thing.value] = PlacedEntry(entry, path)

    async def _graph(self, iri: str) -> Graph:
        """What the document of an IRI states, as far as the person may read it; nothing beyond the
        limits."""
        path = self._documents.path_of(iri)
        if path is None:
            self._found.elsewhere.add(iri.partition("#")[0])
            return EMPTY_GRAPH
        if path in self._read:
            return self._read[path]
        late = asyncio.get_running_loop().time() > self._ends_at
        if late or len(self._read) >= MAX_DOCUMENTS or self._statements > MAX_STATEMENTS:
            self._found.is_complete = False
            return EMPTY_GRAPH
        graph = EMPTY_GRAPH
        try:
            graph = (await self._documents.read(self._person, path)).document.graph
            self._read[path] = graph
        except NotFound:
            self._gone.add(path)  # it was deleted, and the index still names it
        except RequestRefused:
            self._found.unreadable.add(path)
        self._statements += len(graph)
        return graph
