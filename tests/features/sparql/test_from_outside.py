"""Queries by curl: straight to the server, and by nginx, over HTTP/1.1 and HTTP/2."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.support.curl import curl, sending
from tests.support.listeners import CERTIFICATE, KEY
from tests.support.proxies import ADDRESS, Place, nginx, running_proxy
from tests.support.server import ServerProcess

pytestmark = [pytest.mark.needs("curl"), pytest.mark.needs("nginx")]

QUERY = "SELECT ?o { ?s <http://example.org/p> ?o }"
TYPE = "application/sparql-query"
CONTAINER = "/alice/private/"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    folder = tmp_path / "proxy"
    folder.mkdir()
    with running_proxy(nginx, folder, certificate=CERTIFICATE, key=KEY) as place:
        base_url = f"https://localhost:{place.port}"
        options = ("--base-url", base_url, "--trusted-proxy", ADDRESS)
        server = ServerProcess(tmp_path / "root", options, port=place.server_port)
        try:
            server.launch()
            server.wait_for_line(f"Podstead is ready at {base_url}/")
            yield place
        finally:
            server.close()


def test_queries_reach_the_server(place: Place) -> None:
    by_proxy = ("--cacert", str(CERTIFICATE)), f"https://localhost:{place.port}"
    directly = (
        ("--header", f"Host: localhost:{place.port}"),
        f"http://127.0.0.1:{place.server_port}",
    )
    made = curl(
        *by_proxy[0],
        *sending("application/json"),
        *("--data", '{"name": "alice"}'),
        f"{by_proxy[1]}/.pods",
    )
    owner = ("--header", f"Authorization: Bearer {json.loads(made.body)['token']}")
    put = curl(
        *by_proxy[0],
        *owner,
        *sending("text/turtle"),
        *("--request", "PUT", "--data", "<> <http://example.org/p> 7."),
        f"{by_proxy[1]}{CONTAINER}doc",
    )
    assert put.status == 201, put.body
    asked = (*sending(TYPE), "--data", QUERY)
    accept = ("--header", "Accept: text/csv")
    for options, base_url in (by_proxy, directly):
        everywhere = (*options, *accept)
        in_containers = ("--request", "QUERY", *asked, f"{base_url}{CONTAINER}")
        refused = curl(*everywhere, *in_containers)
        assert refused.status == 401
        answer = curl(*everywhere, *owner, *in_containers)
        assert (answer.status, answer.body.split()) == (200, [b"o", b"7"]), answer
        service = f"{base_url}/.sparql/query{CONTAINER}"
        for way in (
            (*asked, service),
            ("--data-urlencode", f"query={QUERY}", service),
            (f"{service}?{urlencode({'query': QUERY})}",),
        ):
            answer = curl(*everywhere, *owner, *way)
            assert (answer.status, answer.body.split()) == (200, [b"o", b"7"]), answer
    answer = curl(
        *directly[0],
        *(*accept, *owner, "--http2-prior-knowledge", "--request", "QUERY", *asked),
        f"{directly[1]}{CONTAINER}",
    )
    assert (answer.http_version, answer.status, answer.body.split()) == ("2", 200, [b"o", b"7"])
