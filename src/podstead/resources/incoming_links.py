"""Searches a storage for documents that link to a resource or to anything below it.

There is no index of links: the documents are read one after another, as many at a time as the
caller allows. A search therefore costs nothing unless it is made, and finds the current state. It
finds only documents that the agent may read.

Documents in the tree itself are left out: their relative links move with it.
"""

from functools import partial
from typing import Final

import msgspec

from podstead.core.errors import BadRequest, StorageError
from podstead.core.identifiers import ResourcePath, canonical_url, storage_root
from podstead.core.identity import Identity
from podstead.rdf.errors import UnknownContext
from podstead.rdf.graph import Dataset, Iri
from podstead.resources.context import ResourceContext
from podstead.resources.costly_work import AgentSemaphores
from podstead.resources.documents import is_rdf
from podstead.resources.trees import Tree, tree_pages
from podstead.storage.document_reader import Superseded
from podstead.storage.records import Metadata
from podstead.wac.modes import Mode

MAX_BYTES_AT_ONCE: Final = 4 * 1024 * 1024
"""How many bytes of documents one step of a search reads."""

_ROWS_AT_ONCE: Final = 256


class LinkingDocument(msgspec.Struct, frozen=True):
    """A document, ACL, description or container with links to the resource, and how many."""

    path: ResourcePath
    links: int


class FoundLinks(msgspec.Struct, frozen=True):
    """The documents that one step of a search has found.

    ``after`` is where the next step continues; ``None`` if the whole storage has been searched.
    """

    documents: tuple[LinkingDocument, ...]
    after: ResourcePath | None


class IncomingLinks:
    """Searches for links within one storage."""

    def __init__(self, context: ResourceContext) -> None:
        self._context = context
        self._documents = context.documents
        self._semaphores = AgentSemaphores(base_url=context.documents.url_of(ResourcePath("")))

    async def find(
        self,
        agent: Identity | None,
        origin: str | None,
        target: ResourcePath,
        *,
        after: ResourcePath | None = None,
        max_documents: int,
    ) -> FoundLinks:
        """One step of a search: reads at most ``max_documents`` RDF documents after ``after``.

        ``target`` is a resource with everything below it. The searches of one agent run one after
        another.
        """
        async with self._semaphores.of(agent):
            return await self._find(agent, origin, target, after, max_documents)

    async def _find(
        self,
        agent: Identity | None,
        origin: str | None,
        target: ResourcePath,
        after: ResourcePath | None,
        max_documents: int,
    ) -> FoundLinks:
        storage = storage_root(target)
        if storage is None:
            return FoundLinks((), None)
        found: list[LinkingDocument] = []
        tree, read, read_bytes = Tree(target), 0, 0
        store = self._context.store
        async for page in tree_pages(store, storage, after=after, page_resources=_ROWS_AT_ONCE):
            for metadata in page:
                if read >= max_documents or read_bytes >= MAX_BYTES_AT_ONCE:
                    return FoundLinks(tuple(found), after)
                after = metadata.path
                if tree.contains(after) or not metadata.size_bytes:
                    continue
                if not is_rdf(metadata.content_type):
                    continue
                read, read_bytes = read + 1, read_bytes + metadata.size_bytes
                links = await self._links_in(agent, origin, metadata, tree)
                if links:
                    found.append(LinkingDocument(after, links))
        return FoundLinks(tuple(found), None)

    async def _links_in(
        self, agent: Identity | None, origin: str | None, metadata: Metadata, tree: Tree
    ) -> int:
        """The number of links in a document; 0 if the agent may not read it."""
        path = metadata.path
        grant, snapshot = await self._context.gate.current_grant(agent, origin, path)
        current = snapshot[path]
        if current is None or not grant.allows(Mode.READ):
            return 0
        try:
            document = await self._documents.read(current)
        except (Superseded, UnknownContext, BadRequest, StorageError):
            # Nobody could follow the links of an unreadable document.
            return 0
        work = partial(_count, document.dataset, tree, self._documents.url_of(tree.root))
        return await self._documents.run(work, size_bytes=current.size_bytes, path=path)


def _count(dataset: Dataset, tree: Tree, root_url: str) -> int:
    """The number of triples that name something in the tree."""
    base_url = root_url[: -len(tree.root)]

    def leads_there(term: object) -> bool:
        if not isinstance(term, Iri):
            return False
        url = canonical_url(term.value.partition("#")[0].partition("?")[0])
        if url is None or not url.startswith(base_url):
            return False
        return tree.contains(ResourcePath(url[len(base_url) :]))

    graphs = (dataset.default, *dataset.named.values())
    return sum(any(map(leads_there, triple)) for graph in graphs for triple in graph)
