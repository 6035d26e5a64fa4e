"""Rewrites the documents about a resource when the resource gets another URL.

The ACL and the description of a resource name it, by absolute or relative URLs. They are copied or
moved with the resource, and must then be about its new URL. Bytes that already are, because they
name it relatively, are kept.

Rules must apply to the same agents as before, so all other IRIs of an ACL stay the same, even if
they were written relatively. A description is like any other document: its relative links stay as
they are written, so that those inside a moved tree still lead to the same resources.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from podstead.core import vocab
from podstead.core.errors import BadRequest
from podstead.core.identifiers import (
    ResourcePath,
    acl_of,
    canonical_url,
    description_of,
    is_container,
    parent_container,
    segment_name,
)
from podstead.core.media_types import essence
from podstead.core.value import Value
from podstead.rdf.codecs import Document
from podstead.rdf.errors import UnknownContext
from podstead.rdf.graph import BlankNode, Dataset, Graph, Iri, Literal
from podstead.resources.documents import Documents

_OF_SUBJECT: Final = frozenset({vocab.ACL_ACCESS_TO, vocab.ACL_DEFAULT})

_Term = TypeVar("_Term", bound=Iri | BlankNode | Literal)
_NewIri = Callable[[str], str]
_NewObject = Callable[[str, str], str]
"""The new form of an IRI that is the object of a predicate."""


class Relocation(Value):
    """A resource that is copied or moved, and its destination.

    ``moved_tree`` has the roots of the moved tree before and after; ``None`` for a copy, whose
    original remains.
    """

    source: ResourcePath
    destination: ResourcePath
    moved_tree: tuple[ResourcePath, ResourcePath] | None = None


async def relocated_rules(
    documents: Documents, content: bytes, content_type: str, relocation: Relocation
) -> bytes | None:
    """The ACL of the resource as it must be stored for its new URL; ``None`` for the same bytes.

    Groups whose documents move along are named by their new URLs. An ACL that cannot be parsed
    grants nothing at either place. Raises UnknownContext.
    """
    acls = acl_of(relocation.source), acl_of(relocation.destination)
    own = {documents.url_of(acls[0]): documents.url_of(acls[1])}
    subject = canonical_url(documents.url_of(relocation.source))
    new_subject = documents.url_of(relocation.destination)
    moved = relocation.moved_tree
    tree = None if moved is None else (documents.url_of(moved[0]), documents.url_of(moved[1]))

    def new_object(predicate: str, iri: str) -> str:
        if predicate in _OF_SUBJECT and canonical_url(iri) == subject:
            return new_subject
        if predicate == vocab.ACL_AGENT_GROUP and tree is not None:
            return _below(iri, *tree)
        return _in_documents(iri, own)

    try:
        before = await documents.parse(content, content_type, path=acls[0])
        there = await documents.parse(content, content_type, path=acls[1])
    except UnknownContext:
        raise
    except BadRequest:
        return None
    wanted = _mapped(before.dataset, lambda iri: _in_documents(iri, own), new_object)
    if wanted == there.dataset:
        return None
    return await _written(documents, wanted, before, content_type, path=acls[1])


async def relocated_description(
    documents: Documents, content: bytes, content_type: str, relocation: Relocation
) -> bytes | None:
    """The description of the resource as it must be stored for its new URL; ``None`` for the same
    bytes.

    That of a container is the container's own body.
    """
    source, destination = relocation.source, relocation.destination
    at = destination if is_container(destination) else description_of(destination)
    # A relative name of the resource now seems to name its sibling.
    sibling = ResourcePath((parent_container(destination) or destination) + segment_name(source))
    renamed = {}
    for old in (source, sibling):
        for of in (ResourcePath, description_of):
            renamed[documents.url_of(of(old))] = documents.url_of(of(destination))
    try:
        there = await documents.parse(content, content_type, path=at)
    except (UnknownContext, BadRequest):
        return None
    wanted = _mapped(
        there.dataset,
        lambda iri: _in_documents(iri, renamed),
        lambda _, iri: _in_documents(iri, renamed),
    )
    if wanted == there.dataset:
        return None
    return await _written(documents, wanted, there, content_type, path=at)


async def _written(
    documents: Documents, wanted: Dataset, read: Document, content_type: str, *, path: ResourcePath
) -> bytes:
    # Without the style of the original, which could contain the old URLs.
    document = Document(wanted, read.prefixes)
    return await documents.write(document, essence(content_type), path=path)


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
        if is_container(ResourcePath(root))
        else (document in (root, acl_of(ResourcePath(root)), description_of(ResourcePath(root))))
    )
    return f"{new_root}{document[len(root) :]}{separator}{fragment}" if inside else iri
