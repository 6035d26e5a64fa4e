"""Work on RDF that another process can do, with its inputs and results.

The sizes of documents and patches do not bound the time that this work takes, and some of it blocks
the interpreter for all other threads. The process that carries it out is limited in time and
memory.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from podstead.core import errors as core_errors
from podstead.core.errors import PodsteadError
from podstead.rdf import errors as rdf_errors
from podstead.rdf.codecs import parse, read_lines, serialize, written_in_lines
from podstead.rdf.codes import RdfCodes
from podstead.rdf.graph import Graph
from podstead.rdf.jsonld_contexts import Context, Json
from podstead.rdf.limits import RdfLimits
from podstead.rdf.patching import Patch, apply, apply_to_container


class Task(Protocol):
    """A piece of work that can be pickled."""

    def carry_out(self, bundled: Mapping[str, Context]) -> bytes:
        """The result. ``bundled`` are the contexts that come with the server. Raises
        PodsteadError."""


class Conversion(msgspec.Struct, frozen=True):
    """Write a document in another media type, with IRIs relative to ``written_at``.

    ``contexts`` are the JSON-LD contexts that do not come with the server.
    """

    content: bytes
    content_type: str
    media_type: str
    base_iri: str
    written_at: str
    contexts: Mapping[str, Json]
    limits: RdfLimits

    def carry_out(self, bundled: Mapping[str, Context]) -> bytes:
        """The document in the other media type."""
        fetched = {url: Context(url, value) for url, value in self.contexts.items()}
        document = parse(
            self.content,
            self.content_type,
            base_iri=self.base_iri,
            contexts={**bundled, **fetched},
            limits=self.limits,
        )
        return serialize(document, self.media_type, base_iri=self.written_at)


class Evaluation(msgspec.Struct, frozen=True):
    """Apply a patch to a graph, which is given and returned in lines (``codecs``).

    ``other_graphs`` are those of the same document. With ``container_url``, the graph has the own
    triples of a container, and ``managed`` those of the server.
    """

    patch: Patch
    graph: bytes
    other_graphs: tuple[bytes, ...] = ()
    container_url: str | None = None
    managed: bytes = b""

    @classmethod
    def of(
        cls,
        patch: Patch,
        graph: Graph,
        *,
        other_graphs: tuple[Graph, ...] = (),
        container_url: str | None = None,
        managed: Graph,
    ) -> "Evaluation":
        """The task for these graphs."""
        return cls(
            msgspec.structs.replace(patch, prefixes={}),  # not needed, and cannot be pickled
            written_in_lines(graph),
            tuple(map(written_in_lines, other_graphs)),
            container_url,
            written_in_lines(managed),
        )

    def carry_out(self, _bundled: Mapping[str, Context]) -> bytes:
        """The graph after the patch."""
        graph = read_lines(self.graph)
        if self.container_url is None:
            others = map(read_lines, self.other_graphs)
            return written_in_lines(apply(self.patch, graph, other_graphs=others))
        managed, url = read_lines(self.managed), self.container_url
        return written_in_lines(
            apply_to_container(self.patch, graph, managed=managed, container_url=url)
        )


class Failure(msgspec.Struct, frozen=True):
    """An error of a task as data: the name of its class, its message and its fields."""

    name: str
    message: str
    code: RdfCodes | None
    fields: dict[str, Any]

    @classmethod
    def of(cls, error: PodsteadError) -> "Failure":
        """The error as data."""
        fields = dict(vars(error))
        code = fields.pop("code")
        code = code if isinstance(code, RdfCodes) else None
        return cls(type(error).__name__, str(error), code, fields)

    def error(self) -> PodsteadError:
        """The error."""
        found = getattr(rdf_errors, self.name, None) or getattr(core_errors, self.name)
        error: PodsteadError = found.__new__(found)
        error.args = (self.message,)
        vars(error).update(self.fields, code=self.code)
        return error
