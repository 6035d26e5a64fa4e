"""Parsing and serializing RDF in the formats of R-6.

Only this module calls the parsers and serializers of the RDF library. Input that could harm them is
refused before (``limits``, ``jsonld_reader``), and their exceptions are converted to our errors.
Turtle and JSON-LD are serialized by our own writers, whose output is more readable.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import Final

import msgspec
import pyoxigraph
from pyoxigraph import RdfFormat

from podstead.core import media_types
from podstead.core.media_types import parse_media_type
from podstead.rdf import errors, jsonld_rewriter, jsonld_writer, lexing, turtle_writer
from podstead.rdf import limits as rdf_limits
from podstead.rdf.codes import RdfCodes
from podstead.rdf.graph import Dataset, Graph, Iri, Quad, texts_of_quads
from podstead.rdf.jsonld_contexts import NO_CONTEXTS, ContextSource, Json, encode_json
from podstead.rdf.jsonld_reader import prepare_json_ld
from podstead.rdf.jsonld_terms import Original
from podstead.rdf.jsonld_writer import BlankNodeLabels
from podstead.rdf.turtle_writer import is_plain_prefix, namespace_of

FORMATS: Final[Mapping[str, RdfFormat]] = MappingProxyType(
    {
        media_types.TURTLE: RdfFormat.TURTLE,
        media_types.JSON_LD: RdfFormat.JSON_LD,
        media_types.N_TRIPLES: RdfFormat.N_TRIPLES,
        media_types.N_QUADS: RdfFormat.N_QUADS,
        media_types.TRIG: RdfFormat.TRIG,
        media_types.N3: RdfFormat.N3,
        media_types.RDF_XML: RdfFormat.RDF_XML,
    }
)
_WITH_NAMED_GRAPHS = frozenset({media_types.N_QUADS, media_types.TRIG})
_WITHOUT_NAMED_GRAPHS = frozenset({media_types.TURTLE, media_types.N_TRIPLES, media_types.RDF_XML})

_LONG_NAME = re.compile(rb"(?:\A|[\s<>\"])[^\s<>\"]{512}")
_EXPANDS_FROM_BYTES = 2048
_CHAINS_FROM_BYTES = 16 * 1024
_MAX_BASES = 16
_QUADS_AT_ONCE = 64

_MAX_PREFIXES = 64
"""How many prefixes the library's writers get."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# "Parser error at line 1 between columns 5 and 8: reason (line 1)", or "… between line 1 column 5
# and line 2 column 1: reason". The position is reported separately.
_PLACE = re.compile(r"\A(?:Parser error )?(?:at|between) line \d+ [^:]*: |\s*\(line \d+\)\Z")
_MAX_REASON_LENGTH = 300

# The subjects for probing a context; no base is below it, and no prefix ends before "//".
_PROBE = "http://probe.invalid/"

# Whether Turtle is well-formed does not depend on its base.
_ANY_BASE = "http://localhost/"


class Document(msgspec.Struct, frozen=True):
    """A parsed document: its dataset, and the prefixes that it declared.

    ``base_iri`` is the base IRI at its end, which an ``@base`` in it can have changed (R-7).
    ``original`` is the JSON-LD that was sent, so that it can be serialized in the same style.
    """

    dataset: Dataset
    prefixes: Mapping[str, str] = MappingProxyType({})
    base_iri: str | None = None
    original: Original | None = None

    @property
    def graph(self) -> Graph:
        """The default graph, which is all that formats without named graphs can express."""
        return self.dataset.default

    def with_prefixes(self, prefixes: Mapping[str, str]) -> "Document":
        """The same document with further prefixes; its own take precedence."""
        if prefixes.keys() <= self.prefixes.keys():
            return self
        merged = {**prefixes, **self.prefixes}
        return Document(self.dataset, merged, self.base_iri, self.original)

    def with_graph(self, graph: Graph) -> "Document":
        """The same document with another default graph."""
        dataset = self.dataset.with_default(graph)
        return Document(dataset, self.prefixes, self.base_iri, self.original)


def parse(
    content: bytes,
    media_type: str,
    *,
    base_iri: str,
    contexts: ContextSource = NO_CONTEXTS,
    limits: rdf_limits.RdfLimits = rdf_limits.DEFAULT_LIMITS,
) -> Document:
    """Parse an RDF document with a Content-Type; relative IRIs are resolved against ``base_iri``.

    Raises UnsupportedRdfType, UnsupportedCharset, RdfTooLarge, RdfTooComplex, MalformedRdf, and
    UnknownContext for JSON-LD with a context that is not in ``contexts``. Blank node labels in the
    document are preserved.
    """
    parsed_type = parse_media_type(media_type)
    format_ = _format(parsed_type.essence)
    if not parsed_type.is_utf_8():
        raise errors.UnsupportedCharset(parsed_type.parameter("charset") or "")
    rdf_limits.check_size(content, limits)
    content = content.removeprefix(_BYTE_ORDER_MARK)
    original = None
    if format_ is RdfFormat.JSON_LD:
        original = Original(content, contexts, limits)
        content = prepare_json_ld(content, base_iri=base_iri, contexts=contexts, limits=limits)
    else:
        rdf_limits.check_complexity(content, parsed_type.essence, limits)
    document = _library_read(
        content, parsed_type.essence, base_iri=base_iri, limits=limits, original=original
    )
    if format_ is RdfFormat.N3 and document.dataset.named:
        raise errors.MalformedRdf(parsed_type.essence, "formulas are accepted in patches only")
    return document


