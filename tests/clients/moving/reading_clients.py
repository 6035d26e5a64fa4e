"""What client libraries read from a document, as graphs that can be compared.

Each library has one behaviour in ``tests/clients/scenarios/reading.mjs``, named after it.
"""

from __future__ import annotations

from typing import Any, Final

import rdflib
from rdflib.compare import isomorphic
from rdflib.term import Node

from podstead.core.media_types import JSON_LD
from tests.support import rdf_oracle
from tests.support.client_process import Agent, ClientProcess
from tests.support.recorded_pod import Recorded, renamed_graph

SCENARIO: Final = "reading.mjs"
LIBRARIES: Final = ("solidClient", "rdflib", "comunica", "ldo", "soukai")


def assert_read(
    client: ClientProcess,
    library: str,
    agent: Agent | None,
    there: Recorded,
    *,
    old: str = "",
    new: str = "",
) -> None:
    """Assert that a library reads what was recorded, with names below ``old`` now below ``new``.

    It reads as nobody if there is no agent.
    """
    url = new + there.url.removeprefix(old)
    found = _graph(client.run(library, agent, url=url).value, url)
    expected = renamed_graph(there, old=old, new=new)
    assert isomorphic(found, expected), (
        library,
        sorted(found.serialize(format="nt").splitlines()),
        sorted(expected.serialize(format="nt").splitlines()),
    )


def _graph(value: dict[str, Any], url: str) -> rdflib.Graph:
    if "nTriples" in value:
        return rdflib.Graph().parse(data=value["nTriples"], format="nt")
    if "jsonLd" in value:
        return rdf_oracle.read(value["jsonLd"].encode(), JSON_LD, base_iri=url)
    graph = rdflib.Graph()
    for subject, predicate, obj in value["quads"]:
        graph.add((_node(subject), _node(predicate), _node(obj)))
    return graph


def _node(term: dict[str, Any]) -> Node:
    if term["termType"] == "NamedNode":
        return rdflib.URIRef(term["value"])
    if term["termType"] == "BlankNode":
        return rdflib.BNode(term["value"])
    if term["language"] is not None:
        return rdflib.Literal(term["value"], lang=term["language"])
    datatype = rdflib.URIRef(term["datatype"])
    return rdflib.Literal(
        term["value"], datatype=None if datatype == rdflib.XSD.string else datatype
    )
