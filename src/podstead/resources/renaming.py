"""Rewrites a document when the pod that it belongs to gets another URL.

Names that begin with one of the old URLs begin with the new one instead, wherever they stand:
subjects, predicates, objects, types of literals, names of graphs. All other names stay as they are.
The bytes of a document are kept if they already mean that at the new URL, because all its names of
the pod are relative.

Relative names are resolved against the old URL first: ``<../bob/#me>`` in an imported pod named
somebody on the server that it came from, and must not name a stranger on this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import msgspec

from podstead.core.identifiers import ResourcePath
from podstead.core.media_types import essence
from podstead.core.value import Value
from podstead.rdf.codecs import Document
from podstead.rdf.graph import Dataset, Graph, Iri, Literal, Object, Subject, Triple
from podstead.resources.documents import BYTES_OF_A_TRIPLE, Documents


class NameMapping(Value):
    """The URLs that are renamed: pairs of an old and a new prefix.

    A prefix ends in a slash, so that ``https://a.example`` does not match
    ``https://a.example.org``. The longest one that matches decides. ``exactly`` has names that are
    replaced only as a whole.
    """

    beginnings: tuple[tuple[str, str], ...] = ()
    exactly: tuple[tuple[str, str], ...] = ()

    @property
    def changes_nothing(self) -> bool:
        return all(old == new for old, new in (*self.beginnings, *self.exactly))

    def renamed(self, iri: str) -> str:
        """The IRI under its new name."""
        for old, new in self.exactly:
            if iri == old:
                return new
        best = max(
            (pair for pair in self.beginnings if iri.startswith(pair[0])),
            key=lambda pair: len(pair[0]),
            default=None,
        )
        return iri if best is None else best[1] + iri[len(best[0]) :]


class Renamed(msgspec.Struct, frozen=True):
    """A document at its new URL: its bytes and its triples. ``content`` is the same object as
    before if nothing had to be changed."""

    content: bytes
    dataset: Dataset


async def renamed_document(
    documents: Documents,
    content: bytes,
    content_type: str,
    names: NameMapping,
    *,
    from_url: str,
    path: ResourcePath,
    adjust: Callable[[Dataset], Dataset] | None = None,
) -> Renamed:
    """A document that was at ``from_url`` as it must be stored at the path.

    ``adjust`` makes further changes. Raises MalformedRdf, UnknownContext, RdfTooLarge.
    """
    there = await documents.parse(content, content_type, path=path)
    before = there
    if from_url != documents.url_of(path):
        before = await documents.parse_at(content, content_type, base_iri=from_url)
    elif adjust is None and names.changes_nothing:
        return Renamed(content, there.dataset)
    wanted = await documents.run(
        partial(renamed_dataset, before.dataset, names.renamed),
        size_bytes=len(before.dataset) * BYTES_OF_A_TRIPLE,
        path=path,
    )
    if adjust is not None:
        wanted = adjust(wanted)
    if wanted == there.dataset:
        return Renamed(content, there.dataset)
    # Without the style of the original, which could contain the old URLs.
    written = await documents.write(
        Document(wanted, _prefixes(before, names)), essence(content_type), path=path
    )
    return Renamed(written, wanted)


def renamed_dataset(dataset: Dataset, renamed: Callable[[str], str]) -> Dataset:
    """The dataset with each IRI under its new name."""
    named = {
        _subject(name, renamed): Graph(_triples(graph, renamed))
        for name, graph in dataset.named.items()
    }
    return Dataset(Graph(_triples(dataset.default, renamed)), named)


def _prefixes(document: Document, names: NameMapping) -> dict[str, str]:
    return {prefix: names.renamed(iri) for prefix, iri in document.prefixes.items()}


def _triples(graph: Graph, renamed: Callable[[str], str]) -> Iterator[Triple]:
    for subject, predicate, object_ in graph:
        yield (
            _subject(subject, renamed),
            _iri(predicate, renamed),
            _object(object_, renamed),
        )


def _subject(term: Subject, renamed: Callable[[str], str]) -> Subject:
    return _iri(term, renamed) if isinstance(term, Iri) else term


def _object(term: Object, renamed: Callable[[str], str]) -> Object:
    if isinstance(term, Iri):
        return _iri(term, renamed)
    if isinstance(term, Literal) and term.language is None:
        datatype = renamed(term.datatype.value)
        if datatype != term.datatype.value:
            return Literal(term.value, datatype=Iri(datatype))
    return term


def _iri(term: Iri, renamed: Callable[[str], str]) -> Iri:
    new = renamed(term.value)
    return term if new == term.value else Iri(new)
