"""Comunica for Solid: SPARQL queries over documents and containers, and updates of them.

An update is evaluated by the client. What changes is sent as PATCH with SPARQL Update where the
document is there and ``Accept-Patch`` names it, and as PUT where the document is missing and
``Allow`` names PUT; so a 404 has to say both.
"""

from __future__ import annotations

import pytest
from rdflib import Literal, URIRef
from rdflib.namespace import FOAF, RDFS, Namespace

from tests.clients.client_home import Home, StartClient
from tests.support.client_process import Agent, ClientFailed, ClientProcess, Report
from tests.support.rdf import JSON_LD, N_TRIPLES, TURTLE, Triples, triples

LDP = Namespace("http://www.w3.org/ns/ldp#")
PREFIXES = """\
PREFIX foaf: <http://xmlns.com/foaf/0.1/>
PREFIX ldp: <http://www.w3.org/ns/ldp#>
PREFIX pim: <http://www.w3.org/ns/pim/space#>
PREFIX stat: <http://www.w3.org/ns/posix/stat#>
"""
PEOPLE = """\
@prefix foaf: <http://xmlns.com/foaf/0.1/>.

<#alice> foaf:name "Alice"; foaf:age 41; foaf:knows <#bob>.
<#bob> foaf:name "Bob"@en; foaf:age 39.
"""
IN_JSON_LD = f'{{"@context": {{"@vocab": "{FOAF}"}}, "@id": "#carol", "name": "Carol"}}'


@pytest.fixture(scope="module")
def comunica(start_client: StartClient) -> ClientProcess:
    return start_client("comunica.mjs")


@pytest.fixture
def people(home: Home) -> str:
    """The URL of a document about two people."""
    return home.put("people", PEOPLE)


def _saying(home: Home, name: str, turtle: str) -> Triples:
    return triples(turtle, TURTLE, home.url + name)


# --- queries ----------------------------------------------------------------------------------


def _select(comunica: ClientProcess, home: Home, query: str, *sources: str) -> list[dict[str, str]]:
    report = comunica.run("select", home.agent, query=PREFIXES + query, sources=sources)
    found: list[dict[str, str]] = report.value
    return found


def test_a_private_document_is_queried(comunica: ClientProcess, home: Home, people: str) -> None:
    query = "SELECT ?name ?friend WHERE { ?s foaf:name ?name; foaf:knows ?friend }"
    assert _select(comunica, home, query, people) == [{"name": "Alice", "friend": f"{people}#bob"}]


def test_what_a_query_computes_is_computed(
    comunica: ClientProcess, home: Home, people: str
) -> None:
    query = """SELECT ?name ?older WHERE {
        ?s foaf:name ?name; foaf:age ?age.
        OPTIONAL { ?s foaf:knows ?friend }
        FILTER(!BOUND(?friend)) BIND(?age + 1 AS ?older)
    }"""
    assert _select(comunica, home, query, people) == [{"name": "Bob", "older": "40"}]


def test_documents_in_two_formats_are_queried_together(
    comunica: ClientProcess, home: Home, people: str
) -> None:
    """R-1."""
    carol = home.put("carol.jsonld", IN_JSON_LD, JSON_LD)
    query = "SELECT ?s ?name WHERE { ?s foaf:name ?name } ORDER BY STR(?name)"
    found = _select(comunica, home, query, carol, people)
    assert found == [
        {"s": f"{people}#alice", "name": "Alice"},
        {"s": f"{people}#bob", "name": "Bob"},
        {"s": f"{carol}#carol", "name": "Carol"},
    ]


def test_a_container_is_queried_for_its_members(comunica: ClientProcess, home: Home) -> None:
    """C-23, C-24."""
    home.put("note.txt", "twelve bytes", "text/plain")
    home.put("nested/", "")
    query = f"""SELECT ?member ?size WHERE {{
        <{home.url}> ldp:contains ?member OPTIONAL {{ ?member stat:size ?size }}
    }} ORDER BY ?member"""
    assert _select(comunica, home, query, home.url) == [
        {"member": f"{home.url}nested/"},
        {"member": f"{home.url}note.txt", "size": "12"},
    ]


