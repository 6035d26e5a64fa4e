"""Makes the DID document of a published key (A-129; the did:nostr draft, CID 1.0)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from podstead.idp.nostr.links import did_of

PATH: Final = "/.well-known/did/nostr"
MEDIA_TYPE: Final = "application/did+json"

_CONTEXTS: Final = ("https://www.w3.org/ns/cid/v1", "https://w3id.org/nostr/context")
_MULTIKEY_PREFIX: Final = "fe70102"
"""The prefixes for base 16, secp256k1 and the even y coordinate that every Nostr key has (BIP-340).
"""
_NAME: Final = re.compile(r"([0-9a-f]{64})(?:\.json|\.jsonld)?")


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
