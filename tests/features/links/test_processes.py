"""Links on servers with several workers, and on several nodes: an end holds everywhere at once, and
nothing that the server writes has the secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.client import create_pod
from tests.support.nodes import running_nodes
from tests.support.server import ServerProcess, running_server
from tests.support.web_browser import WebBrowser, signed_in, token_of

TIMES = 12


def new_link(owner: WebBrowser, path: str, **fields: str) -> str:
    """The path of the address of a new link."""
    _status, page = owner.ask(f"/.pages/share{path}")
    token = token_of(page)
    _status, page = owner.ask(
        f"/.pages/sharing-links{path}", csrf_token=token, change="create", **fields
    )
    found = re.search(r'id="link-address"[^>]*value="https?://[^/]+([^"]+)"', page)
    assert found is not None, page
    return found[1]


def end_link(owner: WebBrowser, path: str) -> None:
    _status, page = owner.ask(f"/.pages/share{path}")
    link = re.search(r'name="link" value="([0-9a-f]+)"', page)
    assert link is not None
    fields = {"csrf_token": token_of(page), "change": "end", "link": link[1]}
    assert owner.ask(f"/.pages/sharing-links{path}", **fields)[0] == 200


def check(servers: Sequence[ServerProcess]) -> str:
    """Make, open and end a link, and return its secret."""
    pod = create_pod(servers[0])
    folder = f"{pod.root}drop/"
    with pod.owner() as client:
        headers = {"Content-Type": "text/plain"}
        assert client.request("PUT", f"{folder}a.txt", "one", headers).status == 201
    owner = signed_in(servers[0].base_url, pod)
    link = new_link(owner, folder, kind="view", name="for the printer")
    visitors = [WebBrowser(each.base_url) for each in servers]
    page = ""
    for visitor in visitors:
        status, page = visitor.ask(link)
        assert status == 200
        assert "a.txt" in page
    link_id = re.search(r"/\.links/at/([0-9a-f]{32})/", page)
    assert link_id is not None
    address = f"/.links/at/{link_id[1]}/raw/a.txt"
    for visitor in visitors:
        for each in servers:
            for _ in range(TIMES):
                assert visitor.at(each.base_url).ask(address) == (200, "one")
    end_link(owner, folder)
    for visitor in visitors:
        for each in servers:
            for _ in range(TIMES):
                assert visitor.at(each.base_url).ask(address)[0] == 404
                assert visitor.at(each.base_url).ask(link)[0] == 404
    return link.rpartition("/")[2]


@pytest.fixture
def logged(tmp_path: Path) -> Iterator[ServerProcess]:
    options = ("--workers", "2", "--access-log", "common", "--pod-creations-per-hour", "0")
    with running_server(ServerProcess(tmp_path / "root", options)) as server:
        yield server


def test_an_end_holds_in_each_worker_and_no_log_has_the_secret(logged: ServerProcess) -> None:
    secret = check([logged])
    line = ""
    while "/.links/open" not in line:
        line = logged.wait_for_line("127.0.0.1 ")
        assert secret not in line
    assert '"GET /.links/open/... HTTP/1.1"' in line
    logged.stop()
    assert secret not in logged.errors


def test_an_end_holds_on_each_node(tmp_path: Path) -> None:
    with running_nodes(tmp_path, nodes=2, options=("--pod-creations-per-hour", "0")) as nodes:
        check(nodes)
