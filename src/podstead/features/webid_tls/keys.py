"""The RSA keys that a document states (The Cert Ontology 1.0; WebID-TLS, section 2.3).

``<agent> cert:key [ cert:modulus …; cert:exponent … ]``. The numbers are written in many forms and
are therefore compared as numbers (A-164). The class of the key is ignored. A key whose numbers
cannot be parsed is ignored. Pure.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from podstead.core import vocab
from podstead.rdf.graph import BlankNode, Graph, Iri, Literal, Object, Subject

MAX_MODULUS_DIGITS: Final = 4096
"""In hexadecimal digits: keys of 16,384 bits, more than TLS libraries support."""

_MARK_DIGITS: Final = 12
_HEX: Final = re.compile(r"(?:0[xX])?([0-9A-Fa-f]+)")
_BETWEEN_HEX: Final = str.maketrans("", "", ": \t\r\n\f\v")
"""Separators that programs print between groups of digits."""
_DECIMAL: Final = re.compile(r"[ \t\r\n]*\+?([0-9]{1,100})[ \t\r\n]*")

_HEX_TYPES: Final = frozenset({vocab.XSD_HEX_BINARY, vocab.XSD_STRING})
_INTEGER_TYPES: Final = frozenset(
    vocab.XSD + name
    for name in (
        "integer",
        "decimal",
        "int",
        "long",
        "short",
        "nonNegativeInteger",
        "positiveInteger",
        "unsignedInt",
        "unsignedLong",
        "unsignedShort",
        "string",
    )
)
"""A literal without a datatype is a string (RDF 1.1 Concepts, section 3.3)."""


@dataclass(frozen=True, slots=True)
class StatedRsaKey:
    """The statement that a named subject has a key.

    A key with several moduli or exponents stands for each pair of them, as it does in the query of
    WebID-TLS section 3.2.3.1.
    """

    subject: str
    moduli: frozenset[int]
    exponents: frozenset[int]

    def is_key(self, modulus: int, exponent: int) -> bool:
        """Whether it is this key."""
        return modulus in self.moduli and exponent in self.exponents


@dataclass(frozen=True, slots=True)
class OwnKey:
    """A key of one WebID, as stated in the WebID's document."""

    modulus: int
    literal: Literal
    """The modulus as written in the document, by which the key can be found."""
    is_shared: bool
    """Whether the document states the key for another subject as well."""

    @property
    def mark(self) -> str:
        """A short label that differs between keys."""
        return key_label(self.modulus)


def key_label(modulus: int) -> str:
    """A short label for a key, derived from its modulus."""
    return sha256(f"{modulus:x}".encode("ascii")).hexdigest()[:_MARK_DIGITS]


def keys_of(graph: Graph, web_id: str) -> tuple[OwnKey, ...]:
    """The keys that a document states for a WebID, in document order."""
    found = {}
    said_of = Counter(object_ for _, _, object_ in graph)
    for key in graph.objects(Iri(web_id), Iri(vocab.CERT_KEY)):
        if not isinstance(key, Iri | BlankNode):
            continue
        for literal in graph.objects(key, Iri(vocab.CERT_MODULUS)):
            modulus = _modulus(literal) if isinstance(literal, Literal) else None
            if modulus is not None and isinstance(literal, Literal):
                found[modulus] = OwnKey(modulus, literal, said_of[key] > 1)
    return tuple(found.values())


def stated_rsa_keys(graph: Graph) -> frozenset[StatedRsaKey]:
    """All RSA keys that the graph states, for any subject."""
    numbers: dict[Subject, tuple[frozenset[int], frozenset[int]]] = {}
    stated = set()
    for subject, predicate, key in graph:
        if predicate.value != vocab.CERT_KEY or not isinstance(subject, Iri):
            continue
        if not isinstance(key, Iri | BlankNode):
            continue
        if key not in numbers:
            numbers[key] = _numbers_of(graph, key)
        moduli, exponents = numbers[key]
        if moduli and exponents:
            stated.add(StatedRsaKey(subject.value, moduli, exponents))
    return frozenset(stated)


def _numbers_of(graph: Graph, key: Subject) -> tuple[frozenset[int], frozenset[int]]:
    moduli = graph.objects(key, Iri(vocab.CERT_MODULUS))
    exponents = graph.objects(key, Iri(vocab.CERT_EXPONENT))
    return _read_all(moduli, _modulus), _read_all(exponents, _exponent)


def _read_all(objects: Iterable[Object], read: Callable[[Literal], int | None]) -> frozenset[int]:
    numbers = (read(each) for each in objects if isinstance(each, Literal))
    return frozenset(number for number in numbers if number is not None)


def _modulus(literal: Literal) -> int | None:
    if literal.datatype.value not in _HEX_TYPES:
        return None
    digits = _HEX.fullmatch(literal.value.translate(_BETWEEN_HEX))
    if digits is None or len(digits[1].lstrip("0")) > MAX_MODULUS_DIGITS:
        return None
    return int(digits[1], 16)


def _exponent(literal: Literal) -> int | None:
    if literal.datatype.value not in _INTEGER_TYPES:
        return None
    digits = _DECIMAL.fullmatch(literal.value)
    return None if digits is None else int(digits[1])


_PREFIXES = f"@prefix cert: <{vocab.CERT}>.\n@prefix xsd: <{vocab.XSD}>.\n"


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key to add to a WebID. ``web_id`` must be valid in Turtle without escaping.

    The key gets an IRI in the WebID's document, so that it can be inserted by an N3 Patch and found
    again for removal.
    """

    web_id: str
    modulus: int
    exponent: int

    @property
    def document(self) -> str:
        """The URL of the document that will state the key."""
        return self.web_id.partition("#")[0]

    @property
    def name(self) -> str:
        """The key's IRI."""
        return f"{self.document}#key-{key_label(self.modulus)}"

    def turtle(self) -> str:
        """The statements, as a Turtle document."""
        return f"{_PREFIXES}\n{self._triples()}"

    def insertion(self) -> str:
        """An N3 Patch that adds the statements (Solid Protocol, section 5.3.1)."""
        return (
            f"{_PREFIXES}@prefix solid: <{vocab.SOLID}>.\n\n"
            f"[] a solid:InsertDeletePatch; solid:inserts {{\n{self._triples()}}}.\n"
        )

    def _triples(self) -> str:
        digits = f"{self.modulus:X}"
        even = digits.zfill(len(digits) + len(digits) % 2)  # xsd:hexBinary consists of octets
        return (
            f"<{self.web_id}> cert:key <{self.name}>.\n"
            f"<{self.name}> a cert:RSAPublicKey;\n"
            f'    cert:modulus "{even}"^^xsd:hexBinary;\n'
            f"    cert:exponent {self.exponent}.\n"
        )


def removal(web_id: str, key: OwnKey) -> str:
    """A SPARQL Update that removes a key from the WebID's document.

    It also removes the description of the key, unless another subject has the key, too. The key is
    found by its modulus, because it can be a blank node.
    """
    found = f"?key <{vocab.CERT_MODULUS}> {key.literal}"
    link = f"<{web_id}> <{vocab.CERT_KEY}> ?key"
    about = "" if key.is_shared else " ?key ?predicate ?object ."
    return f"DELETE {{ {link} .{about} }} WHERE {{ {link} . {found} .{about} }}"
