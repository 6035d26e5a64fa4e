"""SPARQL queries over the documents of a container that the asker may read."""

from __future__ import annotations

import csv
import io
from urllib.parse import urlencode

import pytest
import rdflib

from tests.support.application import BASE, Server
from tests.support.asgi import Answer, Client
from tests.support.rdf import FORMATS, TURTLE, said

QUERY = "application/sparql-query"
FORM = "application/x-www-form-urlencoded"
ROOT = "/alice/c/"
SERVICE = f"/.sparql/query{ROOT}"
ALL = "SELECT ?s ?o { ?s <http://example.org/p> ?o }"
GRAPHS = "SELECT ?g ?o { GRAPH ?g { ?s <http://example.org/p> ?o } }"
READ = ("acl:agentClass foaf:Agent", "Read")


def document(*values: str) -> str:
    objects = ", ".join(f'"{each}"' for each in values)
    return f"<#it> <http://example.org/p> {objects} ."


async def put(server: Server, path: str, *values: str) -> None:
    answer = await server.alice.put(path, document(*values), TURTLE)
    assert answer.status in {201, 204, 205}, answer.text


async def query(
    client: Client, text: str = ALL, path: str = ROOT, accept: str = "text/csv"
) -> Answer:
    headers = {"Content-Type": QUERY, "Accept": accept}
    return await client.request("QUERY", path, headers=headers, body=text.encode())


def rows(answer: Answer) -> list[tuple[str, ...]]:
    assert answer.status == 200, answer.text
    found = [tuple(row) for row in csv.reader(answer.text.splitlines())][1:]
    return sorted(found)


async def values(client: Client, text: str = ALL, path: str = ROOT) -> list[str]:
    return sorted(row[-1] for row in rows(await query(client, text, path)))


@pytest.fixture
async def pod(server: Server) -> Server:
    await put(server, f"{ROOT}a.ttl", "1")
    await put(server, f"{ROOT}d/b.ttl", "2", "3")
    await put(server, "/alice/other.ttl", "9")
    await server.alice.put(f"{ROOT}text.txt", document("8"), "text/plain")
    return server


async def test_each_document_is_a_named_graph_and_the_default_graph_has_all(pod: Server) -> None:
    assert await values(pod.alice) == ["1", "2", "3"]
    assert rows(await query(pod.alice, GRAPHS)) == [
        (f"{BASE}{ROOT}a.ttl", "1"),
        (f"{BASE}{ROOT}d/b.ttl", "2"),
        (f"{BASE}{ROOT}d/b.ttl", "3"),
    ]
    assert await values(pod.alice, path=f"{ROOT}d/") == ["2", "3"]
    assert await values(pod.alice, path="/alice/") == ["1", "2", "3", "9"]


async def test_the_next_answer_follows_what_was_written(pod: Server) -> None:
    await put(pod, f"{ROOT}e.ttl", "1", "4")
    assert await values(pod.alice) == ["1", "1", "2", "3", "4"]
    await put(pod, f"{ROOT}d/b.ttl", "5")
    assert (await pod.alice.request("DELETE", f"{ROOT}e.ttl")).status == 204
    assert await values(pod.alice) == ["1", "5"]
    headers = {"Destination": f"{BASE}{ROOT}f/"}
    assert (await pod.alice.request("MOVE", f"{ROOT}d/", headers=headers)).status == 201
    assert await values(pod.alice, GRAPHS) == ["1", "5"]
    assert f"{BASE}{ROOT}f/b.ttl" in (await query(pod.alice, GRAPHS)).text


async def test_rules_decide_at_the_moment_of_the_question(pod: Server) -> None:
    assert (await query(pod.public)).status == 401
    assert (await query(pod.bob)).status == 403
    await pod.put_acl(ROOT, READ)
    assert await values(pod.public) == []
    await pod.put_acl(f"{ROOT}d/b.ttl", READ)
    for client in (pod.public, pod.bob):
        assert await values(client) == ["2", "3"]
    await pod.put_acl(f"{ROOT}d/b.ttl", (f"acl:agent <{pod.bob_web_id}>", "Read"))
    assert await values(pod.public) == []
    assert await values(pod.bob) == ["2", "3"]
    assert await values(pod.alice) == ["1", "2", "3"]


