"""Which representation is chosen, and what its headers say (R-3 to R-5, R-13, R-15, R-16)."""

from __future__ import annotations

import json

import pytest

from tests.conformance.agents import LDP, N3_PATCH, SPARQL_UPDATE, WRITTEN, Agent, Response
from tests.conformance.rdf_samples import DOCUMENT, INSERTED, PATCHES
from tests.support.rdf import (
    FORMATS,
    JSON_LD,
    N3,
    N_QUADS,
    N_TRIPLES,
    RDF_XML,
    TRIG,
    TURTLE,
    triples,
    written,
)

TEXT = "text/plain"
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"
LONG = (
    "application/json;q=0.1, image/webp;q=0.1, image/png;q=0.2, audio/ogg;q=0.3, video/mp4;q=0.4, "
    "text/html;q=0.5, application/xhtml+xml;q=0.6, text/*;q=0.2, */*;q=0.1, text/turtle;q=0.9"
)
RDFLIB = (
    "text/turtle, application/ld+json;q=0.9, application/rdf+xml;q=0.9, "
    "application/xhtml+xml;q=0.5, text/html;q=0.5, */*;q=0.1"
)


def stored(alice: Agent, container: str, content_type: str) -> str:
    """A new document in the given form."""
    url = alice.url(f"{container}doc")
    return alice.create(url, written(triples(DOCUMENT, TURTLE, url), content_type), content_type)


# --- preferences ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accept", "of_turtle", "of_json_ld", "of_n_triples", "of_container"),
    [
        (TURTLE, TURTLE, TURTLE, TURTLE, TURTLE),
        (JSON_LD, JSON_LD, JSON_LD, JSON_LD, JSON_LD),
        (LONG, TURTLE, TURTLE, TURTLE, TURTLE),
        (RDFLIB, TURTLE, TURTLE, TURTLE, TURTLE),
        # Weights.
        (f"{TURTLE};q=0.8, {JSON_LD};q=0.9", JSON_LD, JSON_LD, JSON_LD, JSON_LD),
        (f"{TURTLE};q=0.9, {JSON_LD};q=0.8", TURTLE, TURTLE, TURTLE, TURTLE),
        (f"{TURTLE};q=0.001, {JSON_LD};q=0", TURTLE, TURTLE, TURTLE, TURTLE),
        # Ranges: the most specific one counts.
        ("*/*", TURTLE, JSON_LD, N_TRIPLES, TURTLE),
        (BROWSER, TURTLE, JSON_LD, N_TRIPLES, TURTLE),
        ("text/*", TURTLE, TURTLE, TURTLE, TURTLE),
        ("application/*", JSON_LD, JSON_LD, N_TRIPLES, JSON_LD),
        (f"*/*, {TURTLE};q=0.1", JSON_LD, JSON_LD, N_TRIPLES, JSON_LD),
        (f"text/*;q=0.9, {TURTLE};q=0.1, {JSON_LD};q=0.5", N3, N3, N3, N3),
        # Ties: the stored form, then Turtle, then JSON-LD.
        (f"{JSON_LD}, {TURTLE}", TURTLE, JSON_LD, TURTLE, TURTLE),
        (f"{N_TRIPLES}, {JSON_LD}, {TURTLE}", TURTLE, JSON_LD, N_TRIPLES, TURTLE),
        (f"{N_QUADS}, {JSON_LD}", JSON_LD, JSON_LD, JSON_LD, JSON_LD),
        # Spelling.
        (" TEXT/Turtle ; Q=1.0 ,, ", TURTLE, TURTLE, TURTLE, TURTLE),
        ('application/ld+json;profile="a,b;q=0"', JSON_LD, JSON_LD, JSON_LD, JSON_LD),
        (f"{TURTLE};charset=utf-8", TURTLE, TURTLE, TURTLE, TURTLE),
    ],
)
def test_r_3_weights_ranges_and_the_stored_form_decide(
    alice: Agent,
    container: str,
    accept: str,
    of_turtle: str,
    of_json_ld: str,
    of_n_triples: str,
    of_container: str,
) -> None:
    assert media_types(alice, container, accept) == {of_container}
    chosen = {TURTLE: of_turtle, JSON_LD: of_json_ld, N_TRIPLES: of_n_triples}
    for content_type, expected in chosen.items():
        target = stored(alice, container, content_type)
        assert media_types(alice, target, accept) == {expected}
        assert alice.delete(target).status == 204


