"""``podstead watch`` receives changes at the Community Solid Server."""

from __future__ import annotations

import json

import pytest

from tests.support.community_server import CommunityServer, shared_community_server
from tests.support.server import request_to, run_command
from tests.support.watching import watching


@pytest.fixture(scope="module")
def community() -> CommunityServer:
    return shared_community_server()


def put(url: str, content: str) -> None:
    assert request_to("PUT", url, content, {"Content-Type": "text/plain"}).status in {201, 205}


def test_changes_at_the_community_server_are_notified(community: CommunityServer) -> None:
    """N-20, over its WebSocketChannel2023: each change alone, since it tells them by its own time,
    and only the last of several at once need be right."""
    container = f"{community.base_url}box/"
    put(f"{container}kept", "x")
    with (
        watching(container, "--json") as members,
        watching(f"{container}kept") as resource,
    ):
        put(f"{container}new", "x")
        added = json.loads(members.lines.next() or "")
        assert request_to("DELETE", f"{container}new").status == 205
        removed = json.loads(members.lines.next() or "")
        put(f"{container}kept", "y")
        updated = resource.lines.next() or ""
    assert (added["type"], removed["type"]) == ("Add", "Remove")
    assert added["object"] == removed["object"] == f"{container}new"
    assert updated.endswith("  Update  kept")


def test_features_that_the_community_server_lacks_are_reported(community: CommunityServer) -> None:
    url = f"{community.base_url}nothing"
    ended = run_command("watch", url)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith(f"Error: There is nothing at {url}")
