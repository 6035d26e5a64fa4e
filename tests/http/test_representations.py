"""RDF in and out: every type by every type, bytes as they were sent, and what is refused."""

from __future__ import annotations

import json
import re
import threading

import pytest
from rdflib import Literal, URIRef

from podstead.rdf.codecs import repair_missing_final_dot
from podstead.resources import content
from tests.support.application import BASE, Server, acl_turtle
from tests.support.rdf import (
    FORMATS,
    JSON_LD,
    N3,
    N_QUADS,
    N_TRIPLES,
    RDF_XML,
    TRIG,
    TURTLE,
    Triples,
    graphs,
    media_type,
    said,
    triples,
    written,
)

EX = "http://example.org/"

DOCUMENT = f"""\
@prefix ex: <{EX}>.
<#me> a ex:Person;
    ex:name "Zoë"@fr, "line\\nbreak", "5"^^ex:code;
    ex:age 42;
    ex:likes (1 "two" <other>);
    ex:knows [ ex:name "nobody in particular" ].
<> ex:about <#me>, <../public/>, <{EX}>.
"""


def url(path: str) -> str:
    return BASE + path


# --- every type in and out --------------------------------------------------------------------


@pytest.mark.parametrize("sent", FORMATS)
async def test_a_document_of_any_rdf_type_is_available_in_every_other(
    server: Server, sent: str
) -> None:
    """R-1, R-6."""
    path = "/alice/private/doc"
    expected = triples(DOCUMENT, TURTLE, url(path))
    put = await server.alice.put(path, written(expected, sent), sent)
    assert put.status == 201, put.text
    for asked in FORMATS:
        answer = await server.alice.get(path, accept=asked)
        assert (answer.status, media_type(answer)) == (200, asked)
        assert said(answer, url(path)) == expected


@pytest.mark.parametrize("sent", FORMATS)
async def test_a_container_is_accepted_and_available_in_every_type(
    server: Server, sent: str
) -> None:
    """R-2, R-6, C-9."""
    path = "/alice/private/c/"
    own = triples("<> <http://purl.org/dc/terms/title> 'T'; <#b> [ <#c> 1 ].", TURTLE, url(path))
    assert (await server.alice.put(path, written(own, sent), sent)).status == 201
    await server.alice.put(f"{path}x.txt", "x", "text/plain")
    listings = []
    for asked in FORMATS:
        answer = await server.alice.get(path, accept=asked)
        assert (answer.status, media_type(answer)) == (200, asked)
        listings.append(said(answer, url(path)))
    assert len(set(listings)) == 1
    listed = {(str(s), str(p), str(o)) for s, p, o in listings[0]}
    assert (url(path), "http://www.w3.org/ns/ldp#contains", url(f"{path}x.txt")) in listed
    assert (url(path), "http://purl.org/dc/terms/title", "T") in listed


@pytest.mark.parametrize("path", ["/alice/private/doc", "/alice/private/c/"])
async def test_the_direction_of_a_text_is_kept_in_json_ld_only(server: Server, path: str) -> None:
    """R-1, R-8: readers of Turtle and the like know no directions, and could read nothing."""
    name = {"@value": "x", "@language": "ar", "@direction": "rtl"}
    body = json.dumps({"@id": "", f"{EX}name": name})
    assert (await server.alice.put(path, body, JSON_LD)).status == 201
    update = f"INSERT DATA {{ <> <{EX}b> 1 }}".encode()
    kind = {"Content-Type": "application/sparql-update"}
    patch = await server.alice.request("PATCH", path, headers=kind, body=update)
    assert patch.status == 204
    told = (URIRef(url(path)), URIRef(f"{EX}name"), Literal("x", lang="ar"))
    for asked in FORMATS:
        answer = await server.alice.get(path, accept=asked)
        assert told in said(answer, url(path))
        assert (b"rtl" in answer.body) == (asked == JSON_LD)


