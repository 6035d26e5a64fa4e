"""The Nostr keys that the document of a WebID states (A-127).

A document states a key with ``owl:sameAs`` (or ``schema:sameAs``) and ``did:nostr:<key>``, or with
a verification method for authentication that contains the key (Controlled Identifiers 1.0).
Statements about other subjects and keys of another controller prove nothing. Keys that are revoked
or have an expiry are ignored, because the result is used later without checking the time.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from typing import Final

from podstead.core import vocab
from podstead.core.strict_json import parse_object
from podstead.rdf.graph import Graph, Iri, Literal, Object, Subject

MAX_KEYS: Final = 32
"""The maximum number of keys in a document; if there are more, none are used."""

_SAME_AS: Final = tuple(
    Iri(iri) for iri in (vocab.OWL_SAME_AS, vocab.SCHEMA_SAME_AS, vocab.SCHEMA_HTTP_SAME_AS)
)
_AUTHENTICATION: Final = tuple(
    Iri(iri)
    for iri in (
        vocab.SECURITY_AUTHENTICATION,
        vocab.SECURITY + "authentication",
        vocab.CID + "authentication",
    )
)
_DID: Final = re.compile(r"did:nostr:([0-9a-f]{64})", re.IGNORECASE)
_MULTIBASE: Final = re.compile(r"fe7010[23]([0-9a-f]{64})", re.IGNORECASE)
"""Base 16, the code of a secp256k1 key, and its compressed form (Multikey, Controlled Identifiers
section 2.2.2). A Nostr key is the x coordinate alone."""
_COORDINATE_BYTES: Final = 32


def stated_keys(graph: Graph, web_id: str) -> frozenset[str]:
    """The stated keys, each as 64 hexadecimal digits in lower case."""
    subject = Iri(web_id)
    keys = {*_by_name(graph, subject), *_by_method(graph, subject)}
    return frozenset(keys) if len(keys) <= MAX_KEYS else frozenset()


def _by_name(graph: Graph, subject: Iri) -> Iterator[str]:
    for predicate in _SAME_AS:
        for named in graph.objects(subject, predicate):
            match = _DID.fullmatch(named.value) if isinstance(named, Iri) else None
            if match:
                yield match[1].lower()


def _by_method(graph: Graph, subject: Iri) -> Iterator[str]:
    for predicate in _AUTHENTICATION:
        for method in graph.objects(subject, predicate):
            if not isinstance(method, Literal) and _is_usable(graph, method, subject):
                yield from _keys_of(graph, method)


def _is_usable(graph: Graph, method: Subject, subject: Iri) -> bool:
    """Whether the method is controlled by the WebID, not revoked, and without expiry."""
    controllers = _said(graph, method, "controller")
    ended = (*_said(graph, method, "revoked"), *_said(graph, method, "expiration", "expires"))
    return not ended and (not controllers or subject in controllers)


def _keys_of(graph: Graph, method: Subject) -> Iterator[str]:
    for text in _texts(_said(graph, method, "publicKeyMultibase")):
        match = _MULTIBASE.fullmatch(text)
        if match:
            yield match[1].lower()
    for text in _texts(_said(graph, method, "publicKeyJwk")):
        key = _key_of_jwk(text)
        if key is not None:
            yield key


def _said(graph: Graph, method: Subject, *names: str) -> tuple[Object, ...]:
    """The objects of a method's property, in both namespaces in use."""
    return tuple(
        said
        for name in names
        for namespace in (vocab.SECURITY, vocab.CID)
        for said in graph.objects(method, Iri(namespace + name))
    )


def _texts(said: Iterable[Object]) -> Iterator[str]:
    return (each.value for each in said if isinstance(each, Literal))


def _key_of_jwk(text: str) -> str | None:
    """The key of a JSON Web Key of the curve secp256k1 (RFC 8812 section 3.1)."""
    try:
        jwk = parse_object(text.encode())
    except ValueError:  # including text that cannot be encoded
        return None
    x = jwk.get("x")
    if jwk.get("kty") != "EC" or jwk.get("crv") != "secp256k1" or not isinstance(x, str):
        return None
    try:
        coordinate = base64.b64decode(x + "=" * (-len(x) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    return coordinate.hex() if len(coordinate) == _COORDINATE_BYTES else None