async def test_nobody_learns_what_they_may_not_read(pod: Server) -> None:
    """Neither by counting, nor by naming graphs, nor by what a refusal says."""
    await pod.put_acl(ROOT, READ)
    await pod.put_acl(f"{ROOT}a.ttl", READ)
    secret, missing = f"{BASE}{ROOT}d/b.ttl", f"{BASE}{ROOT}d/missing"
    template = (
        "SELECT (COUNT(*) AS ?n) FROM <x> FROM NAMED <x> { { ?s ?p ?o } UNION { GRAPH ?g {} } }"
    )
    told = []
    for name in (secret, missing):
        answer = await query(pod.public, template.replace("<x>", f"<{name}>"))
        asked = urlencode({"query": ALL, "default-graph-uri": name})
        by_get = await pod.public.get(f"{SERVICE}?{asked}", accept="text/csv")
        described = await query(pod.public, f"DESCRIBE <{name}>", accept="text/turtle")
        exists = await query(pod.public, f"ASK {{ GRAPH <{name}> {{ ?s ?p ?o }} }}")
        answers = (answer, by_get, described, exists)
        told.append([(each.status, each.body, sorted(dict(each.headers))) for each in answers])
    assert told[0] == told[1]
    graphs = "SELECT DISTINCT ?g { GRAPH ?g {} }"
    assert rows(await query(pod.public, graphs)) == [(f"{BASE}{ROOT}a.ttl",)]
    assert await values(pod.public, "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }") == ["1"]
    before = await query(pod.public)
    for number in range(3):  # the view of the public is not touched by what it may not read
        await put(pod, f"{ROOT}d/new{number}", "5")
    assert (await query(pod.public)).body == before.body


async def test_statements_of_containers_and_descriptions_belong_to_it(pod: Server) -> None:
    assert (await pod.alice.put(f"{ROOT}d/", document("c"), TURTLE)).status == 204
    assert (await pod.alice.put(f"{ROOT}text.txt.meta", document("m"), TURTLE)).status == 201
    found = rows(await query(pod.alice, GRAPHS))
    assert (f"{BASE}{ROOT}d/", "c") in found
    assert (f"{BASE}{ROOT}text.txt.meta", "m") in found


async def test_the_protocol_has_three_ways_to_ask(pod: Server) -> None:
    asked = urlencode({"query": ALL})
    headers = {"Accept": "text/csv"}
    answers = [
        await pod.alice.request("GET", f"{SERVICE}?{asked}", headers=headers),
        await pod.alice.request(
            "POST", SERVICE, headers={**headers, "Content-Type": FORM}, body=asked.encode()
        ),
        await pod.alice.request(
            "POST", SERVICE, headers={**headers, "Content-Type": QUERY}, body=ALL.encode()
        ),
    ]
    for answer in answers:
        assert [row[-1] for row in rows(answer)] == ["1", "2", "3"]
    for method in ("GET", "POST"):
        assert (await pod.public.request(method, f"{SERVICE}?{asked}")).status == 401
    head = await pod.alice.request("HEAD", f"{SERVICE}?{asked}", headers=headers)
    assert (head.status, head.body) == (200, b"")


async def test_the_dataset_can_be_restricted(pod: Server) -> None:
    a, b, c = f"{BASE}{ROOT}a.ttl", f"{BASE}{ROOT}d/b.ttl", f"{BASE}/bob/secret"
    await put(pod, f"{ROOT}same.ttl", "1")
    both = "SELECT ?g ?o { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }"

    async def ask(text: str, **more: list[str]) -> list[tuple[str, ...]]:
        asked = urlencode({"query": text, **more}, doseq=True)
        target = f"{SERVICE}?{asked}"
        return rows(await pod.alice.request("GET", target, headers={"Accept": "text/csv"}))

    chosen = {"default-graph-uri": [a, c], "named-graph-uri": [b]}
    expected = [("", "1"), (b, "2"), (b, "3")]
    assert await ask(both, **chosen) == expected
    clauses = f"FROM <{a}> FROM <{c}> FROM NAMED <d/b.ttl>"
    assert await ask(both.replace("{ {", f"{clauses} {{ {{")) == expected
    assert await ask(both.replace("{ {", "FROM <x> { {"), **chosen) == expected
    assert await ask(both, **{"named-graph-uri": [b]}) == expected[1:]
    assert await ask(both, **{"default-graph-uri": [b]}) == [("", "2"), ("", "3")]


RESULTS = {
    "application/sparql-results+json": "json",
    "application/sparql-results+xml": "xml",
    "text/csv": "csv",
}


