"""@inrupt/solid-client, as applications use it (protocol.md, section 9.3)."""

from __future__ import annotations

import pytest
from rdflib import Literal, URIRef
from rdflib.namespace import FOAF

from tests.clients.conftest import Home, StartClient
from tests.clients.process import ClientProcess


@pytest.fixture(scope="module")
def solid_client(start_client: StartClient) -> ClientProcess:
    return start_client("solid-client.mjs")


def test_a_new_dataset_is_saved(solid_client: ClientProcess, home: Home) -> None:
    """K-1."""
    url = home.url + "card"
    report = solid_client.run("saveNewDataset", home.agent, url=url, name="Alice")
    assert report.value == "Alice"
    [put] = report.sent("PUT")
    assert put.headers["if-none-match"] == "*"
    assert home.triples("card") == {(URIRef(f"{url}#me"), FOAF.name, Literal("Alice"))}
