"""Reads the names that groups state in their documents, with the rights of the person who sees
them.

Only documents of this server are read, through the service that answers GET, so that nobody learns
the name of a group whose document they may not read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from podstead.core import vocab
from podstead.core.errors import RequestRefused
from podstead.core.identity import Identity
from podstead.rdf.graph import EMPTY_GRAPH, Graph, Iri, Literal
from podstead.resources.documents import Documents
from podstead.resources.service import ResourceService
from podstead.resources.sharing.reading import read_rdf
from podstead.wac.iris import local_path

_MAX_DOCUMENTS: Final = 50
"""How many documents are read for one page."""
_MAX_NAME_CHARS: Final = 100

_NAMES: Final = (Iri(vocab.VCARD_FN), Iri(vocab.FOAF_NAME), Iri(vocab.RDFS + "label"))


@dataclass(frozen=True, slots=True)
class GroupNames:
    """Reads the names of groups."""

    base_url: str
    resources: ResourceService
    documents: Documents

    async def of(self, person: Identity | None, groups: Iterable[str]) -> dict[str, str]:
        """The names of those groups that state one in a document that the person may read."""
        read: dict[str, Graph] = {}
        names = {}
        for group in groups:
            url = group.partition("#")[0]
            if url not in read and len(read) < _MAX_DOCUMENTS:
                read[url] = await self._document(person, url)
            name = _stated_name(read.get(url, EMPTY_GRAPH), Iri(group))
            if name:
                names[group] = name
        return names

    async def _document(self, person: Identity | None, url: str) -> Graph:
        path = local_path(url, self.base_url)
        if path is None:
            return EMPTY_GRAPH
        try:
            return (await read_rdf(self.resources, self.documents, person, path)).document.graph
        except RequestRefused:
            return EMPTY_GRAPH


def _stated_name(graph: Graph, group: Iri) -> str:
    """The first of its names in alphabetical order, without characters that do not show as
    themselves; empty without a name."""
    for predicate in _NAMES:
        stated = (
            term.value for term in graph.objects(group, predicate) if isinstance(term, Literal)
        )
        names = sorted(" ".join("".join(filter(str.isprintable, each)).split()) for each in stated)
        for name in names:
            if name:
                return name[:_MAX_NAME_CHARS]
    return ""