def test_a_profile_is_queried_by_its_webid(comunica: ClientProcess, home: Home) -> None:
    """A source may have a fragment."""
    web_id = home.pod.web_id
    query = f"SELECT ?storage WHERE {{ <{web_id}> pim:storage ?storage }}"
    found = _select(comunica, home, query, web_id)
    assert found == [{"storage": web_id.removesuffix("#me")}]


@pytest.mark.parametrize(("name", "there"), [("Alice", True), ("Zed", False)])
def test_a_document_is_queried(
    comunica: ClientProcess, home: Home, people: str, name: str, there: bool
) -> None:
    query = f'{PREFIXES} ASK {{ ?s foaf:name "{name}" }}'
    assert comunica.run("ask", home.agent, query=query, sources=[people]).value is there


def test_triples_are_constructed(comunica: ClientProcess, home: Home, people: str) -> None:
    query = f"{PREFIXES} CONSTRUCT {{ ?s foaf:nick ?name }} WHERE {{ ?s foaf:name ?name }}"
    report = comunica.run("construct", home.agent, query=query, sources=[people])
    assert triples(report.value, N_TRIPLES, people) == {
        (URIRef(f"{people}#alice"), FOAF.nick, Literal("Alice")),
        (URIRef(f"{people}#bob"), FOAF.nick, Literal("Bob", lang="en")),
    }


@pytest.mark.parametrize(("who", "status"), [("nobody", 401), ("other", 403), ("owner", 404)])
def test_what_cannot_be_read_fails_the_query_with_the_reason(
    comunica: ClientProcess, home: Home, people: str, other: Agent, who: str, status: int
) -> None:
    """W-30, C-21."""
    agent = {"nobody": None, "other": other, "owner": home.agent}[who]
    source = home.url + "missing" if who == "owner" else people
    with pytest.raises(ClientFailed, match=f"HTTP status {status}"):
        comunica.run("select", agent, query="SELECT * WHERE { ?s ?p ?o }", sources=[source])


def test_a_lenient_query_skips_unreadable_documents(
    comunica: ClientProcess, home: Home, people: str
) -> None:
    query = PREFIXES + "SELECT ?name WHERE { ?s foaf:name ?name } ORDER BY STR(?name)"
    sources = [home.url + "missing", people]
    report = comunica.run("select", home.agent, query=query, sources=sources, lenient=True)
    assert report.value == [{"name": "Alice"}, {"name": "Bob"}]


# --- updates ----------------------------------------------------------------------------------


def _update(comunica: ClientProcess, home: Home, query: str, **given: object) -> Report:
    return comunica.run("update", home.agent, query=PREFIXES + query, **given)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param(
            'INSERT DATA { <URL#carol> foaf:name "Carol" }',
            PEOPLE + '<#carol> foaf:name "Carol".',
            id="insert-data",
        ),
        pytest.param(
            "DELETE DATA { <URL#alice> foaf:knows <URL#bob>. <URL#bob> foaf:age 39 }",
            PEOPLE.replace("; foaf:knows <#bob>", "").replace("; foaf:age 39", ""),
            id="delete-data",
        ),
        pytest.param(
            "DELETE WHERE { ?s foaf:age ?age }",
            PEOPLE.replace("foaf:age 41; ", "").replace("; foaf:age 39", ""),
            id="delete-where",
        ),
        pytest.param(
            """DELETE { ?s foaf:age ?age } INSERT { ?s foaf:age ?older }
            WHERE { ?s foaf:age ?age FILTER(?age > 40) BIND(?age + 1 AS ?older) }""",
            PEOPLE.replace("41", "42"),
            id="delete-insert-where",
        ),
        pytest.param(
            "INSERT { ?s foaf:made [ foaf:name ?name ] } WHERE { ?s foaf:name ?name; foaf:age 39 }",
            PEOPLE + '<#bob> foaf:made [ foaf:name "Bob"@en ].',
            id="blank-nodes",
        ),
        pytest.param(
            'DELETE DATA { <URL#alice> foaf:age 41 } ; INSERT DATA { <URL#alice> foaf:age "old" }',
            PEOPLE.replace("41", '"old"'),
            id="two-operations",
        ),
        pytest.param(
            "DELETE WHERE { ?s foaf:nick ?nick }",
            PEOPLE,
            id="nothing-matches",
        ),
    ],
)
def test_a_document_is_updated_by_a_patch(
    comunica: ClientProcess, home: Home, people: str, query: str, expected: str
) -> None:
    """X-33: ``DELETE DATA`` and ``INSERT DATA``, streamed without a Content-Length."""
    report = _update(comunica, home, query.replace("URL", people), sources=[people])
    assert report.sent("PUT") == []
    for patch in report.sent("PATCH"):
        assert (patch.status, patch.headers["content-type"]) == (204, "application/sparql-update")
    assert home.triples("people") == _saying(home, "people", expected)


