"""Which Nostr keys a profile gives its WebID (A-127): what counts, and what proves nothing."""

from __future__ import annotations

import base64
import json

import pytest

from podstead.app.adapters.bundled_contexts import bundled_contexts
from podstead.core.media_types import JSON_LD, TURTLE
from podstead.features.nostr.keys import MAX_KEYS, stated_keys
from podstead.rdf.codecs import parse
from tests.support.nostr import NostrKey

DOCUMENT = "https://pod.example/alice/"
ME = f"{DOCUMENT}#me"
KEY = NostrKey.of(3).public
OTHER = NostrKey.of(4).public
PREFIXES = """
    @prefix owl: <http://www.w3.org/2002/07/owl#> .
    @prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
    @prefix schema: <https://schema.org/> .
    @prefix http: <http://schema.org/> .
    @prefix sec: <https://w3id.org/security#> .
    @prefix cid: <https://www.w3.org/ns/cid/v1#> .
    @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
    """


def keys(turtle: str) -> frozenset[str]:
    document = parse((PREFIXES + turtle).encode(), TURTLE, base_iri=DOCUMENT)
    return stated_keys(document.graph, ME)


def jwk(**changes: object) -> str:
    x = base64.urlsafe_b64encode(bytes.fromhex(KEY)).rstrip(b"=").decode()
    return json.dumps({"kty": "EC", "crv": "secp256k1", "x": x, "y": x} | changes)


MULTIKEY = f'sec:publicKeyMultibase "fe70102{KEY}"'


@pytest.mark.parametrize(
    "turtle",
    [
        f"<#me> owl:sameAs <did:nostr:{KEY}> .",
        f"<#me> schema:sameAs <did:nostr:{KEY}> .",
        f"<#me> http:sameAs <did:nostr:{KEY}> .",
        f"<#me> owl:sameAs <did:nostr:{KEY.upper()}> .",
        f"<#me> owl:sameAs <https://other.example/#me>, <did:nostr:{KEY}> .",
        f"<#me> sec:authenticationMethod <#key> . <#key> {MULTIKEY} .",
        f"<#me> sec:authenticationMethod [ {MULTIKEY} ] .",
        f"<#me> sec:authenticationMethod [ {MULTIKEY} ; sec:controller <#me> ] .",
        f"<#me> sec:authentication [ {MULTIKEY} ] .",
        f'<#me> cid:authentication [ cid:publicKeyMultibase "fe70102{KEY}" ] .',
        f'<#me> sec:authenticationMethod [ sec:publicKeyMultibase "fe70103{KEY.upper()}" ] .',
        f"<#me> sec:authenticationMethod [ sec:publicKeyJwk '{jwk()}'^^rdf:JSON ] .",
    ],
)
def test_a_key_of_the_webid_is_valid(turtle: str) -> None:
    assert keys(turtle) == {KEY}


