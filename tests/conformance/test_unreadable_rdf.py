"""RDF that cannot be read: what is stored, what refused, what never fetched (R-11, R-12)."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.agents import LDP, N3_PATCH, SPARQL_UPDATE, Agent, create_agent
from tests.conformance.conformance_places import OPTIONS
from tests.conformance.rdf_samples import PATCHES
from tests.support.http_servers import Handler, serving
from tests.support.rdf import FORMATS, JSON_LD, N_QUADS, N_TRIPLES, RDF_XML, TRIG, TURTLE
from tests.support.server import ServerProcess, running_server

CONTEXT = json.dumps({"@context": {"name": "http://xmlns.com/foaf/0.1/name"}}).encode()


class ContextServer:
    """A foreign server with one context, which tells who came for it."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.origin = ""

    @contextlib.contextmanager
    def running(self) -> Iterator[ContextServer]:
        outer = self

        class Answering(Handler):
            def respond(self) -> None:
                outer.requests.append(self.path)
                status = 200 if self.path == "/names" else 404
                self.answer(status, CONTEXT, {"Content-Type": JSON_LD})

        with serving(Answering) as port:
            self.origin = f"http://127.0.0.1:{port}"
            yield self


@pytest.fixture
def foreign() -> Iterator[ContextServer]:
    with ContextServer().running() as server:
        yield server


def document(context: str) -> str:
    """JSON-LD that says a name, if one knows its context."""
    return json.dumps({"@context": context, "@id": "#me", "name": "Alice"}, indent=3)


# --- contexts of others ---------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_r_11_a_document_with_an_unknown_context_is_stored_as_sent(
    alice: Agent, container: str, foreign: ContextServer, method: str
) -> None:
    content = document(f"{foreign.origin}/names")
    target = container + ("doc" if method == "PUT" else "")
    made = alice.request(method, target, content, {"Content-Type": JSON_LD})
    assert made.status == 201
    for headers in ({}, {"Accept": JSON_LD}, {"Accept": f"{TURTLE};q=0.5, {JSON_LD}"}):
        read = alice.get(made.location, headers=headers)
        assert (read.status, read.media_type, read.text) == (200, JSON_LD, content)
    assert alice.put(made.location, content + "\n", JSON_LD).status == 204
    assert foreign.requests == []


@pytest.mark.parametrize("accept", [each for each in FORMATS if each != JSON_LD])
def test_r_11_conversion_with_an_unknown_context_is_406_and_names_it(
    alice: Agent, container: str, foreign: ContextServer, accept: str
) -> None:
    context = f"{foreign.origin}/names"
    target = alice.create(f"{container}doc", document(context), JSON_LD)
    refused = alice.get(target, headers={"Accept": accept})
    assert refused.status == 406
    assert context in refused.text
    assert foreign.requests == []


@pytest.mark.parametrize("content_type", [SPARQL_UPDATE, N3_PATCH])
def test_r_11_patch_with_an_unknown_context_is_409_and_names_it(
    alice: Agent, container: str, foreign: ContextServer, content_type: str
) -> None:
    context = f"{foreign.origin}/names"
    target = alice.create(f"{container}doc", document(context), JSON_LD)
    refused = alice.patch(target, PATCHES[content_type], content_type)
    assert refused.status == 409
    assert context in refused.text
    assert alice.get(target).text == document(context)
    assert foreign.requests == []


@pytest.mark.parametrize("name", [".acl", "doc.acl", "", ".meta", "new/"])
def test_r_11_what_must_be_understood_with_an_unknown_context_is_400_and_names_it(
    alice: Agent, container: str, foreign: ContextServer, name: str
) -> None:
    alice.create(f"{container}doc")
    context = f"{foreign.origin}/names"
    before = alice.get(container + name)
    refused = alice.put(container + name, document(context), JSON_LD)
    assert refused.status == 400
    assert context in refused.text
    after = alice.get(container + name)
    assert (after.status, after.body) == (before.status, before.body)
    assert foreign.requests == []


@pytest.mark.parametrize(
    ("context", "term", "expected"),
    [
        ("https://www.w3.org/ns/activitystreams", "content", "https://www.w3.org/ns/activitystreams#content"),
        ("https://www.w3.org/ns/solid/notification/v1", "topic", "http://www.w3.org/ns/solid/notifications#topic"),
        ("https://w3id.org/security/v2", "owner", "https://w3id.org/security#owner"),
        ("https://schema.org", "name", "http://schema.org/name"),
        ("https://schema.org/", "name", "http://schema.org/name"),
    ],
)  # fmt: skip
def test_r_11_common_contexts_come_with_the_server(
    alice: Agent, container: str, context: str, term: str, expected: str
) -> None:
    body = json.dumps({"@context": context, "@id": "http://example.org/x", term: "urn:x:y"})
    target = alice.create(f"{container}doc", body, JSON_LD)
    assert {str(p) for _, p, _ in alice.read(target, TURTLE).triples} == {expected}