def test_literals_of_all_kinds_are_stored_as_they_are(
    comunica: ClientProcess, home: Home, people: str
) -> None:
    turtle = r"""
        "quote \" backslash \\ newline \n tab \t é 🦆", "Grüezi"@de-ch, "", 1.5, 1e3, true,
        "2026-02-28"^^<http://www.w3.org/2001/XMLSchema#date>, <https://example.org/ü?q=1#f>
    """
    query = f"INSERT DATA {{ <{people}#a> foaf:made {turtle} }}"
    _update(comunica, home, query, sources=[people])
    expected = f"{PEOPLE} <#a> foaf:made {turtle} ."
    assert home.triples("people") == _saying(home, "people", expected)


def test_what_was_updated_is_seen_by_the_next_query(
    comunica: ClientProcess, home: Home, people: str
) -> None:
    """Although the engine keeps documents that it has read."""
    arguments = {
        "update": PREFIXES + f'INSERT DATA {{ <{people}#carol> foaf:name "Carol" }}',
        "query": PREFIXES + "SELECT ?name WHERE { ?s foaf:name ?name } ORDER BY STR(?name)",
        "sources": [people],
    }
    report = comunica.run("updateAndSelect", home.agent, **arguments)
    assert [each["name"] for each in report.value["before"]] == ["Alice", "Bob"]
    assert [each["name"] for each in report.value["after"]] == ["Alice", "Bob", "Carol"]


def test_a_document_in_json_ld_is_updated_and_stays_json_ld(
    comunica: ClientProcess, home: Home
) -> None:
    """X-37."""
    carol = home.put("carol.jsonld", IN_JSON_LD, JSON_LD)
    query = f"INSERT DATA {{ <{carol}#carol> foaf:age 7 }}"
    _update(comunica, home, query, sources=[carol])
    stored = home.get("carol.jsonld")
    assert stored.headers["content-type"].startswith(JSON_LD)
    assert triples(stored.body, JSON_LD, carol) == {
        (URIRef(f"{carol}#carol"), FOAF.name, Literal("Carol")),
        (URIRef(f"{carol}#carol"), FOAF.age, Literal(7)),
    }


def test_a_missing_document_is_made_by_a_put(comunica: ClientProcess, home: Home) -> None:
    """P-11, C-2: the 404 says that PUT makes it; containers on the way are made as well."""
    url = home.url + "new/things"
    query = f'INSERT DATA {{ <{url}#a> foaf:name "A"; foaf:knows [ foaf:name "B" ] }}'
    report = _update(comunica, home, query, sources=[url])
    assert report.sent("PATCH") == []
    assert [put.status for put in report.sent("PUT")] == [201]
    expected = f'<#a> <{FOAF.name}> "A"; <{FOAF.knows}> [ <{FOAF.name}> "B" ].'
    assert home.triples("new/things") == _saying(home, "new/things", expected)


