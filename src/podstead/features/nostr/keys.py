"""Nostr keys: those that the document of a WebID states, their display form and DID documents.

A document states a key with ``owl:sameAs`` (or ``schema:sameAs``) and ``did:nostr:<key>``, or with
a verification method for authentication that contains the key (Controlled Identifiers 1.0).
Statements about other subjects and keys of another controller prove nothing. Keys that are revoked
or have an expiry are ignored, because the result is used later without checking the time (A-127).
Pure.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from podstead.core import strict_json, vocab
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
        jwk = strict_json.parse_object(text.encode())
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


# --- The display form: ``npub1…``, in Bech32 (NIP-19, BIP-173) --------------------------------

_PREFIX: Final = "npub"
_ALPHABET: Final = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_GENERATORS: Final = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_CHECKSUM_GROUPS: Final = 6
_GROUP_BITS: Final = 5


def npub(public_key: str) -> str:
    """The display form of a public key, which is given as 64 hexadecimal digits."""
    groups = _groups(bytes.fromhex(public_key))
    groups += _checksum(groups)
    return f"{_PREFIX}1{''.join(_ALPHABET[group] for group in groups)}"


def _groups(content: bytes) -> list[int]:
    """The bits in groups of five, the last group padded with zeros."""
    count = -(-len(content) * 8 // _GROUP_BITS)
    number = int.from_bytes(content, "big") << count * _GROUP_BITS - len(content) * 8
    return [number >> _GROUP_BITS * place & 31 for place in reversed(range(count))]


def _checksum(groups: list[int]) -> list[int]:
    high = [ord(letter) >> 5 for letter in _PREFIX]
    low = [ord(letter) & 31 for letter in _PREFIX]
    remainder = _polymod([*high, 0, *low, *groups, *[0] * _CHECKSUM_GROUPS]) ^ 1
    return [remainder >> _GROUP_BITS * place & 31 for place in reversed(range(_CHECKSUM_GROUPS))]


def _polymod(groups: Iterable[int]) -> int:
    """The remainder of the division by the generator polynomial of BIP-173."""
    remainder = 1
    for group in groups:
        top = remainder >> 25
        remainder = (remainder & 0x1FFFFFF) << _GROUP_BITS ^ group
        for place, generator in enumerate(_GENERATORS):
            if top >> place & 1:
                remainder ^= generator
    return remainder


# --- The DID document of a published key (A-129; the did:nostr draft, CID 1.0) ----------------

DID_PATH: Final = "/.well-known/did/nostr"
DID_MEDIA_TYPE: Final = "application/did+json"

_CONTEXTS: Final = ("https://www.w3.org/ns/cid/v1", "https://w3id.org/nostr/context")
_MULTIKEY_PREFIX: Final = "fe70102"
"""The prefixes for base 16, secp256k1 and the even y coordinate that every Nostr key has (BIP-340).
"""
_NAME: Final = re.compile(r"([0-9a-f]{64})(?:\.json|\.jsonld)?")


def did_of(public_key: str) -> str:
    """The did:nostr identifier of a key."""
    return f"did:nostr:{public_key}"


def key_named(name: str) -> str | None:
    """The key that the last segment of a document's path names; ``None`` if it is not a key."""
    match = _NAME.fullmatch(name)
    return None if match is None else match[1]


def did_document(public_key: str, *, web_id: str) -> Mapping[str, object]:
    """The DID document of a key that the profile of ``web_id`` names."""
    did = did_of(public_key)
    return {
        "@context": _CONTEXTS,
        "id": did,
        "type": "DIDNostr",
        "alsoKnownAs": [web_id],
        "verificationMethod": [
            {
                "id": f"{did}#key1",
                "type": "Multikey",
                "controller": did,
                "publicKeyMultibase": f"{_MULTIKEY_PREFIX}{public_key}",
            }
        ],
        "authentication": ["#key1"],
        "assertionMethod": ["#key1"],
    }