def media_types(alice: Agent, target: str, accept: str) -> set[str]:
    """The type of the answer to GET and to HEAD."""
    answers = [
        alice.request(method, target, None, {"Accept": accept}) for method in ("GET", "HEAD")
    ]
    assert [answer.status for answer in answers] == [200, 200]
    assert all("Accept" in answer.listed("Vary") for answer in answers)
    return {answer.media_type for answer in answers}


def test_r_3_several_accept_lines_are_one_list(alice: Agent, container: str) -> None:
    lines = [("Accept", each) for each in ("image/png", f"{TURTLE};q=0.5", JSON_LD)]
    for target in (stored(alice, container, TURTLE), container):
        assert alice.request("GET", target, headers=lines).media_type == JSON_LD


@pytest.mark.parametrize("content_type", [*FORMATS, TEXT, "application/json"])
def test_r_4_without_accept_a_document_is_returned_as_stored(
    alice: Agent, container: str, content_type: str
) -> None:
    target = f"{container}doc"
    if content_type in FORMATS:
        stored(alice, container, content_type)
    else:
        alice.create(target, "Hello", content_type)
    read = alice.get(target)
    assert (read.status, read.header("Content-Type")) == (200, content_type)


@pytest.mark.parametrize("content_type", FORMATS)
def test_r_4_without_accept_what_the_server_makes_is_turtle(
    alice: Agent, container: str, content_type: str
) -> None:
    own = triples("<> <#b> <#c>.", TURTLE, alice.url(container))
    assert alice.put(container, written(own, content_type), content_type).status == 204
    storage = alice.head(container).target("http://www.w3.org/ns/solid/terms#storageDescription")
    for target in (container, storage):
        read = alice.get(target)
        assert (read.status, read.header("Content-Type")) == (200, TURTLE)


@pytest.mark.parametrize(
    "accept",
    ["image/png", "text/html", "application/json", "*/*;q=0", f"{TURTLE};q=0, {TEXT}", "text/css"],
)
@pytest.mark.parametrize("name", ["doc", "", ".meta", "doc.meta"])
def test_r_5_rdf_that_is_not_available_as_requested_is_406(
    alice: Agent, container: str, accept: str, name: str
) -> None:
    stored(alice, container, TURTLE)
    for method in ("GET", "HEAD"):
        refused = alice.request(method, container + name, None, {"Accept": accept})
        assert refused.status == 406


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (f"{TURTLE};q=0, */*", JSON_LD),
        (f"{TURTLE};q=0, {JSON_LD}", JSON_LD),
        (f"*/*;q=0, {RDF_XML}", RDF_XML),
        ("text/*;q=0, application/*", JSON_LD),
    ],
)
def test_r_5_a_weight_of_nothing_excludes_a_form(
    alice: Agent, container: str, accept: str, expected: str
) -> None:
    for target in (stored(alice, container, TURTLE), container):
        assert alice.read(target, accept).media_type == expected


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        (f"{TURTLE}, {JSON_LD}", 200),
        ("image/*", 200),
        ("*/*;q=0.1", 200),
        (f"{TEXT};q=0, */*", 200),
        (f"{TEXT};q=0", 406),
        ("text/*;q=0, image/png", 406),
        ("*/*;q=0", 406),
    ],
)
def test_r_5_text_is_withheld_only_from_those_who_exclude_it(
    alice: Agent, container: str, accept: str, status: int
) -> None:
    target = alice.create(f"{container}x.txt", "Hello", TEXT)
    for method in ("GET", "HEAD"):
        read = alice.request(method, target, None, {"Accept": accept})
        assert read.status == status
        assert status != 200 or read.header("Content-Type") == TEXT


