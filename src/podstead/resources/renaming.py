"""Rewrites documents whose URL changes: those of a pod or server that is renamed, and those about a
resource that is copied or moved.

In a pod that gets another URL, names that begin with one of the old URLs begin with the new one
instead, wherever they stand: subjects, predicates, objects, types of literals, names of graphs. All
other names stay as they are. Relative names are resolved against the old URL first:
``<../bob/#me>`` in an imported pod named somebody on the server that it came from, and must not
name a stranger on this one.

The ACL and the description of a resource name it, by absolute or relative URLs, and go with it when
it is copied or moved. Rules must apply to the same agents as before, so all other IRIs of an ACL
stay the same, even if they were written relatively. A description is like any other document: its
relative links stay as they are written, so that those inside a moved tree still lead to the same
resources.

The bytes of a document are kept if they already mean the same at the new URL.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeVar

import msgspec

from podstead.core import errors, identifiers, media_types, value, vocab
from podstead.rdf.codecs import Document
from podstead.rdf.errors import UnknownContext
from podstead.rdf.graph import BlankNode, Dataset, Graph, Iri, Literal, Object
from podstead.resources.documents import BYTES_OF_A_TRIPLE, Documents


class NameMapping(value.Value):
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
    path: identifiers.ResourcePath,
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
        partial(_renamed, before.dataset, names.renamed),
        size_bytes=len(before.dataset) * BYTES_OF_A_TRIPLE,
        path=path,
    )
    if adjust is not None:
        wanted = adjust(wanted)
    if wanted == there.dataset:
        return Renamed(content, there.dataset)
    prefixes = {prefix: names.renamed(iri) for prefix, iri in before.prefixes.items()}
    return Renamed(await _written(documents, wanted, prefixes, content_type, path=path), wanted)


def _renamed(dataset: Dataset, new: "_NewIri") -> Dataset:
    """The dataset with each IRI under its new name."""

    def new_object(term: Object) -> Object:
        if isinstance(term, Literal) and term.language is None:
            datatype = _new(term.datatype, new)
            return term if datatype == term.datatype else Literal(term.value, datatype=datatype)
        return _new(term, new)

    def renamed(graph: Graph) -> Graph:
        return Graph((_new(s, new), _new(p, new), new_object(o)) for s, p, o in graph)

    named = {_new(name, new): renamed(graph) for name, graph in dataset.named.items()}
    return Dataset(renamed(dataset.default), named)


_OF_SUBJECT: Final = frozenset({vocab.ACL_ACCESS_TO, vocab.ACL_DEFAULT})
_GROUPS: Final = frozenset({vocab.ACL_AGENT_GROUP, vocab.ACL_CLIENT_GROUP, vocab.ACL_ISSUER_GROUP})

_Term = TypeVar("_Term", bound=Iri | BlankNode | Literal)
_NewIri = Callable[[str], str]
_NewObject = Callable[[str, str], str]
"""The new form of an IRI that is the object of a predicate."""


class Relocation(value.Value):
    """A resource that is copied or moved, and its destination.

    ``moved_tree`` has the roots of the moved tree before and after; ``None`` for a copy, whose
    original remains.
    """

    source: identifiers.ResourcePath
    destination: identifiers.ResourcePath
    moved_tree: tuple[identifiers.ResourcePath, identifiers.ResourcePath] | None = None


async def relocated_rules(
    documents: Documents, content: bytes, content_type: str, relocation: Relocation
) -> bytes | None:
    """The ACL of the resource as it must be stored for its new URL; ``None`` for the same bytes.

    Groups whose documents move along are named by their new URLs. An ACL that cannot be parsed
    grants nothing at either place. Raises UnknownContext.
    """
    acls = identifiers.acl_of(relocation.source), identifiers.acl_of(relocation.destination)
    own = {documents.url_of(acls[0]): documents.url_of(acls[1])}
    subject = identifiers.canonical_url(documents.url_of(relocation.source))
    new_subject = documents.url_of(relocation.destination)
    moved = relocation.moved_tree
    tree = None if moved is None else (documents.url_of(moved[0]), documents.url_of(moved[1]))

    def new_object(predicate: str, iri: str) -> str:
        if predicate in _OF_SUBJECT and identifiers.canonical_url(iri) == subject:
            return new_subject
        if predicate in _GROUPS and tree is not None:
            return _below(iri, *tree)
        return _in_documents(iri, own)

    try:
        before = await documents.parse(content, content_type, path=acls[0])
        there = await documents.parse(content, content_type, path=acls[1])
    except UnknownContext:
        raise
    except errors.BadRequest:
        return None
    wanted = _mapped(before.dataset, lambda iri: _in_documents(iri, own), new_object)
    if wanted == there.dataset:
        return None
    return await _written(documents, wanted, before.prefixes, content_type, path=acls[1])


async def relocated_description(
    documents: Documents, content: bytes, content_type: str, relocation: Relocation
) -> bytes | None:
    """The description of the resource as it must be stored for its new URL; ``None`` for the same
    bytes.

    That of a container is the container's own body.
    """
    source, destination = relocation.source, relocation.destination
    at = (
        destination
        if identifiers.is_container(destination)
        else identifiers.description_of(destination)
    )
    # A relative name of the resource now seems to name its sibling.
    sibling = identifiers.ResourcePath(
        (identifiers.parent_container(destination) or destination)
        + identifiers.segment_name(source)
    )
    renamed = {}
    for old in (source, sibling):
        for of in (identifiers.ResourcePath, identifiers.description_of):
            renamed[documents.url_of(of(old))] = documents.url_of(of(destination))
    try:
        there = await documents.parse(content, content_type, path=at)
    except (UnknownContext, errors.BadRequest):
        return None
    wanted = _mapped(
        there.dataset,
        lambda iri: _in_documents(iri, renamed),
        lambda _, iri: _in_documents(iri, renamed),
    )
    if wanted == there.dataset:
        return None
    return await _written(documents, wanted, there.prefixes, content_type, path=at)


async def _written(
    documents: Documents,
    wanted: Dataset,
    prefixes: Mapping[str, str],
    content_type: str,
    *,
    path: identifiers.ResourcePath,
) -> bytes:
    # Without the style of the original, which could contain the old URLs.
    document = Document(wanted, prefixes)
    return await documents.write(document, media_types.essence(content_type), path=path)


def _mapped(dataset: Dataset, new_subject: _NewIri, new_object: _NewObject) -> Dataset:
    def mapped(graph: Graph) -> Graph:
        return Graph(
            (
                _new(subject, new_subject),
                predicate,
                _new(object_, lambda iri: new_object(predicate.value, iri)),  # noqa: B023 - called at once
            )
            for subject, predicate, object_ in graph
        )

    named = {name: mapped(graph) for name, graph in dataset.named.items()}
    return Dataset(mapped(dataset.default), named)


def _new(term: _Term, new_iri: _NewIri) -> _Term | Iri:
    return Iri(new_iri(term.value)) if isinstance(term, Iri) else term


def _in_documents(iri: str, renamed: Mapping[str, str]) -> str:
    """The IRI with the URL of its document replaced, if that is renamed."""
    document, separator, fragment = iri.partition("#")
    url = renamed.get(document)
    return iri if url is None else f"{url}{separator}{fragment}"


def _below(iri: str, root: str, new_root: str) -> str:
    """The IRI of something in a moved tree, or in its auxiliary documents, after the move."""
    document, separator, fragment = iri.partition("#")
    inside = (
        document.startswith(root)
        if identifiers.is_container(identifiers.ResourcePath(root))
        else (
            document
            in (
                root,
                identifiers.acl_of(identifiers.ResourcePath(root)),
                identifiers.description_of(identifiers.ResourcePath(root)),
            )
        )
    )
    return f"{new_root}{document[len(root) :]}{separator}{fragment}" if inside else iri