async def test_a_container_that_xml_cannot_describe_is_not_available_as_xml(server: Server) -> None:
    """R-5, P-15: a HEAD says the same as a GET, also where only the making tells."""
    path = "/alice/private/c/"
    await server.alice.put(path, f"<> <{EX}1> 'one'.", TURTLE)
    assert (await server.alice.get(path, accept=RDF_XML)).status == 406
    assert (await server.alice.head(path, accept=RDF_XML)).status == 406
    assert (await server.alice.head(path, accept=f"{RDF_XML}, {TURTLE}")).status == 200


@pytest.mark.parametrize("sent", [TURTLE, JSON_LD, N_TRIPLES])
async def test_an_acl_is_accepted_available_and_applied_in_every_type(
    server: Server, sent: str
) -> None:
    """R-2, W-2, W-6."""
    path = "/alice/private/doc"
    await server.alice.put(path, "hello", "text/plain")
    rule = (f"acl:agent <{server.bob_web_id}>", "Read")
    rules = triples(acl_turtle(path, rule), TURTLE, url(f"{path}.acl"))
    assert (await server.alice.put(f"{path}.acl", written(rules, sent), sent)).status == 201
    assert (await server.bob.get(path)).body == b"hello"
    for asked in (TURTLE, JSON_LD, N_TRIPLES):
        answer = await server.alice.get(f"{path}.acl", accept=asked)
        assert (answer.status, media_type(answer)) == (200, asked)
        assert said(answer, url(f"{path}.acl")) == rules


@pytest.mark.parametrize("sent", [TURTLE, JSON_LD, N_TRIPLES])
async def test_a_description_is_accepted_and_available_in_every_type(
    server: Server, sent: str
) -> None:
    """R-2, C-14."""
    path = "/alice/private/photo.jpg"
    await server.alice.put(path, b"\xff\xd8", "image/jpeg")
    about = triples("<photo.jpg> <#b> 'a photo'.", TURTLE, url(f"{path}.meta"))
    assert (await server.alice.put(f"{path}.meta", written(about, sent), sent)).status == 201
    for asked in (TURTLE, JSON_LD, N_TRIPLES):
        answer = await server.alice.get(f"{path}.meta", accept=asked)
        assert (answer.status, media_type(answer)) == (200, asked)
        assert said(answer, url(f"{path}.meta")) == about


@pytest.mark.parametrize("asked", FORMATS)
async def test_what_nobody_described_has_an_empty_description_of_every_type(
    server: Server, asked: str
) -> None:
    """C-30, R-2."""
    await server.alice.put("/alice/private/x", "x", "text/plain")
    answer = await server.alice.get("/alice/private/x.meta", accept=asked)
    assert (answer.status, media_type(answer)) == (200, asked)
    assert said(answer, url("/alice/private/x.meta")) == frozenset()
    assert (await server.alice.get("/alice/private/x.meta", accept="image/png")).status == 406
    assert (await server.alice.get("/alice/private/missing.meta")).status == 404


async def test_a_container_and_its_description_are_one_graph_at_two_urls(server: Server) -> None:
    """C-30: what is put to either shows in both, whichever was read before."""
    container, description = "/alice/private/c/", "/alice/private/c/.meta"
    await server.alice.put(f"{container}member.txt", "x", "text/plain")
    title = "<./> <http://purl.org/dc/terms/title> '{}'."
    for asked in (TURTLE, JSON_LD):
        for written_to in (container, description):
            put = await server.alice.put(written_to, title.format(written_to), TURTLE)
            assert put.status == 204
            for order in ((container, description), (description, container)) * 2:
                read = {path: await server.alice.get(path, accept=asked) for path in order}
                own = said(read[description], url(description))
                assert own == triples(title.format(written_to), TURTLE, url(container))
                whole = said(read[container], url(container))
                assert own < whole
                assert any(str(o).endswith("member.txt") for _, _, o in whole)
    assert (await server.alice.delete(description)).status == 204
    assert (await server.alice.get(description)).body == b""
    assert "title" not in (await server.alice.get(container)).text


