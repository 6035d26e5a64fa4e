"""Keys in documents are numbers, however they are written (A-164)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.features.webid_tls.keys import StatedRsaKey, stated_rsa_keys
from podstead.rdf.codecs import parse
from podstead.rdf.graph import Graph

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