@pytest.mark.parametrize("media_type", [*RESULTS, "text/tab-separated-values"])
async def test_selections_have_four_formats(pod: Server, media_type: str) -> None:
    answer = await query(pod.alice, accept=media_type)
    assert (answer.header("content-type") or "").partition(";")[0] == media_type
    if media_type in RESULTS:
        parsed = rdflib.query.Result.parse(
            source=io.BytesIO(answer.body), format=RESULTS[media_type]
        )  # rdflib's of TSV is another dialect
        assert sorted(str(each[rdflib.Variable("o")]) for each in parsed.bindings) == [
            "1",
            "2",
            "3",
        ]
    else:
        assert answer.text.splitlines()[0] == "?s\t?o"
    ask = await query(pod.alice, "ASK { ?s ?p '1' }", accept=media_type)
    assert "true" in ask.text


@pytest.mark.parametrize("media_type", FORMATS)
async def test_constructions_have_every_format(pod: Server, media_type: str) -> None:
    asked = "CONSTRUCT { ?s <http://example.org/q> ?o } { ?s <http://example.org/p> ?o }"
    answer = await query(pod.alice, asked, accept=media_type)
    assert (answer.header("content-type") or "").partition(";")[0] == media_type
    assert sorted(str(o) for _, _, o in said(answer, f"{BASE}{ROOT}")) == ["1", "2", "3"]
    assert "sandbox" in (answer.header("content-security-policy") or "")


@pytest.mark.parametrize("accept", ["text/turtle", "application/ld+json"])
async def test_the_description_of_a_storage_has_the_service(pod: Server, accept: str) -> None:
    url = f"{BASE}/alice/.well-known/solid"
    found = said(await pod.public.get("/alice/.well-known/solid", accept=accept), url)
    endpoint = rdflib.URIRef("http://rdfs.org/ns/void#sparqlEndpoint")
    service = rdflib.URIRef(f"{BASE}/.sparql/query/alice/")
    assert (rdflib.URIRef(f"{BASE}/alice/"), endpoint, service) in found


async def test_the_service_describes_itself(pod: Server) -> None:
    answer = await pod.alice.get(SERVICE)
    graph = rdflib.Graph().parse(data=answer.text, format="turtle", publicID=BASE + SERVICE)
    described = set(graph.objects(rdflib.URIRef(BASE + SERVICE)))
    sd = rdflib.Namespace("http://www.w3.org/ns/sparql-service-description#")
    assert {sd.Service, sd.SPARQL11Query, sd.UnionDefaultGraph} <= described
    assert rdflib.URIRef("http://www.w3.org/ns/formats/SPARQL_Results_JSON") in described
    assert (await pod.public.get(SERVICE)).status == 401
    for path in ("/.sparql/query/alice/c", "/.sparql/query/", "/.sparql/query/.pods/"):
        assert (await pod.alice.get(path)).status == 404


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("SELECT * {", 400, "1:11"),
        ("INSERT DATA { <a> <b> <c> }", 400, "SELECT"),
        ("LOAD <http://example.org/>", 400, "SELECT"),
        ("SELECT * { SERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }", 422, "SERVICE is off"),
        ("SELECT * { ?s ?p ?o.service silent?s { ?s ?p ?o } }", 422, "SERVICE is off"),
        ("SELECT * " + "{" * 70 + "}" * 70, 400, "64 deep"),
        ("ASK {}" + " " * 70_000, 400, "characters"),
        ("ASK { BIND(<http://example.org/f>(1) AS ?x) }", 422, ""),
    ],
)
async def test_what_cannot_be_answered_is_said(
    pod: Server, text: str, status: int, said: str
) -> None:
    answer = await query(pod.alice, text)
    assert (answer.status, said in answer.text) == (status, True), answer.text
    assert await values(pod.alice) == ["1", "2", "3"]


async def test_types_and_parameters_are_checked(pod: Server) -> None:
    assert (await query(pod.alice, accept="image/png")).status == 406
    assert (await query(pod.alice, "ASK {}", accept="text/turtle")).status == 406
    asked = urlencode({"query": ALL, "default-graph-uri": "a.ttl"})
    assert (await pod.alice.get(f"{SERVICE}?{asked}")).status == 400
    for content_type, status in ((FORM, 400), ("text/plain", 415)):
        answer = await pod.alice.post(SERVICE, "update=LOAD", content_type)
        assert answer.status == status
