"""The endpoint answers like another engine over exactly the documents that the asker can GET.

Pods and rules are random; the other engine is rdflib.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest
import rdflib
from rdflib.term import Node

from podstead.app.adapters.root import prepared_root
from podstead.config import Settings
from tests.support.application import BASE, Server, running, with_two_pods
from tests.support.asgi import Client
from tests.support.postgresql import new_database
from tests.support.rdf import FORMATS, JSON_LD, N_TRIPLES, TURTLE

ROOT = "/alice/w/"
VOCABULARY = [f"http://example.org/{name}" for name in "pqr"]
P, Q, R = (f"<{each}>" for each in VOCABULARY)
QUERIES = [
    "SELECT ?s ?p ?o { ?s ?p ?o }",
    "SELECT ?g ?s ?p ?o { GRAPH ?g { ?s ?p ?o } }",
    f"SELECT ?a ?b ?c {{ ?a {P} ?b . ?b {Q} ?c }}",
    f"SELECT ?a ?b ?c {{ ?a {P} ?b OPTIONAL {{ ?a {R} ?c }} }}",
    f"SELECT ?a {{ ?a {P} ?b FILTER NOT EXISTS {{ ?a {Q} ?c }} }}",
    "SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p",
    f"SELECT DISTINCT ?a ?c {{ ?a ({P}|{Q})+ ?c }}",
    f"SELECT ?g (COUNT(?s) AS ?n) {{ GRAPH ?g {{ ?s {P} ?o }} }} GROUP BY ?g",
    f"SELECT ?a ?b {{ {{ ?a {P} ?b }} UNION {{ ?b {R} ?a }} }}",
    f"SELECT ?a {{ ?a {Q} ?b MINUS {{ ?a {P} ?b }} }}",
    f"SELECT ?a ?g ?h {{ GRAPH ?g {{ ?a {P} ?b }} GRAPH ?h {{ ?a {R} ?c }} FILTER(?g != ?h) }}",
    "SELECT ?n { BIND(1 AS ?n) }",
]
RULES = [
    ("acl:agentClass foaf:Agent", "+Read"),
    ("acl:agentClass foaf:Agent", "Read"),
    ("acl:agentClass acl:AuthenticatedAgent", "+Read"),
    ("acl:agent <http://localhost:3000/bob/#me>", "+Read"),
    ("acl:agentGroup <http://localhost:3000/alice/groups#friends>", "+Read"),
    ("acl:agentClass foaf:Agent", "+Write"),
]
FRIENDS = """
@prefix vcard: <http://www.w3.org/2006/vcard/ns#>.
<#friends> a vcard:Group; vcard:hasMember <http://localhost:3000/bob/#me>.
"""


def statements(random: Random) -> Iterator[tuple[rdflib.URIRef, rdflib.URIRef, Node]]:
    """Some, about few things, so that documents have some of them in common."""
    things = [rdflib.URIRef(f"http://example.org/t{number}") for number in range(6)]
    for _ in range(random.randint(1, 6)):
        literal = rdflib.Literal(random.choice(["a", "b", 1, 2]))
        subject, predicate = random.choice(things), rdflib.URIRef(random.choice(VOCABULARY))
        yield subject, predicate, random.choice([*things, literal])


async def write_something(server: Server, random: Random, containers: list[str]) -> None:
    """One random write."""
    container = random.choice(containers)
    path = f"{container}d{random.randint(0, 9)}"
    action = random.random()
    if action < 0.15 and len(containers) < 12:
        containers.append(f"{container}c{random.randint(0, 3)}/")
    elif action < 0.4:
        rules = random.sample(RULES, random.randint(0, 2))
        await server.put_acl(random.choice([*containers, path]), *rules)
    elif action < 0.5:
        await server.alice.request("DELETE", random.choice([path, f"{path}.acl"]))
    elif action < 0.55:
        target = f"{random.choice(containers)}d{random.randint(0, 9)}"
        await server.alice.request("MOVE", path, headers={"Destination": target})
    else:
        graph = rdflib.Graph()
        for each in statements(random):
            graph.add(each)
        type_ = random.choice([TURTLE, JSON_LD, N_TRIPLES])
        await server.alice.put(path, graph.serialize(format=FORMATS[type_]), type_)


async def readable(client: Client, paths: set[str]) -> rdflib.Dataset:
    """The documents that the client can GET."""
    with warnings.catch_warnings():  # rdflib's Dataset uses what rdflib deprecates
        warnings.simplefilter("ignore", DeprecationWarning)
        dataset = rdflib.Dataset(default_union=True)
        for path in paths:
            answer = await client.get(path, accept=N_TRIPLES)
            if answer.status == 200:
                dataset.graph(rdflib.URIRef(BASE + path)).parse(data=answer.text, format="nt")
        return dataset


def by_other_engine(dataset: rdflib.Dataset, text: str) -> Counter[frozenset[tuple[str, str]]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return Counter(
            frozenset((str(name), str(value)) for name, value in row.asdict().items())  # type: ignore[union-attr]
            for row in dataset.query(text)
        )


async def by_endpoint(client: Client, text: str) -> Counter[frozenset[tuple[str, str]]]:
    headers = {"Content-Type": "application/sparql-query"}
    answer = await client.request("QUERY", ROOT, headers=headers, body=text.encode())
    assert answer.status == 200, answer.text
    return Counter(
        frozenset((name, term["value"]) for name, term in row.items())
        for row in json.loads(answer.text)["results"]["bindings"]
    )


@pytest.mark.parametrize("seed", range(6))
async def test_answers_equal_those_over_what_the_asker_can_get(server: Server, seed: int) -> None:
    await compare(server, seed)


async def test_so_they_do_on_postgresql(settings: Settings) -> None:
    with new_database() as database:
        on_postgresql = settings.with_values(database=database)
        with prepared_root(on_postgresql):
            async with running(on_postgresql) as application:
                await compare(await with_two_pods(application), 6)


async def compare(server: Server, seed: int) -> None:
    """Write at random, and compare answers."""
    random = Random(seed)
    await server.alice.put("/alice/groups", FRIENDS, TURTLE)
    await server.alice.put(ROOT, "", TURTLE)
    await server.put_acl(ROOT, ("acl:agentClass foaf:Agent", "Read"))
    containers = [ROOT]
    for _ in range(4):
        for _ in range(15):
            await write_something(server, random, containers)
        paths = {f"{container}d{number}" for container in containers for number in range(10)}
        for client in (server.alice, server.bob, server.public):
            if (await client.get(ROOT)).status != 200:
                refused = await client.request(
                    "QUERY", ROOT, headers={"Content-Type": "application/sparql-query"}
                )
                assert refused.status in {401, 403}
                continue
            dataset = await readable(client, paths)
            for text in random.sample(QUERIES, 5):
                expected = by_other_engine(dataset, text)
                assert await by_endpoint(client, text) == expected, (seed, text)
