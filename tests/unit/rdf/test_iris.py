"""Short forms of IRIs; urllib's resolver, which knows nothing of ours, reads them back."""

from __future__ import annotations

from urllib.parse import urljoin

import pytest

from podstead.rdf.turtle_writer import PrefixTable, RelativeReferences, relative_name

DOCUMENT = "http://example.org/folder/document"
CONTAINER = "http://example.org/folder/"


@pytest.mark.parametrize(
    ("base", "iri", "reference"),
    [
        (DOCUMENT, DOCUMENT, ""),
        (DOCUMENT, DOCUMENT + "#me", "#me"),
        (DOCUMENT, DOCUMENT + "#", "#"),
        (DOCUMENT, CONTAINER + "other", "other"),
        (DOCUMENT, CONTAINER + "other/deep#x", "other/deep#x"),
        (DOCUMENT, CONTAINER, "./"),
        (DOCUMENT, DOCUMENT + "2", "document2"),
        (DOCUMENT, CONTAINER + "a:b", "./a:b"),
        (DOCUMENT, CONTAINER + "a/b:c", "a/b:c"),
        (DOCUMENT, CONTAINER + "x?a:b", "x?a:b"),
        (CONTAINER, CONTAINER, ""),
        (CONTAINER, CONTAINER + "#me", "#me"),
        (CONTAINER, CONTAINER + "card", "card"),
        (CONTAINER, CONTAINER + "@x", "@x"),
    ],
)
def test_within_its_container_an_iri_is_relative(base: str, iri: str, reference: str) -> None:
    assert RelativeReferences(base).reference(iri) == reference
    assert urljoin(base, reference).rstrip("#") == iri.rstrip("#")


@pytest.mark.parametrize(
    "iri",
    [
        "http://example.org/other",
        "http://example.org/folder",
        "https://example.org/folder/x",
        "http://other.example/folder/x",
        CONTAINER + "/double",
        CONTAINER + "../up",
        CONTAINER + "./here",
        CONTAINER + "a/../b",
        CONTAINER + "a/..",
        CONTAINER + "..",
        CONTAINER + "?query",
        "urn:x:y",
    ],
)
def test_what_no_reference_says_without_doubt_stays_whole(iri: str) -> None:
    assert RelativeReferences(DOCUMENT).reference(iri) == iri


def test_without_a_base_every_iri_stays_whole() -> None:
    assert RelativeReferences(None).reference(DOCUMENT) == DOCUMENT


def test_a_query_of_a_container_is_not_one_of_its_document() -> None:
    assert relative_name("?query") is None


def test_prefixes_of_the_document_come_before_the_customary_ones() -> None:
    table = PrefixTable({"f": "http://xmlns.com/foaf/0.1/", "ldp": "http://example.org/ldp#"})
    assert table.compact("http://xmlns.com/foaf/0.1/name") == "f:name"
    assert table.compact("http://example.org/ldp#x") == "ldp:x"
    assert table.compact("http://www.w3.org/ns/ldp#contains") is None, "ldp is taken"
    assert table.compact("http://www.w3.org/ns/auth/acl#Read") == "acl:Read"
    assert table.used == {
        "f": "http://xmlns.com/foaf/0.1/",
        "ldp": "http://example.org/ldp#",
        "acl": "http://www.w3.org/ns/auth/acl#",
    }


@pytest.mark.parametrize(
    "local", ["a.", ".a", "a/b", "a%20b", "a(b)", "ä", "a:b", "-a", "a b", "a,b"]
)
def test_only_plain_local_names_are_compacted(local: str) -> None:
    assert (
        PrefixTable({"p": "http://example.org/ns#"}).compact(f"http://example.org/ns#{local}")
        is None
    )


@pytest.mark.parametrize("local", ["", "a", "A1", "_x", "a.b", "a-b", "2024", "a-"])
def test_plain_local_names_are_compacted(local: str) -> None:
    table = PrefixTable({"p": "http://example.org/ns#"})
    assert table.compact(f"http://example.org/ns#{local}") == f"p:{local}"


def test_odd_prefixes_are_not_used() -> None:
    prefixes = {"": "http://example.org/e#", "ä": "http://example.org/a#", "1": "http://x.example/"}
    table = PrefixTable(prefixes)
    for namespace in prefixes.values():
        assert table.compact(f"{namespace}name") is None
    assert PrefixTable(prefixes, empty=True).compact("http://example.org/e#name") == ":name"


def test_a_prefix_can_be_barred() -> None:
    table = PrefixTable({"did": "http://example.org/did#"}, without={"did"})
    assert table.compact("http://example.org/did#x") is None


def test_a_namespace_with_a_barred_prefix_gets_no_other() -> None:
    table = PrefixTable({"f": "http://xmlns.com/foaf/0.1/"}, without={"f"})
    assert table.compact("http://xmlns.com/foaf/0.1/name") is None
    assert PrefixTable({}, without={"foaf"}).compact("http://xmlns.com/foaf/0.1/name") is None


def test_what_two_documents_call_a_namespace_is_kept_apart() -> None:
    """Although names are split only once for all documents."""
    iri = "http://example.org/shared#name"
    for prefix in ("a", "b"):
        table = PrefixTable({prefix: "http://example.org/shared#"})
        assert table.compact(iri) == f"{prefix}:name"
        assert table.used == {prefix: "http://example.org/shared#"}
    assert PrefixTable({}).compact(iri) is None


def test_a_long_name_is_compacted_too() -> None:
    table = PrefixTable({"p": "http://example.org/ns#"})
    assert table.compact("http://example.org/ns#" + "a" * 2000) == "p:" + "a" * 2000