@pytest.mark.parametrize(
    "turtle",
    [
        pytest.param(f"<> owl:sameAs <did:nostr:{KEY}> .", id="of the document"),
        pytest.param(f"<#i> owl:sameAs <did:nostr:{KEY}> .", id="of another fragment"),
        pytest.param(f"<did:nostr:{KEY}> owl:sameAs <#me> .", id="the other way round"),
        pytest.param(
            f"<https://b.example/#me> owl:sameAs <did:nostr:{KEY}> .", id="of somebody else"
        ),
        pytest.param(f'<#me> owl:sameAs "did:nostr:{KEY}" .', id="a text"),
        pytest.param(f"<#me> owl:sameAs <did:nostr:{KEY}0> .", id="too long"),
        pytest.param(f"<#me> owl:sameAs <did:nostr:{KEY[1:]}> .", id="too short"),
        pytest.param(f"<#me> owl:sameAs <did:nostr:{KEY}#key1> .", id="a key of it"),
        pytest.param(f"<#me> owl:sameAs <did:key:{KEY}> .", id="another method"),
        pytest.param(f"<#me> owl:differentFrom <did:nostr:{KEY}> .", id="another statement"),
        pytest.param(f"<#me> sec:verificationMethod [ {MULTIKEY} ] .", id="not to authenticate"),
        pytest.param(f"<#me> sec:assertionMethod [ {MULTIKEY} ] .", id="to assert"),
        pytest.param(f"<#key> {MULTIKEY} .", id="a key of nobody"),
        pytest.param(f"<#you> sec:authenticationMethod [ {MULTIKEY} ] .", id="of you"),
        pytest.param(
            f"<#me> sec:authenticationMethod [ {MULTIKEY} ; sec:controller <#you> ] .",
            id="of another controller",
        ),
        pytest.param(
            f"<#me> sec:authenticationMethod [ {MULTIKEY} ; sec:revoked "
            '"2020-01-01T00:00:00Z"^^xsd:dateTime ] .',
            id="revoked",
        ),
        pytest.param(
            f"<#me> sec:authenticationMethod [ {MULTIKEY} ; sec:expiration "
            '"2020-01-01T00:00:00Z"^^xsd:dateTime ] .',
            id="with an end",
        ),
        pytest.param(
            f'<#me> sec:authenticationMethod [ sec:publicKeyMultibase "fed0102{KEY}" ] .',
            id="of another kind of key",
        ),
        pytest.param(
            f'<#me> sec:authenticationMethod [ sec:publicKeyMultibase "fe70104{KEY}" ] .',
            id="in another form",
        ),
        pytest.param(
            f'<#me> sec:authenticationMethod [ sec:publicKeyMultibase "ze70102{KEY}" ] .',
            id="in another base",
        ),
        *(
            pytest.param(
                f"<#me> sec:authenticationMethod [ sec:publicKeyJwk '{text}'^^rdf:JSON ] .",
                id=f"JWK {text[:40]}",
            )
            for text in (
                jwk(crv="P-256"),
                jwk(kty="OKP"),
                jwk(x="AA"),
                jwk(x="é" * 43),
                jwk(x=1),
                "[]",
                "{",
            )
        ),
        pytest.param(f'<#me> sec:authenticationMethod "{KEY}" .', id="a text for a method"),
    ],
)
def test_anything_else_gives_no_key(turtle: str) -> None:
    assert keys(turtle) == frozenset()


def test_several_keys_count() -> None:
    both = f"<#me> owl:sameAs <did:nostr:{KEY}>, <did:nostr:{OTHER}> ."
    assert keys(both) == {KEY, OTHER}


def test_too_many_keys_are_none() -> None:
    def naming(number: int) -> str:
        return "".join(f"<#me> owl:sameAs <did:nostr:{each:064x}> ." for each in range(number))

    assert len(keys(naming(MAX_KEYS))) == MAX_KEYS
    assert keys(naming(MAX_KEYS + 1)) == frozenset()


def test_a_document_in_the_vocabulary_of_controlled_identifiers_is_accepted() -> None:
    """CID 1.0, with the context of the specification."""
    profile = {
        "@context": "https://www.w3.org/ns/cid/v1",
        "id": ME,
        "verificationMethod": [
            {
                "id": f"{DOCUMENT}#key",
                "type": "Multikey",
                "controller": ME,
                "publicKeyMultibase": f"fe70102{KEY}",
            },
            {
                "id": f"{DOCUMENT}#other",
                "type": "JsonWebKey",
                "controller": ME,
                "publicKeyJwk": json.loads(jwk()),
            },
        ],
        "authentication": [f"{DOCUMENT}#other"],
    }
    document = parse(
        json.dumps(profile).encode(), JSON_LD, base_iri=DOCUMENT, contexts=bundled_contexts()
    )
    assert stated_keys(document.graph, ME) == {KEY}
    profile["authentication"] = []
    document = parse(
        json.dumps(profile).encode(), JSON_LD, base_iri=DOCUMENT, contexts=bundled_contexts()
    )
    assert stated_keys(document.graph, ME) == frozenset()