@pytest.mark.parametrize("sent", [TURTLE, JSON_LD, RDF_XML])
@pytest.mark.parametrize("asked", [TURTLE, JSON_LD, N_TRIPLES])
async def test_what_is_said_at_either_url_of_a_container_is_relative_to_that_url(
    server: Server, sent: str, asked: str
) -> None:
    """R-7, C-30: the same words mean something else at the other URL."""
    container, description = "/alice/private/c/", "/alice/private/c/.meta"
    await server.alice.put(container, None, TURTLE)
    for written_to in (container, description):
        content = RELATIVE[sent].replace("{url}", url(written_to))
        content = content.replace('"#p"', f'"{url(written_to)}#p"')
        expected = triples(content, sent, url(written_to))
        assert (await server.alice.put(written_to, content, sent)).status == 204
        own = await server.alice.get(description, accept=asked)
        assert said(own, url(description)) == expected
        whole = await server.alice.get(container, accept=asked)
        assert said(whole, url(container)) > expected


async def test_statements_of_the_server_may_be_repeated_at_either_url_of_a_container(
    server: Server,
) -> None:
    """C-13, C-30: reading, changing a triple and sending everything back works."""
    for container in ("/alice/", "/alice/private/"):
        for target in (container, f"{container}.meta"):
            # With absolute IRIs, since relative ones mean something else at the other URL.
            current = await server.alice.get(container, accept=N_TRIPLES)
            title = f'<{url(container)}> <http://purl.org/dc/terms/title> "mine" .\n'
            put = await server.alice.put(target, current.text + title, N_TRIPLES)
            assert put.status == 204
            assert b"contains" not in (await server.alice.get(f"{container}.meta")).body


# --- choosing ---------------------------------------------------------------------------------

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.mark.parametrize(
    ("accept", "of_json_ld", "of_container"),
    [
        ("*/*", JSON_LD, TURTLE),  # ties give the stored type
        ("text/*", TURTLE, TURTLE),
        ("application/*", JSON_LD, JSON_LD),
        ("text/turtle, application/ld+json", JSON_LD, TURTLE),
        ("text/turtle;q=0.9, application/ld+json;q=0.8", TURTLE, TURTLE),
        ("text/turtle;q=0.8, application/ld+json;q=0.9", JSON_LD, JSON_LD),
        ("application/ld+json;q=0, */*", TURTLE, TURTLE),
        ("text/turtle;q=0.5, */*;q=0.4, text/*;q=0.1", TURTLE, TURTLE),
        ('application/ld+json;profile="http://www.w3.org/ns/json-ld#compacted"', JSON_LD, JSON_LD),
        (f"{', '.join(f'x/y{n};q=0.1' for n in range(20))}, text/turtle;q=0.9", TURTLE, TURTLE),
        (BROWSER, JSON_LD, TURTLE),
    ],
)
async def test_weights_and_ranges_decide(
    server: Server, accept: str, of_json_ld: str, of_container: str
) -> None:
    """R-3, C-27."""
    await server.alice.put("/alice/private/d", '{"@id": "#me"}', JSON_LD)
    for path, expected in (("/alice/private/d", of_json_ld), ("/alice/private/", of_container)):
        answer = await server.alice.get(path, accept=accept)
        assert (answer.status, media_type(answer)) == (200, expected)
        assert media_type(await server.alice.head(path, accept=accept)) == expected


@pytest.mark.parametrize("sent", FORMATS)
async def test_without_accept_a_document_is_returned_as_stored(server: Server, sent: str) -> None:
    """R-4."""
    content = written(triples("<#a> <#b> <#c>.", TURTLE, url("/alice/private/d")), sent)
    await server.alice.put("/alice/private/d", content, sent)
    answer = await server.alice.get("/alice/private/d")
    assert answer.header("content-type") == sent
    assert answer.body == content.encode()


async def test_without_accept_a_container_is_turtle_whatever_was_sent(server: Server) -> None:
    """R-4, C-27."""
    await server.alice.put("/alice/private/c/", '{"@id": "", "ex:p": 1}', JSON_LD)
    assert media_type(await server.alice.get("/alice/private/c/")) == TURTLE


