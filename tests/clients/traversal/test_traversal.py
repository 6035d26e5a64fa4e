"""Comunica's link traversal: what it finds over documents, one by one, is what the SPARQL endpoint
of the server answers at once; and the endpoint is a source of Comunica's itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.client_home import Home, StartClient
from tests.support.client_process import Agent, ClientProcess
from tests.support.node import TRAVERSAL, install_packages

pytestmark = pytest.mark.feature("sparql")

PREFIXES = "PREFIX foaf: <http://xmlns.com/foaf/0.1/>\n"
NAMES = "SELECT ?person ?name { ?person foaf:name ?name }"
FRIENDS = """SELECT ?name ?friend {
    ?person foaf:name ?name; foaf:knows ?other. ?other foaf:name ?friend
}"""
Rows = set[frozenset[tuple[str, str]]]


@pytest.fixture(scope="module")
def traversal(start_client: StartClient) -> ClientProcess:
    install_packages(TRAVERSAL)
    return start_client(Path(__file__).with_name("traversal.mjs"))


@pytest.fixture(scope="module")
def asking(start_client: StartClient) -> ClientProcess:
    """Comunica's engine without traversal, which asks endpoints."""
    return start_client("comunica.mjs")


def _person(name: str, knows: str = "") -> str:
    more = f"; foaf:knows <{knows}>" if knows else ""
    return f'@prefix foaf: <http://xmlns.com/foaf/0.1/>. <#it> foaf:name "{name}"{more}.'


@pytest.fixture
def people(home: Home) -> Home:
    """Documents in containers, which know each other."""
    home.put("a", _person("Anna", "deep/er/c#it"))
    home.put("deep/b", _person("Berta", f"{home.url}a#it"))
    home.put("deep/er/c", _person("Clara"))
    home.put("note.txt", "no statements", "text/plain")
    return home


def _endpoint(home: Home) -> str:
    return f"{home.pod.server.base_url}/.sparql/query{home.path}"


def _rows(
    client: ClientProcess, agent: Agent | None, query: str, *sources: str | dict[str, str]
) -> Rows:
    report = client.run("select", agent, query=PREFIXES + query, sources=sources)
    return {frozenset(row.items()) for row in report.value}


def _answered(client: ClientProcess, home: Home, agent: Agent | None, query: str) -> Rows:
    """What the endpoint answers to Comunica."""
    return _rows(client, agent, query, {"type": "sparql", "value": _endpoint(home)})


@pytest.mark.parametrize(("query", "count"), [(NAMES, 3), (FRIENDS, 2)])
def test_what_is_found_from_a_container_is_what_the_endpoint_answers(
    traversal: ClientProcess, asking: ClientProcess, people: Home, query: str, count: int
) -> None:
    found = _rows(traversal, people.agent, query, people.url)
    assert found == _answered(asking, people, people.agent, query)
    assert len(found) == count


def test_both_find_what_the_agent_may_read(
    traversal: ClientProcess, asking: ClientProcess, people: Home, other: Agent
) -> None:
    """And skip the rest: the listing names it, and a request for it is refused."""

    def rule(path: str, agent: str, modes: str) -> str:
        return (
            f"[] a acl:Authorization; acl:agent <{agent}>; acl:accessTo <{path}>;"
            f" acl:default <{path}>; acl:mode {modes}."
        )

    prefix = "@prefix acl: <http://www.w3.org/ns/auth/acl#>."
    own = rule("./", people.pod.web_id, "acl:Read, acl:Write, acl:Control")
    people.put(".acl", prefix + own + rule("./", other.web_id, "acl:Read"))
    people.put("deep/.acl", prefix + own)
    found = _rows(traversal, other, NAMES, people.url)
    assert found == _answered(asking, people, other, NAMES)
    assert [dict(row)["name"] for row in found] == ["Anna"]


def test_what_is_found_by_a_type_index_is_what_the_endpoint_answers(
    traversal: ClientProcess, asking: ClientProcess, people: Home
) -> None:
    """The index leads from a profile to the documents of a class. This release follows the indexes
    of profiles that it finds, and not of that with which it starts."""
    index = people.put(
        "index",
        f"""@prefix solid: <http://www.w3.org/ns/solid/terms#>.
        <> a solid:TypeIndex.
        <#people> a solid:TypeRegistration; solid:forClass <http://xmlns.com/foaf/0.1/Person>;
            solid:instance <{people.url}deep/b>.""",
    )
    card = people.put(
        "card", f"<#me> <http://www.w3.org/ns/solid/terms#publicTypeIndex> <{index}>."
    )
    start = people.put("start", f"<> <http://www.w3.org/2000/01/rdf-schema#seeAlso> <{card}>.")
    found = _rows(traversal, people.agent, FRIENDS, start)
    assert found == _answered(asking, people, people.agent, FRIENDS)
    assert len(found) == 2