def parse_blocks(
    content: bytes,
    media_type: str,
    *,
    base_iri: str,
    limits: rdf_limits.RdfLimits = rdf_limits.DEFAULT_LIMITS,
) -> Document:
    """Parse N3 or TriG in which each block ``{ … }`` becomes a named graph.

    In N3, the name is a blank node with a label that the text does not contain. An empty block
    yields no graph. The content is derived from a patch whose size was checked, so only the number
    of triples is checked here. Raises RdfTooLarge, RdfTooComplex and MalformedRdf.
    """
    rdf_limits.check_complexity(content, media_type, limits)
    return _library_read(content, media_type, base_iri=base_iri, limits=limits)


def _library_read(
    content: bytes,
    essence: str,
    *,
    base_iri: str,
    limits: rdf_limits.RdfLimits,
    original: Original | None = None,
) -> Document:
    parser = pyoxigraph.parse(content, format=FORMATS[essence], base_iri=base_iri)
    try:
        if len(content) >= _EXPANDS_FROM_BYTES and _may_expand(content, essence):
            quads = _read_with_care(parser, limits)
        else:
            quads = list(islice(parser, limits.max_triples + 1))
    except SyntaxError as error:
        raise _malformed(essence, error, content) from error
    if len(quads) > limits.max_triples:
        raise errors.RdfTooLarge(RdfCodes.TOO_MANY_TRIPLES, number=limits.max_triples)
    lexing.check_read(content, essence, quads)
    prefixes = MappingProxyType(parser.prefixes)
    dataset = Dataset.of(quads, only_default=essence in _WITHOUT_NAMED_GRAPHS)
    return Document(dataset, prefixes, parser.base_iri, original)


def _may_expand(content: bytes, essence: str) -> bool:
    """Whether a prefix or base may expand the names to much more than the document's own size.

    That takes one long prefix, or many that each extend the one before. Ordinary documents have
    neither, and are not measured while they are read.
    """
    if _LONG_NAME.search(content) is not None:
        return True
    if len(content) < _CHAINS_FROM_BYTES:
        return False
    return essence == media_types.JSON_LD or content.lower().count(b"base") > _MAX_BASES


def _read_with_care(parser: Iterator[Quad], limits: rdf_limits.RdfLimits) -> list[Quad]:
    """The statements of a document whose prefixes may make every name long.

    A prefix of thirty kilobytes, used ten thousand times, is half a gigabyte of names.
    """
    quads: list[Quad] = []
    left_bytes = limits.max_expanded_bytes
    while read := list(islice(parser, _QUADS_AT_ONCE)):
        quads += read
        left_bytes -= sum(map(len, texts_of_quads(read)))
        if left_bytes < 0:
            raise errors.RdfTooLarge(
                "Its prefixes make the names in this document too long: written in full, they "
                f"can have at most {limits.max_expanded_bytes} bytes"
            )
        if len(quads) > limits.max_triples:
            break
    return quads


def _format(essence: str) -> RdfFormat:
    format_ = FORMATS.get(essence)
    if format_ is None:
        raise errors.UnsupportedRdfType(essence)
    return format_


def _malformed(essence: str, error: SyntaxError, content: bytes) -> errors.MalformedRdf:
    reason = lexing.reason_of(_PLACE.sub("", str(error.msg)), content, error.lineno)
    reason = reason[:_MAX_REASON_LENGTH]
    return errors.MalformedRdf(essence, reason, line=error.lineno, column=error.offset)


def repair_missing_final_dot(
    content: bytes, *, limits: rdf_limits.RdfLimits = rdf_limits.DEFAULT_LIMITS
) -> bytes | None:
    """Repair Turtle whose only defect is that the final ``.`` is missing (R-12).

    Returns the bytes with the dot added on a line of its own; ``None`` if they need no repair, or
    have another defect.
    """
    last_line = content.rstrip().rpartition(b"\n")[2]
    if last_line.endswith(b".") and b"#" not in last_line:
        return None
    dotted = content + b"\n.\n"
    try:
        parse(dotted, media_types.TURTLE, base_iri=_ANY_BASE, limits=limits)
    except (errors.MalformedRdf, errors.RdfTooLarge):
        return None  # valid without the dot, or not even valid with it
    return dotted