@pytest.mark.parametrize("path", ["/alice/private/", "/alice/private/d.ttl", "/alice/.acl"])
async def test_no_acceptable_type_of_rdf_is_406_naming_what_there_is(
    server: Server, path: str
) -> None:
    """R-5."""
    await server.alice.put("/alice/private/d.ttl", "<#a> <#b> <#c>.", TURTLE)
    for accept in ("image/png", "text/html", "*/*;q=0", "text/turtle;q=0, application/json"):
        answer = await server.alice.get(path, accept=accept)
        assert answer.status == 406
    answer = await server.alice.get(path, accept="image/png")
    assert TURTLE in answer.json()["message"]
    assert JSON_LD in answer.json()["message"]


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        (TURTLE, 200),
        ("image/png", 200),
        ("text/plain;q=0", 406),
        ("text/*;q=0, image/png", 406),
        ("text/plain;q=0, */*", 200),
    ],
)
async def test_text_is_given_to_all_but_those_who_exclude_it(
    server: Server, accept: str, status: int
) -> None:
    """R-5."""
    await server.alice.put("/alice/private/t", "text", "text/plain")
    answer = await server.alice.get("/alice/private/t", accept=accept)
    assert answer.status == status
    assert status != 200 or answer.body == b"text"


async def test_json_is_bytes_and_no_rdf(server: Server) -> None:
    """R-6."""
    broken = b'{"@id": "#me", '
    assert (await server.alice.put("/alice/private/j", broken, "application/json")).status == 201
    answer = await server.alice.get("/alice/private/j", accept=f"{TURTLE}, application/json;q=0.1")
    assert (answer.header("content-type"), answer.body) == ("application/json", broken)
    assert "NonRDFSource" in (answer.header("link") or "")


# --- bytes ------------------------------------------------------------------------------------

ODD = b"# a comment\r\n@prefix  x: <#> .\n\n\n x:a   x:b x:c .\t\n"
LARGE = b"<#a> <#b> <#c>.\n" * 8192


@pytest.mark.parametrize(
    ("content_type", "content"),
    [
        (TURTLE, ODD),
        (f"{TURTLE}; charset=UTF-8", ODD),
        (f'{TURTLE};charset="utf-8"', ODD),
        (TURTLE, b"\xef\xbb\xbf" + ODD),
        (TURTLE, LARGE),
        (f"{JSON_LD}; charset=utf-8", b'[ {"@id" :"#a"\n, "http://e/p":  1.0 } ]'),
        (N_TRIPLES, b'<http://e/a>   <http://e/b> "\\u00e9" . # why not\n'),
        (TRIG, b"{ <#a> <#b> <#c> }"),
        (N_QUADS, b"<http://e/a> <http://e/b> <http://e/c> <http://e/g> .\n"),
        (N3, ODD),
        (RDF_XML, b"<?xml version='1.0'?>\n<r:RDF xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#'/>"),
        ("text/plain;charset=iso-8859-1", b"caf\xe9"),
        ("image/png", bytes(range(256)) * 512),
        ("application/octet-stream", b""),
    ],
)  # fmt: skip
async def test_stored_bytes_come_back_exactly_as_sent(
    server: Server, content_type: str, content: bytes
) -> None:
    """R-8, R-13, C-15: with their type and its parameters, by GET without Accept and with it."""
    assert (await server.alice.put("/alice/private/b", content, content_type)).status == 201
    for accept in (None, "*/*", content_type.partition(";")[0]):
        answer = await server.alice.get(
            "/alice/private/b", **({"accept": accept} if accept else {})
        )
        assert answer.status == 200
        assert answer.header("content-type") == content_type
        assert answer.header("content-length") == str(len(content))
        assert answer.body == content


