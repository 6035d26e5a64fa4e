"""A browser's EventSource receives changes, and misses none while the server restarts (N-23)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.support.application_page import running_application
from tests.support.chromium import running_chromium
from tests.support.client import Client, create_pod
from tests.support.server import ServerProcess, running_server

TYPE = "EventSourceChannel2023"
TURTLE = "text/turtle"
DEADLINE_MS = 60_000
LISTEN = """async ({service, request, token}) => {
    const headers = {"Content-Type": "application/ld+json", Authorization: `Bearer ${token}`};
    const body = JSON.stringify(request);
    const response = await fetch(service, {method: "POST", headers, body});
    const {receiveFrom} = await response.json();
    window.heard = [];
    window.opened = 0;
    const source = new EventSource(receiveFrom);
    source.onmessage = ({data}) => window.heard.push(JSON.parse(data));
    source.onopen = () => { window.opened += 1; };
}"""

pytestmark = pytest.mark.needs("chromium")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with running_server(ServerProcess(root=tmp_path / "root", options=["--workers", "2"])) as made:
        yield made


@pytest.fixture
def page() -> Iterator[Page]:
    """A page of another origin."""
    with running_application() as url, running_chromium() as browser:
        page = browser.new_page()
        page.goto(url)
        yield page


def kinds(page: Page, count: int) -> list[str]:
    """The types of what was heard, once it is so much."""
    page.wait_for_function(f"heard.length >= {count}", timeout=DEADLINE_MS)
    heard: list[str] = page.evaluate("heard.map(({type}) => type)")
    return heard


def test_a_page_gets_every_change_despite_a_restart(server: ServerProcess, page: Page) -> None:
    """N-23: the browser comes back by itself, and says what it heard last."""
    pod = create_pod(server)
    path = f"{pod.root}private/notes.ttl"
    request = {
        "@context": ["https://www.w3.org/ns/solid/notification/v1"],
        "type": TYPE,
        "topic": server.base_url + path,
    }
    service = f"{server.base_url}/.notifications/{TYPE}/"
    page.evaluate(LISTEN, {"service": service, "request": request, "token": pod.token})
    page.wait_for_function("opened === 1", timeout=DEADLINE_MS)

    def put(body: str) -> None:
        with Client(server, token=pod.token) as owner:
            assert owner.put(path, body, TURTLE).status in {201, 204}

    put("")
    put("<> a <#A>.")
    assert kinds(page, 2) == ["Create", "Update"]
    server.restart()
    put("<> a <#B>.")
    with Client(server, token=pod.token) as owner:
        assert owner.request("DELETE", path).status == 204
    assert kinds(page, 4) == ["Create", "Update", "Update", "Delete"]
    page.wait_for_function("opened === 2", timeout=DEADLINE_MS)
    ids = json.loads(page.evaluate("JSON.stringify(heard.map(({id}) => id))"))
    assert len(set(ids)) == 4