def test_r_11_only_origins_that_the_operator_listed_get_requests(
    tmp_path: Path, foreign: ContextServer
) -> None:
    options = (*OPTIONS, "--context-origin", foreign.origin)
    with (
        ContextServer().running() as other,
        running_server(ServerProcess(root=tmp_path / "root", options=options)) as server,
    ):
        alice = create_agent(server)
        known = alice.create(f"{alice.pod}known", document(f"{foreign.origin}/names"), JSON_LD)
        ((_, predicate, name),) = alice.read(known, TURTLE).triples
        assert (str(predicate), str(name)) == ("http://xmlns.com/foaf/0.1/name", "Alice")
        assert set(foreign.requests) == {"/names"}
        missing = document(f"{foreign.origin}/missing")
        elsewhere = document(f"{other.origin}/names")
        for number, content in enumerate((missing, elsewhere)):
            target = alice.create(f"{alice.pod}unknown{number}", content, JSON_LD)
            assert alice.get(target, headers={"Accept": TURTLE}).status == 406
        assert other.requests == []


# --- bad syntax -----------------------------------------------------------------------------------

MALFORMED = [
    (TURTLE, "<#a> <#b> <#c"),
    (TURTLE, "<#a> <#b> ."),
    (TURTLE, "ex:a ex:b ex:c ."),
    (TURTLE, "not RDF at all"),
    (TURTLE, b'<#a> <#b> "\xff" .'),
    (JSON_LD, '{"@id": "#a", '),
    (JSON_LD, '{"@id": 5}'),
    (JSON_LD, ""),
    (JSON_LD, '"text"'),
    (N_TRIPLES, "<a> <b> <c> ."),
    (N_QUADS, "<http://e/a> <http://e/b> <http://e/c> <http://e/d> <http://e/f> ."),
    (TRIG, "{ <#a> <#b> <#c> "),
    (N3_PATCH, "{ <#a> <#b> <#c> } => { <#a> <#b> <#d> }."),
    (RDF_XML, "<rdf:RDF>"),
]


@pytest.mark.parametrize(("content_type", "content"), MALFORMED)
def test_r_12_malformed_rdf_is_400_and_nothing_is_stored(
    alice: Agent, container: str, content_type: str, content: str | bytes
) -> None:
    target = f"{container}doc"
    assert alice.put(target, content, content_type).status == 400
    assert alice.post(container, content, content_type, {"Slug": "doc"}).status == 400
    assert alice.get(target).status == 404
    assert alice.read(container).members == []
    alice.create(target, "<#a> <#b> 'kept'.")
    assert alice.put(target, content, content_type).status == 400
    assert "kept" in alice.get(target).text


@pytest.mark.parametrize(
    ("content_type", "content"),
    [case for case in MALFORMED if case[1]],  # to a container, sending nothing is no document
)
@pytest.mark.parametrize("name", ["", ".meta", ".acl", "doc.meta"])
def test_r_12_malformed_rdf_changes_nothing_where_rdf_must_be(
    alice: Agent, container: str, content_type: str, content: str | bytes, name: str
) -> None:
    alice.create(f"{container}doc")
    before = alice.get(container + name)
    assert alice.put(container + name, content, content_type).status == 400
    after = alice.get(container + name)
    assert (after.status, after.body) == (before.status, before.body)


@pytest.mark.parametrize(
    "content",
    ["<> a <#test>", "<#a> <#b> <#c>.\n<> <#d> 'e'", "<#a> <#b> 1", "<#a> <#b> <#c> # the end"],
)
@pytest.mark.parametrize("link", ["Resource", "BasicContainer"])
@pytest.mark.parametrize("content_type", [TURTLE, f"{TURTLE}; charset=UTF-8"])
def test_r_12_a_posted_text_may_lack_its_last_dot_and_a_put_one_may_not(
    alice: Agent, container: str, content: str, link: str, content_type: str
) -> None:
    headers = {"Link": f'<{LDP}{link}>; rel="type"', "Slug": "doc"}
    made = alice.post(container, content, content_type, headers)
    assert made.status == 201
    stated = {str(p) for _, p, _ in alice.read(made.location).triples}
    assert any(each.startswith((f"{made.location}#", "http://www.w3.org/1999")) for each in stated)
    assert alice.put(made.location, content, content_type).status == 400
    assert alice.put(f"{container}new", content, content_type).status == 400