@pytest.mark.parametrize("sent", [TURTLE, JSON_LD, N_TRIPLES, TRIG, N3])
async def test_rdf_in_another_charset_than_utf_8_is_415(server: Server, sent: str) -> None:
    """R-13."""
    path = "/alice/private/latin"
    assert (await server.alice.put(path, b"", f"{sent}; charset=iso-8859-1")).status == 415
    assert (await server.alice.get(path)).status == 404


# --- relative IRIs ----------------------------------------------------------------------------

RELATIVE = {
    TURTLE: "<> <#p> <other>, <../up>, </abs>, <#frag>.",
    JSON_LD: '{"@id": "", "#p": [{"@id": "other"}, {"@id": "../up"}, {"@id": "/abs"}, '
    '{"@id": "#frag"}]}',
    RDF_XML: "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:h='{url}#'>"
    "<rdf:Description rdf:about=''><h:p rdf:resource='other'/><h:p rdf:resource='../up'/>"
    "<h:p rdf:resource='/abs'/><h:p rdf:resource='#frag'/></rdf:Description></rdf:RDF>",
}


def objects(content: Triples) -> set[str]:
    return {str(o) for _, _, o in content}


@pytest.mark.parametrize("sent", [TURTLE, JSON_LD, RDF_XML])
@pytest.mark.parametrize("asked", [TURTLE, JSON_LD, N_TRIPLES])
async def test_relative_iris_are_relative_to_the_resource_that_was_put(
    server: Server, sent: str, asked: str
) -> None:
    """R-7: they survive conversion."""
    path = "/alice/private/dir/doc"
    # In JSON-LD a relative property is no IRI, so it is written out.
    content = RELATIVE[sent].replace("{url}", url(path)).replace('"#p"', f'"{url(path)}#p"')
    assert (await server.alice.put(path, content, sent)).status == 201
    expected = {
        url("/alice/private/dir/other"), url("/alice/private/up"), url("/abs"), url(f"{path}#frag")
    }  # fmt: skip
    # Read at another URL, so that nothing relative would go unnoticed in absolute formats.
    answer = await server.alice.get(path, accept=asked)
    assert objects(said(answer, url(path))) == expected


@pytest.mark.parametrize("slug", [None, "named"])
async def test_relative_iris_are_relative_to_the_new_resource_that_was_posted(
    server: Server, slug: str | None
) -> None:
    """R-7: not to the container."""
    headers = {"slug": slug} if slug else {}
    answer = await server.alice.post("/alice/private/", "<> <#p> <#it>.", TURTLE, **headers)
    location = answer.header("location") or ""
    read = await server.alice.get(location.removeprefix(BASE), accept=N_TRIPLES)
    assert read.text.split() == [
        f"<{location}>", f"<{location}#p>", f"<{location}#it>", "."
    ]  # fmt: skip


async def test_a_base_in_the_document_applies(server: Server) -> None:
    """R-7."""
    path = "/alice/private/based"
    await server.alice.put(path, "@base <http://example.org>. <#hello> <#p> <x>.", TURTLE)
    for asked in (JSON_LD, N_TRIPLES, TURTLE):
        answer = await server.alice.get(path, accept=asked)
        (triple,) = said(answer, url(path))
        assert [str(term) for term in triple] == [
            "http://example.org#hello", "http://example.org#p", "http://example.org/x"
        ]  # fmt: skip


# --- named graphs -----------------------------------------------------------------------------

NAMED = (
    '[{"@id": "#g", "@graph": [{"@id": "#a", "http://example.org/p": "named"}]},'
    ' {"@id": "#a", "http://example.org/p": "default"}]'
)


async def test_named_graphs_survive_where_the_format_has_them(server: Server) -> None:
    """R-9."""
    path = "/alice/private/quads"
    expected = graphs(NAMED, JSON_LD, url(path))
    assert set(expected) == {None, url(f"{path}#g")}
    await server.alice.put(path, NAMED, JSON_LD)
    for asked in (JSON_LD, TRIG, N_QUADS):
        answer = await server.alice.get(path, accept=asked)
        assert graphs(answer.body, asked, url(path)) == expected
        await server.alice.put(f"{path}-{FORMATS[asked]}", answer.body, asked)
        again = await server.alice.get(f"{path}-{FORMATS[asked]}", accept=JSON_LD)
        # The names are absolute but in JSON-LD as it was sent.
        where = url(f"{path}-{FORMATS[asked]}" if asked == JSON_LD else path)
        assert graphs(again.body, JSON_LD, where) == graphs(answer.body, asked, where)


