"""@solid-notifications/discovery finds descriptions."""

from __future__ import annotations

import pytest
from rdflib import RDF

from tests.clients.client_home import Home, StartClient
from tests.support.client_process import ClientProcess

STORAGE = "http://www.w3.org/ns/pim/space#Storage"
TITLE = "http://purl.org/dc/terms/title"


@pytest.fixture(scope="module")
def discovery(start_client: StartClient) -> ClientProcess:
    return start_client("solid-notifications.mjs")


@pytest.mark.parametrize("name", ["", "card", "photo.png"])
def test_the_storage_description_is_found_from_everything_in_the_storage(
    discovery: ClientProcess, home: Home, name: str
) -> None:
    """By HEAD, whose Link is taken apart by the library; then read as Turtle."""
    if name:
        home.put(name, "", "image/png" if name.endswith(".png") else "text/turtle")
    report = discovery.run("findStorageDescription", home.agent, url=home.url + name)
    storage = home.pod.server.base_url + home.pod.root
    assert report.value["url"] == storage + ".well-known/solid"
    assert [storage, str(RDF.type), STORAGE] in report.value["triples"]
    assert {sent.status for sent in report.sent("HEAD")} == {200}


def test_the_description_of_a_resource_is_found(discovery: ClientProcess, home: Home) -> None:
    url = home.put("photo.png", b"png", "image/png")
    home.put("photo.png.meta", f'<{url}> <{TITLE}> "Bern".')
    report = discovery.run("findDescription", home.agent, url=url)
    assert report.value == {"url": url + ".meta", "triples": [[url, TITLE, "Bern"]]}