def serialize(
    document: Document | Dataset | Graph, media_type: str, *, base_iri: str | None = None
) -> bytes:
    """Serialize RDF in a media type, in UTF-8. The output is deterministic.

    In Turtle, IRIs near ``base_iri`` are written relative to it; without it, all are absolute. A
    document that was JSON-LD keeps its context if ``base_iri`` is given. Formats without named
    graphs get the default graph only, and only JSON-LD gets the base direction of literals
    (``lexing``). Raises UnsupportedRdfType, and NotExpressible for what RDF/XML cannot express.
    """
    # Documents parsed from other syntaxes have no directions and need not be searched.
    may_have_directions = not isinstance(document, Document) or document.original is not None
    document = _as_document(document)
    essence = parse_media_type(media_type).essence
    format_ = _format(essence)
    if format_ is RdfFormat.JSON_LD:
        return _json_ld(document, base_iri)
    if may_have_directions:
        document = msgspec.structs.replace(
            document, dataset=lexing.without_directions(document.dataset)
        )
    if format_ is RdfFormat.TURTLE or format_ is RdfFormat.N3:
        return turtle_writer.write_turtle(document.graph, document.prefixes, base_iri=base_iri)
    written = _library_write(document, format_, with_named=essence in _WITH_NAMED_GRAPHS)
    if format_ is RdfFormat.RDF_XML and not rdf_limits.is_namespace_well_formed(written):
        raise errors.NotExpressible(essence, "a property or a character has no form in XML")
    return written


def written_in_lines(graph: Graph) -> bytes:
    """A graph for another process: N-Triples with the labels that blank nodes have, and with the
    base direction of literals."""
    return "".join([f"{text} .\n" for text in graph.texts]).encode()


def read_lines(content: bytes) -> Graph:
    """The graph that :func:`written_in_lines` wrote."""
    quads = pyoxigraph.parse(content, format=RdfFormat.N_TRIPLES)
    # Line breaks within literals are escaped.
    return Graph.of_texts(dict(zip(content.decode().split(" .\n")[:-1], quads, strict=True)))


def _json_ld(document: Document, base_iri: str | None) -> bytes:
    original = document.original
    if original is not None and base_iri is not None:
        in_own_context = jsonld_rewriter.rewrite(
            document.dataset,
            original,
            base_iri=base_iri,
            meanings=partial(_meanings, base_iri),
            read=partial(_read_like, original, base_iri),
        )
        if in_own_context is not None:
            return in_own_context
    return jsonld_writer.write_json_ld(document.dataset, document.prefixes)


def _read_like(original: Original, base_iri: str, content: bytes) -> Dataset:
    return parse(
        content,
        media_types.JSON_LD,
        base_iri=base_iri,
        contexts=original.contexts,
        limits=original.limits,
    ).dataset


def _meanings(base_iri: str, context: list[Json], names: Sequence[str]) -> Mapping[str, str]:
    """The IRIs of names used as types under a context; see ``jsonld_terms``."""
    nodes: list[Json] = [
        {"@id": f"{_PROBE}{number}" if name else "", "@type": name or _PROBE}
        for number, name in enumerate(names)
    ]
    content = encode_json({"@context": context, "@graph": nodes})
    limits = replace(rdf_limits.DEFAULT_LIMITS, max_triples=len(nodes))
    meant = _library_read(content, media_types.JSON_LD, base_iri=base_iri, limits=limits)
    return {
        names[int(subject.value[len(_PROBE) :])] if subject.value.startswith(_PROBE) else "": (
            type_.value if subject.value.startswith(_PROBE) else subject.value
        )
        for subject, _, type_ in meant.graph
    }


def _as_document(value: Document | Dataset | Graph) -> Document:
    if isinstance(value, Graph):
        return Document(Dataset(value))
    if isinstance(value, Dataset):
        return Document(value)
    return value


def _library_write(document: Document, format_: RdfFormat, *, with_named: bool) -> bytes:
    labels = BlankNodeLabels()
    triples = labels.renamed_triples(document.graph)
    if not with_named:
        statements: list[pyoxigraph.Triple] | list[Quad] = [
            pyoxigraph.Triple(*triple) for triple in triples
        ]
    else:
        quads = [Quad(*triple) for triple in triples]
        for name, graph in document.dataset.named.items():
            graph_name = labels.renamed(name)
            quads += [Quad(*triple, graph_name) for triple in labels.renamed_triples(graph)]
        statements = quads
    prefixes = {name: iri for name, iri in document.prefixes.items() if is_plain_prefix(name)}
    if len(prefixes) > _MAX_PREFIXES:
        prefixes = _most_used(prefixes, statements)
    written = pyoxigraph.serialize(statements, format=format_, prefixes=prefixes)
    return written or b""


def _most_used(
    prefixes: Mapping[str, str], statements: Iterable[pyoxigraph.Triple | Quad]
) -> dict[str, str]:
    """The prefixes that abbreviate most of the names in the statements.

    The library compares each name with each prefix, and lets no other thread run meanwhile.
    """
    namespaces = Counter(
        namespace_of(term.value)
        for statement in statements
        for term in statement
        if isinstance(term, Iri)
    )
    used = [name for name, iri in prefixes.items() if namespaces[iri]]
    used.sort(key=lambda name: namespaces[prefixes[name]], reverse=True)
    return {name: prefixes[name] for name in used[:_MAX_PREFIXES]}
