"""Weaknesses of signed requests: what is one event good for, and who learns of it?"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from rdflib import OWL

from podstead.app.adapters.foreign import ForeignDocuments
from podstead.app.adapters.keys import ensure_token_key
from podstead.app.adapters.system import SystemClock
from podstead.config import Settings
from podstead.core.errors import OutboundError
from podstead.storage.keys import KeyFiles
from podstead.storage.root import prepare_root
from tests.support.application import BASE, Server, running, with_two_pods
from tests.support.browser import Browser
from tests.support.client import create_pod
from tests.support.idp_pages import sign_in
from tests.support.nostr import Change, NostrKey, nostr, tag_set_to, without, without_tag
from tests.support.nostr_pages import SCRIPT, link, signed
from tests.support.server import ServerProcess, running_server

pytestmark = pytest.mark.feature("nostr")

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


CLOCK = SystemClock()


@dataclass(frozen=True)
class Signers:
    """A server whose operator has named a resolver, and keys of every kind."""

    server: Server
    unknown: NostrKey
    linked: NostrKey
    stated: NostrKey
    stated_twice: NostrKey

    async def ask(self, key: NostrKey) -> int:
        """A request that the key signs."""
        event = key.event("GET", f"{BASE}/alice/", CLOCK.now_ms() // 1000)
        answer = await self.server.public.request("GET", "/alice/", headers=nostr(event))
        return answer.status

    async def sign_in(self, key: NostrKey) -> int:
        browser = Browser(self.server.application)
        event = await signed(browser, CLOCK, key, purpose="sign-in")
        headers = SCRIPT | nostr(event)
        return (await browser.ask("POST", "/idp/nostr/login", headers=headers)).status


@asynccontextmanager
async def _signers(root: Path) -> AsyncIterator[Signers]:
    settings = Settings(root=root, base_url=BASE, idp=True)
    ensure_token_key(KeyFiles(prepare_root(settings.root).keys))
    async with running(settings) as application:
        server = await with_two_pods(application)
        signers = Signers(server, *(NostrKey.new() for _ in range(4)))
        alice = Browser(application)
        await sign_in(alice)
        assert (await link(alice, CLOCK, signers.linked)).status == 201
        for owner, name, keys in (
            (server.alice, "alice", (signers.stated, signers.stated_twice)),
            (server.bob, "bob", (signers.stated_twice,)),
        ):
            names = ", ".join(f"<{each.did}>" for each in keys)
            update = f"INSERT DATA {{ <{BASE}/{name}/#me> <{OWL.sameAs}> {names} }}"
            headers = {"Content-Type": "application/sparql-update"}
            answer = await owner.request(
                "PATCH", f"/{name}/", headers=headers, body=update.encode()
            )
            assert answer.status == 204, answer.text
        yield signers


async def test_w_27_no_fetch_is_needed_to_know_who_signs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A-127: neither about requests nor about signing in."""
    fetched: list[str] = []

    async def fetch(_: ForeignDocuments, url: str, __: object) -> None:
        fetched.append(url)
        raise OutboundError("Nobody is to be asked")

    monkeypatch.setattr(ForeignDocuments, "fetch", fetch)
    async with _signers(tmp_path / "root") as signers:
        keys = (signers.unknown, signers.linked, signers.stated, signers.stated_twice)
        assert [await signers.ask(key) for key in keys] == [200, 200, 200, 200]
        assert [await signers.sign_in(key) for key in keys] == [403, 200, 403, 403]
    assert fetched == []
