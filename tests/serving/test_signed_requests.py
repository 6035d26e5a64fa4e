"""A running server and its workers, sent requests that are signed with a Nostr key."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.support.nostr import NostrKey, basic, nostr, packed
from tests.support.server import ServerProcess, running_server

PLACE = "/alice/private/"
DOC = f"{PLACE}doc"


def with_alice(server: ServerProcess, key: NostrKey) -> str:
    """A pod whose private container the key may use; its owner's simple token."""
    typed = {"Content-Type": "application/json"}
    pod = json.loads(server.request("POST", "/.pods", '{"name": "alice"}', typed).body)
    owner = {"Authorization": f"Bearer {pod['token']}", "Content-Type": "text/turtle"}
    rules = (
        "@prefix acl: <http://www.w3.org/ns/auth/acl#>.\n"
        f"[] a acl:Authorization; acl:agent <{pod['webId']}>, <{key.did}>;\n"
        "acl:accessTo <./>; acl:default <./>; acl:mode acl:Read, acl:Write, acl:Control.\n"
    )
    assert server.request("PUT", f"{PLACE}.acl", rules, owner).status in {201, 204}
    assert server.request("PUT", DOC, "<#a> <#b> 1 .", owner).status == 201
    return str(pod["token"])


def test_of_many_concurrent_uses_of_an_event_one_is_valid_in_any_worker(
    tmp_path: Path,
) -> None:
    """A-147."""
    key = NostrKey.new()
    options = ("--workers", "2", "--invalid-credentials-per-minute", "0")
    with running_server(ServerProcess(tmp_path / "root", options)) as server:
        with_alice(server, key)
        for _ in range(3):
            event = key.event("GET", f"{server.base_url}{DOC}", int(time.time()))
            with ThreadPoolExecutor(8) as senders:
                fields = [nostr(event), basic(event)] * 12
                answers = list(senders.map(lambda each: server.get(DOC, each), fields))
            assert sorted(answer.status for answer in answers) == [200] + [401] * 23


def test_a_large_body_is_hashed_on_its_way_to_the_disk(tmp_path: Path) -> None:
    """Over a socket, in one and in chunks."""
    key, body = NostrKey.new(), bytes(range(256)) * 16384
    with running_server(ServerProcess(tmp_path / "root")) as server:
        owner = {"Authorization": f"Bearer {with_alice(server, key)}"}
        url = f"{server.base_url}{PLACE}large"
        for signed, status in ((body + b"!", 401), (body, 201)):
            event = key.event("PUT", url, int(time.time()), payload=signed)
            fields = {**nostr(event), "Content-Type": "application/octet-stream"}
            assert server.request("PUT", f"{PLACE}large", body, fields).status == status
        stored = server.get(f"{PLACE}large", owner).body
        assert hashlib.sha256(stored).digest() == hashlib.sha256(body).digest()


def test_no_part_of_an_event_is_logged_whatever_is_wrong_with_it(tmp_path: Path) -> None:
    """A-183, A-15."""
    key = NostrKey.new()
    options = ("--log-level", "debug", "--invalid-credentials-per-minute", "0")
    with running_server(ServerProcess(tmp_path / "root", options)) as server:
        with_alice(server, key)
        url, now_s = f"{server.base_url}{DOC}", int(time.time())
        event = key.event("GET", url, now_s)
        other = key.event("PUT", url, now_s)
        shown = [nostr(event), nostr(event), basic(other), nostr({**event, "sig": other["sig"]})]
        assert [server.get(DOC, each).status for each in shown] == [200, 401, 401, 401]
        assert server.stop() == 0
        logged = server.errors
    parts = [packed(event), packed(other), event["sig"], other["sig"], event["id"], other["id"]]
    parts += [base64.b64encode(f"nostr:{packed(other)}".encode()).decode()]
    assert not [part for part in parts if part[:24] in logged]
