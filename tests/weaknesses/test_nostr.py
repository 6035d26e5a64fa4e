"""Weaknesses of signed requests: what is one event good for?"""

from __future__ import annotations

import time
from pathlib import Path

from tests.support.client import create_pod
from tests.support.nostr import Change, NostrKey, nostr, tag_set_to, without, without_tag
from tests.support.server import ServerProcess, running_server

_OPTIONS = ("--invalid-credentials-per-minute", "0")


def test_w_9_an_event_is_good_for_one_url_one_method_and_one_request(tmp_path: Path) -> None:
    """A-141 to A-147."""
    key = NostrKey.new()
    with running_server(ServerProcess(tmp_path / "root", _OPTIONS)) as server:
        pod = create_pod(server)
        place, doc = f"{pod.root}private/", f"{pod.root}private/doc"
        rules = (
            "@prefix acl: <http://www.w3.org/ns/auth/acl#>.\n"
            f"[] a acl:Authorization; acl:agent <{pod.web_id}>, <{key.did}>;\n"
            "acl:accessTo <./>; acl:default <./>; acl:mode acl:Read, acl:Write, acl:Control.\n"
        )
        with pod.owner() as owner:
            assert owner.put(f"{place}.acl", rules, "text/turtle").status in {201, 204}
            assert owner.put(doc, "text").status == 201
        url, now_s = f"{server.base_url}{doc}", int(time.time())

        def status(*changes: Change, target: str = doc, **members: str) -> int:
            event = {**key.event("GET", url, now_s, *changes), **members}
            return server.get(target, nostr(event)).status

        assert status() == 200
        for wider in (server.base_url, f"{server.base_url}/", f"{server.base_url}{place}"):
            assert status(tag_set_to("u", wider)) == 401
        assert status(tag_set_to("u", f"{url}/")) == 401
        assert status(target=f"{doc}?query") == 401
        assert status(tag_set_to("method", "*")) == 401
        assert status(without_tag("method")) == 401
        assert status(id="") == 401
        event = key.event("GET", url, now_s)
        without("id")(event)
        assert server.get(doc, nostr(event)).status == 401
        event = key.event("GET", url, now_s)
        assert [server.get(doc, nostr(event)).status for _ in range(3)] == [200, 401, 401]