# --- charsets -------------------------------------------------------------------------------------


@pytest.mark.parametrize("content_type", FORMATS)
@pytest.mark.parametrize("suffix", ["; charset=UTF-8", ";charset=utf-8", '; Charset="utf-8"'])
@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_r_13_rdf_may_say_that_it_is_utf_8(
    alice: Agent, container: str, content_type: str, suffix: str, method: str
) -> None:
    url = alice.url(f"{container}doc")
    expected = triples(DOCUMENT, TURTLE, url)
    headers = {"Content-Type": content_type + suffix, "Slug": "doc"}
    target = url if method == "PUT" else container
    made = alice.request(method, target, written(expected, content_type), headers)
    assert (made.status, made.location) == (201, url)
    verbatim = alice.get(url)
    assert verbatim.media_type == content_type
    assert (verbatim.header("Content-Type") or "").lower().endswith(("utf-8", '"utf-8"'))
    for accept in (TURTLE, JSON_LD):
        assert alice.read(url, accept).triples == expected


@pytest.mark.parametrize("content_type", [SPARQL_UPDATE, N3_PATCH])
def test_r_13_patches_may_say_that_they_are_utf_8(
    alice: Agent, container: str, content_type: str
) -> None:
    for target in (stored(alice, container, TURTLE), f"{container}new", container):
        patch = PATCHES[content_type].replace("'c'", "'é'")
        patched = alice.patch(target, patch, f"{content_type}; charset=UTF-8")
        assert patched.status in WRITTEN
        assert "é" in alice.read(target).text


@pytest.mark.parametrize("content_type", FORMATS)
@pytest.mark.parametrize("name", ["c/", ".acl", ".meta"])
def test_r_13_what_must_be_rdf_may_say_that_it_is_utf_8(
    alice: Agent, container: str, content_type: str, name: str
) -> None:
    url = alice.url(container + name)
    body = INSERTED
    if name == ".acl":
        alice.grant(container)
        body = alice.read(url).text
    content = written(triples(body, TURTLE, url), content_type)
    assert alice.put(url, content, f"{content_type}; charset=UTF-8").status in WRITTEN
    assert alice.read(url).triples >= triples(body, TURTLE, url)


@pytest.mark.parametrize("content_type", FORMATS)
def test_r_13_rdf_in_another_charset_is_415(
    alice: Agent, container: str, content_type: str
) -> None:
    url = alice.url(f"{container}doc")
    content = written(triples(DOCUMENT, TURTLE, url), content_type)
    for charset in ("ISO-8859-1", "UTF-16", '"x"'):
        put = alice.put(url, content.encode("utf-16"), f"{content_type}; charset={charset}")
        assert put.status == 415
    assert alice.get(url).status == 404


@pytest.mark.parametrize("content_type", [SPARQL_UPDATE, N3_PATCH])
def test_r_13_patches_in_another_charset_are_415(
    alice: Agent, container: str, content_type: str
) -> None:
    target = stored(alice, container, TURTLE)
    before = alice.get(target).body
    patched = alice.patch(target, PATCHES[content_type], f"{content_type}; charset=ISO-8859-1")
    assert patched.status == 415
    assert alice.get(target).body == before


def test_r_13_a_text_keeps_its_charset(alice: Agent, container: str) -> None:
    content = "Zoë".encode("latin-1")
    target = f"{container}x.txt"
    assert alice.put(target, content, "text/plain; charset=ISO-8859-1").status == 201
    read = alice.get(target, headers={"Accept": TEXT})
    assert (read.header("Content-Type"), read.body) == ("text/plain; charset=ISO-8859-1", content)
    for accept in (f"{TEXT};q=0", "text/*;q=0"):
        assert alice.get(target, headers={"Accept": accept}).status == 406