def test_a_missing_document_is_made_by_a_patch_if_the_application_wants(
    comunica: ClientProcess, home: Home
) -> None:
    """X-30, X-37."""
    url = home.url + "new"
    destination = {"type": "patchSparqlUpdate", "value": url}
    query = f'INSERT DATA {{ <{url}#a> foaf:name "A" }}'
    report = _update(comunica, home, query, sources=[url], destination=destination)
    assert [patch.status for patch in report.sent("PATCH")] == [201]
    assert home.get("new").headers["content-type"].startswith(TURTLE)
    assert home.triples("new") == _saying(home, "new", f'<#a> <{FOAF.name}> "A".')


def test_what_is_found_in_one_document_is_written_to_another(
    comunica: ClientProcess, home: Home, people: str
) -> None:
    query = "INSERT { ?s foaf:nick ?name } WHERE { ?s foaf:name ?name }"
    _update(comunica, home, query, sources=[people], destination=home.url + "nicks")
    assert home.triples("nicks") == {
        (URIRef(f"{people}#alice"), FOAF.nick, Literal("Alice")),
        (URIRef(f"{people}#bob"), FOAF.nick, Literal("Bob", lang="en")),
    }
    assert home.triples("people") == _saying(home, "people", PEOPLE)


def test_a_container_is_described_and_its_members_stay(comunica: ClientProcess, home: Home) -> None:
    """C-13."""
    member = home.put("note.txt", "text", "text/plain")
    container = URIRef(home.url)
    query = f'INSERT DATA {{ <{home.url}> <{RDFS.label}> "Notes" }}'
    report = _update(comunica, home, query, sources=[home.url])
    assert [patch.status for patch in report.sent("PATCH")] == [204]
    said = home.triples()
    assert (container, RDFS.label, Literal("Notes")) in said
    assert (container, LDP.contains, URIRef(member)) in said


def test_an_update_that_would_unlist_a_member_is_refused(
    comunica: ClientProcess, home: Home
) -> None:
    """C-13: 409 for containment, and nothing changes."""
    member = home.put("note.txt", "text", "text/plain")
    query = f"DELETE DATA {{ <{home.url}> ldp:contains <{member}> }}"
    with pytest.raises(ClientFailed, match="409"):
        _update(comunica, home, query, sources=[home.url])
    assert home.members() == {"note.txt"}


def test_agents_with_read_only_change_nothing(
    comunica: ClientProcess, home: Home, people: str, other: Agent
) -> None:
    """X-20, X-21: 403 to the PATCH."""
    acl = f"""@prefix acl: <http://www.w3.org/ns/auth/acl#>.
        [] a acl:Authorization; acl:agent <{home.pod.web_id}>;
            acl:mode acl:Read, acl:Write, acl:Control; acl:accessTo <people>.
        [] a acl:Authorization; acl:agent <{other.web_id}>;
            acl:mode acl:Read; acl:accessTo <people>.
    """
    home.put("people.acl", acl)
    query = f'{PREFIXES} INSERT DATA {{ <{people}#eve> foaf:name "Eve" }}'
    with pytest.raises(ClientFailed, match="403"):
        comunica.run("update", other, query=query, sources=[people])
    assert home.triples("people") == _saying(home, "people", PEOPLE)


def test_agents_without_read_access_do_not_learn_how_to_write(
    comunica: ClientProcess, home: Home, other: Agent
) -> None:
    """C-21: a refusal of a missing document does not say what a 404 says."""
    url = home.url + "missing"
    with pytest.raises(ClientFailed) as failed:
        comunica.run("update", other, query="INSERT DATA { <a:a> <a:b> 1 }", sources=[url])
    assert {(sent.method, sent.status) for sent in failed.value.requests} == {("GET", 403)}
    assert home.members() == set()