@pytest.mark.parametrize("asked", [TURTLE, N_TRIPLES, N3, RDF_XML])
async def test_formats_without_named_graphs_have_the_default_graph_only(
    server: Server, asked: str
) -> None:
    """R-10."""
    await server.alice.put("/alice/private/quads", NAMED, JSON_LD)
    answer = await server.alice.get("/alice/private/quads", accept=asked)
    assert answer.status == 200
    assert objects(said(answer, url("/alice/private/quads"))) == {"default"}


# --- what is refused --------------------------------------------------------------------------

BROKEN = [
    (TURTLE, "<#a> <#b> <#c>.\n<#d> <#e> .\n", "line 2"),
    (TURTLE, "<#a> <#b> <#c>.\n\n<#d> nope:x 1.", "line 3"),
    (TURTLE, "<#a> <#b> 'unclosed", "line 1"),
    (TURTLE, b"<#a> <#b> '\xff'.", "line 1"),
    (N_TRIPLES, "<#a> <#b> <#c>.", "line 1"),
    (N_TRIPLES, "<http://e/a> <http://e/b> <http://e/c> .\n<http://e/a> 1 2 .\n", "line 2"),
    (N3, "{ <#a> <#b> <#c> } <#says> <#d>.", "formulas"),
    (JSON_LD, '{"@id": "#a",\n "p": }', "line 2"),
    (JSON_LD, '{"@id": 5}', "ld+json"),
    (JSON_LD, '{"@context": {"p": 5}, "@id": "#a", "p": 1}', "ld+json"),
    (RDF_XML, "<r:RDF xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>\n<x>", "line 2"),
]


@pytest.mark.parametrize(("sent", "content", "named"), BROKEN)
async def test_bad_rdf_is_400_with_its_reason_and_nothing_is_stored(
    server: Server, sent: str, content: str | bytes, named: str
) -> None:
    """R-12."""
    path = "/alice/private/bad"
    put = await server.alice.put(path, content, sent)
    posted = await server.alice.post("/alice/private/", content, sent, slug="bad")
    for answer in (put, posted):
        assert answer.status == 400
        assert answer.json()["error"] == "Bad Request"
        assert named in answer.json()["message"]
    assert (await server.alice.get(path)).status == 404
    assert "contains" not in (await server.alice.get("/alice/private/")).text
    assert (await server.alice.put(path, "<#a> <#b> 'good'.", TURTLE)).status == 201
    assert (await server.alice.put(path, content, sent)).status == 400
    assert "good" in (await server.alice.get(path)).text


@pytest.mark.parametrize("path", ["c/", "c/.meta", "c/doc.acl", "c/doc.meta"])
async def test_bad_rdf_changes_no_container_acl_or_description(server: Server, path: str) -> None:
    """R-12, W-6."""
    await server.alice.put("/alice/private/c/doc", "x", "text/plain")
    before = await server.alice.get(f"/alice/private/{path}")
    for body, content_type, status in (
        ("<> <#a", TURTLE, 400),
        ("{", JSON_LD, 400),
        ("<> <#a> 1.", "text/plain", 415),
        ("{}", "application/json", 415),
    ):
        answer = await server.alice.put(f"/alice/private/{path}", body, content_type)
        assert answer.status == status
    after = await server.alice.get(f"/alice/private/{path}")
    assert (after.status, after.body, after.header("etag")) == (
        before.status, before.body, before.header("etag"),
    )  # fmt: skip


