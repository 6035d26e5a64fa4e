"""Statements that say who a WebID is: whoever may only append must not become the owner."""

from __future__ import annotations

import pytest

from podstead.core.media_types import JSON_LD, TRIG, TURTLE
from podstead.rdf.codecs import parse
from podstead.rdf.identity_statements import (
    IdentityStatements,
    identity_statements,
    stated_by_profile,
)

DOCUMENT = "https://pod.example/alice/"
PREFIXES = """
    @prefix cert: <http://www.w3.org/ns/auth/cert#> .
    @prefix foaf: <http://xmlns.com/foaf/0.1/> .
    @prefix owl: <http://www.w3.org/2002/07/owl#> .
    @prefix pim: <http://www.w3.org/ns/pim/space#> .
    @prefix schema: <https://schema.org/> .
    @prefix schemahttp: <http://schema.org/> .
    @prefix sec: <https://w3id.org/security#> .
    @prefix cid: <https://www.w3.org/ns/cid/v1#> .
    @prefix solid: <http://www.w3.org/ns/solid/terms#> .
    """


def stated(content: str, media_type: str = TURTLE) -> IdentityStatements:
    text = PREFIXES + content if media_type != JSON_LD else content
    document = parse(text.encode(), media_type, base_iri=DOCUMENT)
    return identity_statements(document.dataset, document_iri=DOCUMENT)


IDENTITY = [
    "<#me> solid:oidcIssuer <https://issuer.example/> .",
    "<#me> pim:storage <> .",
    "<#me> owl:sameAs <did:nostr:abc> .",
    "<#me> schema:sameAs <did:nostr:abc> .",
    "<#me> schemahttp:sameAs <did:nostr:abc> .",
    "<#me> cert:key <#key> .",
    "<#me> cert:key [ cert:modulus 'ab' ; cert:exponent 65537 ] .",
    "<#me> sec:verificationMethod <#key> .",
    "<#me> sec:authenticationMethod <#key> .",
    "<#me> sec:assertionMethod [ sec:publicKeyMultibase 'z6Mk' ] .",
    "<#me> sec:keyAgreementMethod <#key> .",
    "<#me> sec:capabilityInvocationMethod <#key> .",
    "<#me> sec:capabilityDelegationMethod <#key> .",
    "<#me> sec:publicKey <#key> .",
    "<#me> cid:authentication <#key> .",
    "<> solid:oidcIssuer <https://issuer.example/> .",
    "<#i> solid:oidcIssuer <https://issuer.example/> .",
    "<#me> solid:oidcIssuer 'https://issuer.example/' .",
]


@pytest.mark.parametrize("statement", IDENTITY)
def test_a_statement_of_identity_is_valid(statement: str) -> None:
    assert len(stated(statement)) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "<#me> foaf:name 'Alice' .",
        "<card#me> solid:oidcIssuer <https://issuer.example/> .",
        "<https://pod.example/bob/#me> solid:oidcIssuer <https://issuer.example/> .",
        "<https://pod.example/alice> solid:oidcIssuer <https://issuer.example/> .",
        "[] solid:oidcIssuer <https://issuer.example/> .",
        "<#me> foaf:knows [ solid:oidcIssuer <https://issuer.example/> ] .",
        "<#key> cert:modulus 'ab' .",
    ],
)
def test_other_statements_do_not(statement: str) -> None:
    assert stated(statement) == frozenset()


@pytest.mark.parametrize("statement", IDENTITY)
def test_no_two_of_them_are_taken_for_one(statement: str) -> None:
    for other in IDENTITY:
        assert (stated(statement) == stated(other)) is (statement == other), other


PROFILE = """
    <#me> foaf:name "Alice" ; solid:oidcIssuer <https://issuer.example/> ;
        cert:key [ a cert:RSAPublicKey ; cert:modulus "ab" ; cert:exponent 65537 ], <#named> ;
        sec:authenticationMethod <https://keys.example/1> .
    <#named> cert:modulus "cd" ; cert:exponent 3 .
    <https://keys.example/1> sec:publicKeyMultibase "z6Mk" ; sec:controller <#me> .
    """


@pytest.mark.parametrize(
    "after",
    [
        PROFILE,
        PROFILE.replace('"Alice"', '"Alicia"'),
        PROFILE + "<#me> foaf:knows <#bob> .",
        PROFILE + "[] cert:modulus 'ef' .",
        PROFILE.replace(
            '[ a cert:RSAPublicKey ; cert:modulus "ab" ; cert:exponent 65537 ]', "_:relabelled"
        )
        + '_:relabelled cert:exponent 65537 ; cert:modulus "ab" ; a cert:RSAPublicKey .',
    ],
)
def test_a_document_may_change_without_its_identity(after: str) -> None:
    assert stated(after) == stated(PROFILE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("https://issuer.example/", "https://evil.example/"),
        ("solid:oidcIssuer <https://issuer.example/> ;", ""),
        ('cert:modulus "ab"', 'cert:modulus "ff"'),
        ('cert:modulus "ab"', 'cert:modulus "ab", "ff"'),
        ("cert:exponent 65537", "cert:exponent 3"),
        ('cert:modulus "cd"', 'cert:modulus "ff"'),
        (", <#named>", ""),
        (", <#named>", ", <#other>"),
        ("z6Mk", "z6Ml"),
        ("<#me> foaf:name", "<#i> solid:oidcIssuer <https://evil.example/> . <#me> foaf:name"),
        ("<#me> foaf:name", "<#me> owl:sameAs <https://evil.example/#me> ; foaf:name"),
        ("<#me> foaf:name", "<#me> cert:key [ cert:modulus 'ff' ] ; foaf:name"),
        ("<#me> foaf:name", "<#me> cert:key [] ; foaf:name"),
        ('"ab" ;', '"ab" ; <#more> [ <#deep> [ <#deeper> 1 ] ] ;'),
    ],
)
def test_every_change_of_identity_shows(old: str, new: str) -> None:
    assert PROFILE.count(old) >= 1
    assert stated(PROFILE.replace(old, new, 1)) != stated(PROFILE)


