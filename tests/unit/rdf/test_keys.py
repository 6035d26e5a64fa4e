"""Keys in documents are numbers, however they are written (A-164)."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.app.adapters.bundled_contexts import bundled_contexts
from podstead.core.media_types import JSON_LD, TURTLE
from podstead.features.webid_tls.keys import StatedRsaKey, stated_rsa_keys
from podstead.rdf.codecs import parse
from podstead.rdf.graph import Graph
from podstead.rdf.nostr_keys import MAX_KEYS, stated_keys
from tests.support.nostr import NostrKey

CERT = "http://www.w3.org/ns/auth/cert#"
XSD = "http://www.w3.org/2001/XMLSchema#"
BASE = "https://pods.example/alice/"
MODULUS = 0xCB24ED85D64D794B69C701C186ACC059501E856000F661C9
EXPONENT = 65537
HEX = f"{MODULUS:X}"
PAIRS = [HEX[at : at + 2] for at in range(0, len(HEX), 2)]

MODULI = {
    "upper case": f'"{HEX}"^^xsd:hexBinary',
    "lower case": f'"{HEX.lower()}"^^xsd:hexBinary',
    "mixed case": f'"{HEX[:9].lower()}{HEX[9:]}"^^xsd:hexBinary',
    "a string": f'"{HEX}"^^xsd:string',
    "no type": f'"{HEX}"',
    "a leading zero": f'"00{HEX}"^^xsd:hexBinary',
    "many leading zeros": f'"{"0" * 5000}{HEX}"^^xsd:hexBinary',
    "an odd number of digits": f'"0{HEX}"^^xsd:hexBinary',
    "spaces": f'" {" ".join(PAIRS)} "^^xsd:hexBinary',
    "colons": f'"00:{":".join(PAIRS)}"',
    "lines": f'"""\n    {HEX[:20]}\n    {HEX[20:]}\n"""^^xsd:hexBinary',
    "colons and lines": '"{}"'.format(":\\n        ".join(PAIRS)),
    "tabs": f'"\\t{HEX}\\r\\n"^^xsd:hexBinary',
    "0x": f'"0x{HEX}"',
    "0X": f'"0X{HEX}"^^xsd:hexBinary',
}
NO_MODULI = {
    "empty": '""^^xsd:hexBinary',
    "only a prefix": '"0x"',
    "other letters": f'"{HEX}G"^^xsd:hexBinary',
    "a sign": f'"+{HEX}"',
    "an underscore": f'"{HEX[:4]}_{HEX[4:]}"',
    "digits of another script": f'"{HEX.translate({ord(str(d)): 0x660 + d for d in range(10)})}"',
    "a word before": f'"Modulus={HEX}"',
    "a dash": f'"{"-".join(PAIRS)}"',
    "base64": '"yyTthdZNeUtpxwHBhqzAWVAehWAA9mHJ"^^xsd:base64Binary',
    "an integer": f'"{HEX}"^^xsd:integer',
    "another type": f'"{HEX}"^^<{CERT}hex>',
    "a language": f'"{HEX}"@en',
    "an IRI": f"<{HEX}>",
    "two prefixes": f'"0x0x{HEX}"',
    "more than any key has": f'"{"F" * 4097}"^^xsd:hexBinary',
    "a no-break space": f'"\\u00A0{HEX}"',
}
EXPONENTS = {
    "a number": "65537",
    "a number with a sign": "+65537",
    "a string": '"65537"',
    "int": '"65537"^^xsd:int',
    "integer": '"65537"^^xsd:integer',
    "nonNegativeInteger": '"65537"^^xsd:nonNegativeInteger',
    "positiveInteger": '"65537"^^xsd:positiveInteger',
    "unsignedInt": '"65537"^^xsd:unsignedInt',
    "long": '"65537"^^xsd:long',
    "decimal": '"65537"^^xsd:decimal',
    "leading zeros": '"0065537"^^xsd:integer',
    "spaces": '" 65537\\n"^^xsd:integer',
}
NO_EXPONENTS = {
    "empty": '""',
    "negative": "-65537",
    "hexadecimal": '"10001"^^xsd:hexBinary',
    "0x": '"0x10001"',
    "a fraction": "65537.5",
    "a fraction of nothing": "65537.0",
    "a double": "65537e0",
    "an underscore": '"65_537"',
    "digits of another script": '"٦٥٥٣٧"',
    "a language": '"65537"@en',
    "too many digits": f'"{"9" * 101}"',
    "an IRI": "<65537>",
    "two signs": '"++65537"',
}


def graph(turtle: str) -> Graph:
    prefixes = f"@prefix cert: <{CERT}>. @prefix xsd: <{XSD}>.\n"
    return parse((prefixes + turtle).encode(), "text/turtle", base_iri=BASE).graph


def stated(modulus: str = f'"{HEX}"', exponent: str = "65537") -> frozenset[StatedRsaKey]:
    return stated_rsa_keys(
        graph(f"<#me> cert:key [ cert:modulus {modulus}; cert:exponent {exponent} ].")
    )


THE_KEY = StatedRsaKey(f"{BASE}#me", frozenset({MODULUS}), frozenset({EXPONENT}))


@pytest.mark.parametrize("how", MODULI)
def test_a_modulus_may_be_written_like_this(how: str) -> None:
    assert stated(modulus=MODULI[how]) == {THE_KEY}


@pytest.mark.parametrize("how", NO_MODULI)
def test_a_modulus_may_not_be_written_like_this(how: str) -> None:
    assert stated(modulus=NO_MODULI[how]) == set()


@pytest.mark.parametrize("how", EXPONENTS)
def test_an_exponent_may_be_written_like_this(how: str) -> None:
    assert stated(exponent=EXPONENTS[how]) == {THE_KEY}


@pytest.mark.parametrize("how", NO_EXPONENTS)
def test_an_exponent_may_not_be_written_like_this(how: str) -> None:
    assert stated(exponent=NO_EXPONENTS[how]) == set()


@given(
    modulus=st.integers(1, 2**4096),
    exponent=st.integers(3, 2**64),
    zeros=st.integers(0, 8),
    upper=st.booleans(),
    between=st.sampled_from(["", ":", " ", "\\n", ":\\n    "]),
)
def test_a_number_is_itself_however_it_is_written(
    modulus: int, exponent: int, zeros: int, upper: bool, between: str
) -> None:
    digits = "0" * zeros + f"{modulus:x}"
    digits = digits.upper() if upper else digits
    text = between.join(digits[at : at + 2] for at in range(0, len(digits), 2))
    found = stated(f'"{text}"', f'"{exponent}"')
    assert found == {StatedRsaKey(f"{BASE}#me", frozenset({modulus}), frozenset({exponent}))}
    (key,) = found
    assert key.is_key(modulus, exponent)
    assert not key.is_key(modulus + 1, exponent)
    assert not key.is_key(modulus, exponent + 1)


def test_keys_may_have_names_and_may_be_shared_and_need_no_class() -> None:
    said = f"""
        <#me> cert:key <#one>, [ a cert:RSAPublicKey; cert:modulus "11"; cert:exponent 3 ].
        <#you> cert:key <#one>.
        [] cert:key <#one>.
        <#one> cert:modulus "{HEX}"; cert:exponent 65537.
        <#it> cert:key <#nothing>, "text".
    """
    assert stated_rsa_keys(graph(said)) == {
        THE_KEY,
        StatedRsaKey(f"{BASE}#you", frozenset({MODULUS}), frozenset({EXPONENT})),
        StatedRsaKey(f"{BASE}#me", frozenset({0x11}), frozenset({3})),
    }


def test_a_key_with_several_moduli_or_exponents_means_each_pair() -> None:
    (key,) = stated(f'"{HEX}", "11", "no number"', "3, 65537")
    assert key.moduli == {MODULUS, 0x11}
    assert key.exponents == {3, EXPONENT}


def test_a_document_of_many_keys_takes_no_longer_than_its_length() -> None:
    """A product of all moduli with all exponents would be 25 million keys."""
    moduli = ", ".join(f'"{each:X}"' for each in range(1, 5000))
    exponents = ", ".join(str(each) for each in range(1, 5000))
    assert len(stated(moduli, exponents)) == 1


# --- nostr keys --------------------------------------------------------------------------------
#
# Which Nostr keys a profile gives its WebID: what counts, and what proves nothing.


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