@pytest.mark.parametrize("content", ["<#a> <#b> <#c>", "<#a> <#b> 1", "<#a> <#b> <#c> # ends\n"])
async def test_turtle_that_only_lacks_its_last_dot_may_be_posted_but_not_put(
    server: Server, content: str
) -> None:
    """R-12."""
    assert (await server.alice.put("/alice/private/dotless", content, TURTLE)).status == 400
    for content_type in (TURTLE, f"{TURTLE}; charset=UTF-8"):
        posted = await server.alice.post("/alice/private/", content, content_type)
        assert posted.status == 201
        path = (posted.header("location") or "").removeprefix(BASE)
        read = await server.alice.get(path)
        assert read.body.startswith(content.encode())
        assert len(said(read, url(path))) == 1
        assert read.header("etag") == posted.header("etag")


async def test_a_long_text_is_mended_while_others_are_answered(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-12: it is read a second time, for which nobody else waits either."""
    threads: list[threading.Thread] = []

    def noting(sent: bytes) -> bytes | None:
        threads.append(threading.current_thread())
        return repair_missing_final_dot(sent)

    monkeypatch.setattr(content, "repair_missing_final_dot", noting)
    text = "<#a> <#b> <#c>.\n" * 8192 + "<#a> <#b> <#d>"
    assert (await server.alice.post("/alice/private/", text, TURTLE)).status == 201
    assert len(threads) == 1
    assert threads[0] is not threading.current_thread()


@pytest.mark.parametrize(
    ("content_type", "content"),
    [
        (TURTLE, "<#a> <#b>"),
        (TURTLE, "<#a> <#b> <#c> <#d>"),
        (TURTLE, "<#a> <#b> [ <#c> 1"),
        (N_TRIPLES, "<http://e/a> <http://e/b> <http://e/c>"),
        (TRIG, "{ <#a> <#b> <#c>. } <#g>"),
    ],
)
async def test_no_other_defect_is_tolerated(
    server: Server, content_type: str, content: str
) -> None:
    """R-12."""
    answer = await server.alice.post("/alice/private/", content, content_type)
    assert answer.status == 400
    assert "contains" not in (await server.alice.get("/alice/private/")).text


# --- what clients need ------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [TURTLE, JSON_LD, N_TRIPLES])
async def test_an_acl_as_turtle_spells_the_agents_out(server: Server, sent: str) -> None:
    """R-14: some clients look for the WebID as a string."""
    path = "/alice/private/doc"
    await server.alice.put(path, "x", "text/plain")
    rule = (f"acl:agent <{server.bob_web_id}>", "Read")
    rules = triples(acl_turtle(path, rule), TURTLE, url(f"{path}.acl"))
    await server.alice.put(f"{path}.acl", written(rules, sent), sent)
    text = (await server.alice.get(f"{path}.acl", accept=TURTLE)).text
    assert f"<{server.bob_web_id}>" in text


@pytest.mark.parametrize(
    "content_type",
    ["text/html", "image/svg+xml", "application/xhtml+xml", "application/xml", TURTLE],
)
async def test_stored_content_cannot_act_for_this_origin(server: Server, content_type: str) -> None:
    """R-15, A-61."""
    await server.alice.put("/alice/private/page", "<#a> <#b> 1.", content_type)
    for answer in (
        await server.alice.get("/alice/private/page"),
        await server.alice.head("/alice/private/page"),
        await server.alice.get("/alice/private/page", range="bytes=0-0"),
    ):
        policy = answer.header("content-security-policy") or ""
        assert re.match(r"sandbox(?:;| |$)", policy)
        assert "allow-same-origin" not in policy
        assert answer.header("x-content-type-options") == "nosniff"


async def test_every_answer_with_content_says_its_type(server: Server) -> None:
    """P-5, R-16."""
    await server.alice.put("/alice/private/d.ttl", "<#a> <#b> <#c>.", TURTLE)
    for path in ("/alice/private/d.ttl", "/alice/private/", "/alice/", "/alice/.acl"):
        assert (await server.alice.get(path)).header("content-type") == TURTLE
    for path in ("/alice/private/no", "/idp/", "/alice/%zz"):
        assert (await server.alice.get(path)).header("content-type") == "application/json"