def test_a_change_deep_in_a_keys_node_shows() -> None:
    key = "<#me> cert:key [ <#a> [ <#b> [ <#c> 1 ] ] ] ."
    assert stated(key) == stated(key)
    assert stated(key) != stated(key.replace("1", "2"))


@pytest.mark.parametrize(
    "content",
    [
        "<#me> cert:key _:x . _:x <#p> _:x .",
        "<#me> cert:key _:x . _:x <#p> _:y . _:y <#p> _:x .",
        "<#me> cert:key <#k> . <#k> <#p> _:x . _:x <#p> _:x .",
        "<#me> cert:key" + " [ <#p>" * 30 + " 1" + " ]" * 30 + " .",
    ],
)
def test_a_state_that_cannot_be_compared_is_treated_as_changed(content: str) -> None:
    """Fail closed: whoever writes such a thing needs Control."""
    assert stated(content)
    assert stated(content) != stated(content)


def test_a_node_is_looked_at_once_however_many_ways_lead_to_it() -> None:
    """Ten ways at each of eight nodes: unfolded, this key would be a hundred million."""
    ways = " ; ".join(f"<#p{way}> _:n%d" for way in range(10))
    nodes = "".join(f"_:n{node} {ways.replace('%d', str(node + 1))} . " for node in range(8))
    content = f"<#me> cert:key _:n0 . {nodes} _:n8 <#r> %d ."
    assert stated(content.replace("%d", "1")) == stated(content.replace("%d", "1"))
    assert stated(content.replace("%d", "1")) != stated(content.replace("%d", "2"))


def test_statements_in_named_graphs_count_too() -> None:
    """Whoever reads the JSON-LD without telling graphs apart would believe them."""
    named = stated("<#g> { <#me> solid:oidcIssuer <https://evil.example/> }", TRIG)
    assert named == stated("<#me> solid:oidcIssuer <https://evil.example/> .")
    assert len(named) == 1


@pytest.mark.parametrize(
    "subject",
    [
        "<?x#me>",
        "<https://POD.example/alice/#me>",
        "<HTTPS://pod.example:443/alice/#me>",
        "<https://pod.example/%61lice/#me>",
    ],
)
def test_no_spelling_of_the_documents_url_hides_a_statement(subject: str) -> None:
    """P-50, P-51: what is had at the WebID's URL is this document, however the URL is written."""
    said = stated(f"{subject} solid:oidcIssuer <https://issuer.example/> .")
    assert len(said) == 1
    assert stated("<https://pod.example/bob/#me> solid:oidcIssuer <https://x.example/> .") == (
        frozenset()
    )


# --- what makes a profile -------------------------------------------------------------------------

LINKS = [
    "<#it> schema:sameAs <https://films.example/1> .",
    "<#it> schemahttp:sameAs <https://films.example/1>, <urn:isbn:1> .",
    "<#it> owl:sameAs <https://www.wikidata.org/entity/Q1>, [] .",
    "<#it> schema:sameAs 'did:nostr:abc' .",
    "<> owl:sameAs <didactic:x> .",
]


@pytest.mark.parametrize("content", LINKS)
def test_a_link_to_a_page_about_the_same_thing_makes_no_profile(content: str) -> None:
    assert stated(content)
    assert stated_by_profile(stated(content)) == frozenset()


@pytest.mark.parametrize("content", IDENTITY)
def test_what_lets_somebody_act_as_a_webid_makes_a_profile(content: str) -> None:
    assert stated_by_profile(stated(content)) == stated(content)


@pytest.mark.parametrize("content", LINKS)
def test_every_name_in_a_profile_is_valid(content: str) -> None:
    """So an application cannot add one beside a provider."""
    profile = "<#me> solid:oidcIssuer <https://issuer.example/> ."
    assert stated_by_profile(stated(profile + content)) > stated_by_profile(stated(profile))


@pytest.mark.parametrize("name", ["did:nostr:abc", "DID:NOSTR:ABC", "did:web:evil.example"])
def test_a_name_that_is_a_key_makes_a_profile_however_it_is_written(name: str) -> None:
    said = stated(f"<#me> owl:sameAs <{name}> .")
    assert stated_by_profile(said) == said != frozenset()
