"""A client's document in RDF says what its JSON says; a JSON-LD library is the judge (A-51)."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest
from pyld import jsonld  # type: ignore[import-untyped]

from podstead.idp.client_metadata import SOLID_OIDC_CONTEXT, read_client_document
from podstead.idp.clients import client_members
from podstead.rdf.codecs import parse
from podstead.rdf.graph import Graph

CLIENT_ID = "https://app.example/id"

DOCUMENTS: dict[str, dict[str, Any]] = {
    "the least": {"redirect_uris": ["https://app.example/callback"]},
    "several of each": {
        "client_name": "App, the one",
        "client_uri": "https://app.example/",
        "redirect_uris": ["https://app.example/b?x=1", "https://app.example/a"],
        "grant_types": ["refresh_token", "authorization_code"],
        "response_types": ["code", "token"],
        "scope": "openid webid offline_access",
        "require_auth_time": True,
        "default_max_age": 3600,
    },
    "of this machine": {
        "application_type": "native",
        "redirect_uris": ["http://127.0.0.1/callback"],
        "grant_types": "authorization_code",
    },
}


def graph_of(document: dict[str, Any]) -> Graph:
    """The document's triples, as the other library reads them."""
    context = json.loads((files("podstead.rdf") / "contexts/solid-oidc.jsonld").read_bytes())
    n_quads = jsonld.to_rdf(
        {**document, "@context": context["@context"]}, {"format": "application/n-quads"}
    )
    return parse(n_quads.encode(), "application/n-quads", base_iri=CLIENT_ID).graph


@pytest.mark.parametrize("members", DOCUMENTS.values(), ids=DOCUMENTS)
def test_a_graph_describes_the_client_that_its_json_does(members: dict[str, Any]) -> None:
    document = {"@context": SOLID_OIDC_CONTEXT, "client_id": CLIENT_ID, **members}
    by_json = read_client_document(document, client_id=CLIENT_ID, allow_http=False)
    by_graph = read_client_document(
        client_members(graph_of(document), CLIENT_ID), client_id=CLIENT_ID, allow_http=False
    )
    assert set(by_graph.redirect_uris) == set(by_json.redirect_uris)
    for name in by_json.__struct_fields__:
        if name != "redirect_uris":  # whose order a graph does not have
            assert getattr(by_graph, name) == getattr(by_json, name), name


def test_a_graph_about_others_has_no_members() -> None:
    document = {"client_id": "https://app.example/other", **DOCUMENTS["the least"]}
    assert client_members(graph_of(document), CLIENT_ID) == {}
    assert client_members(Graph(), CLIENT_ID) == {}