# --- browsers and clients -------------------------------------------------------------------------


def test_r_15_no_answer_is_to_be_sniffed(alice: Agent, public: Agent, container: str) -> None:
    target = stored(alice, container, TURTLE)
    answers = [
        *(alice.request(method, target) for method in ("GET", "HEAD", "OPTIONS", "DELETE", "GET")),
        *(public.request(method, container) for method in ("GET", "OPTIONS", "PUT", "BREW")),
        alice.get(container),
        alice.get(container, headers={"If-None-Match": "*"}),
        alice.get(container, headers={"Accept": "image/png"}),
        alice.put(target, "<#a> <#b"),
        alice.put(target, "<#a> <#b> <#c>."),
        alice.get("/"),
        alice.get("/%"),
    ]
    assert {answer.status for answer in answers} >= {200, 201, 204, 304, 400, 401, 404, 406}
    assert {answer.header("X-Content-Type-Options") for answer in answers} == {"nosniff"}


@pytest.mark.parametrize(
    "content_type",
    ["text/html", "image/svg+xml", "application/xhtml+xml", "text/xml", TEXT, TURTLE, RDF_XML],
)
def test_r_15_what_agents_store_gets_an_origin_of_its_own(
    alice: Agent, container: str, content_type: str
) -> None:
    body = written(frozenset(), RDF_XML) if content_type == RDF_XML else "# nothing"
    target = alice.create(f"{container}doc", body, content_type)
    accepts = [{}, {"Accept": TURTLE}, {"Accept": BROWSER}]
    answers = [alice.get(target, headers=accept) for accept in accepts]
    answers += [alice.get(target, headers={"Range": "bytes=0-"}), alice.get(container)]
    for answer in answers:
        policy = answer.header("Content-Security-Policy") or ""
        directives = [directive.split() for directive in policy.split(";")]
        (sandbox,) = [directive for directive in directives if directive[:1] == ["sandbox"]]
        assert "allow-same-origin" not in sandbox


def test_r_16_the_content_type_of_rdf_is_recognised_as_it_stands(
    alice: Agent, container: str
) -> None:
    for content_type in FORMATS:
        target = stored(alice, container, content_type)
        for accept in (TURTLE, RDFLIB):
            assert alice.read(target, accept).header("Content-Type") == TURTLE
        assert alice.read(target, TRIG).header("Content-Type") == TRIG
        assert alice.delete(target).status == 204
    assert alice.read(container).header("Content-Type") == TURTLE


@pytest.mark.parametrize("accept", [None, TURTLE, RDFLIB, "*/*"])
def test_r_16_errors_are_short_json_to_programs(
    alice: Agent, public: Agent, container: str, accept: str | None
) -> None:
    headers = {"Accept": accept} if accept else {}
    alice.create(f"{container}x.txt", "Hello", TEXT)
    answers: list[Response] = [
        alice.get(f"{container}missing", headers=headers),
        public.get(container, headers=headers),
        alice.delete(container, headers=headers),
        alice.post(f"{container}x.txt", "", TURTLE, headers),
        alice.put(f"{container}y", "<#a> <#b", TURTLE, headers),
    ]
    assert [answer.status for answer in answers] == [404, 401, 409, 405, 400]
    for answer in answers:
        assert answer.media_type == "application/json"
        assert answer.header("Content-Length") == str(len(answer.body))
        assert answer.header("Transfer-Encoding") is None
        assert json.loads(answer.body).keys() == {"error", "message"}


def test_r_16_no_other_location_is_said_to_be_the_one_of_the_content(
    alice: Agent, container: str
) -> None:
    for target in (stored(alice, container, TURTLE), container):
        for accept in (TURTLE, JSON_LD):
            read = alice.read(target, accept)
            assert read.header("Content-Location") is None
            assert f"{LDP}Resource" in read.targets("type")
