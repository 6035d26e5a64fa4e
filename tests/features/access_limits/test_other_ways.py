"""Limits of simple tokens, for applications of other providers, and for open channels."""

from __future__ import annotations

import json
import secrets
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest

from podstead.config import Settings
from podstead.features.access_limits.enforcement import POD_RULES, ClientRule, PodRules
from podstead.features.access_limits.limits import Limit, Place
from podstead.storage.records import Version, Write
from podstead.storage.sqlite import SqliteStore
from tests.features.access_limits.test_pages import DOC, let_in, page_of
from tests.support.application import Server, Start
from tests.support.browser import Browser
from tests.support.clock import FakeClock
from tests.support.commands import invoke
from tests.support.idp_pages import App
from tests.support.notification_channels import channel, path_of
from tests.support.provider import running_provider
from tests.support.server import ServerProcess, running_server
from tests.support.streams import opened
from tests.support.token_world import World, prepared

TURTLE = "text/turtle"


# --- simple tokens -------------------------------------------------------------------------------


@pytest.fixture
def process(tmp_path: Path) -> Iterator[ServerProcess]:
    with running_server(ServerProcess(tmp_path / "root")) as server:
        yield server


def test_a_token_is_made_with_a_limit(process: ServerProcess) -> None:
    json_type = {"Content-Type": "application/json"}
    made = process.request("POST", "/.pods", '{"name": "alice"}', json_type)
    owner = json.loads(made.body)["token"]

    def send(token: str, method: str, path: str) -> int:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": TURTLE}
        body = "<> a <#x>." if method == "PUT" else ""
        return process.request(method, path, body, headers).status

    def create(*options: str) -> str:
        result = invoke(process.root, "token", "create", "alice", *options)
        assert (result.exit_code, result.stderr) == (0, ""), result.output
        return result.stdout.strip()

    for path in ("/alice/photos/a.ttl", "/alice/notes/b.ttl"):
        assert send(owner, "PUT", path) == 201
    token = ""
    for _ in range(2):  # the second answer may come from memory
        token = create("--read", "--folder", "photos/")
        assert send(token, "GET", "/alice/photos/a.ttl") == 200
        assert send(token, "PUT", "/alice/photos/a.ttl") == 403
        assert send(token, "GET", "/alice/notes/b.ttl") == 403
        assert send(token, "GET", "/alice/photos/a.ttl") == 200
    assert send(create("--read", "--until", "2001-01-01"), "GET", "/alice/notes/b.ttl") == 403
    later = create("--read", "--add", "--until", "2999-01-01")
    assert send(later, "GET", "/alice/notes/b.ttl") == 200
    assert send(later, "PUT", "/alice/notes/b.ttl") == 403
    assert send(create(), "PUT", "/alice/notes/b.ttl") == 204
    refused = invoke(process.root, "token", "create", "alice", "--folder", "/alice/../bob/")
    assert refused.exit_code == 2
    # It is not enough to sign in as the owner of the pod either.
    for each, expected in ((token, False), (owner, True)):
        form = f"token={each}&next=/.pages"
        headers = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Sec-Fetch-Site": "same-origin",
            "Origin": process.base_url,
            "Accept": "text/html",
        }
        answer = process.request("POST", "/.pages/sign-in", form, headers)
        cookies = [value for name, value in answer.headers.items() if name.lower() == "set-cookie"]
        assert any("signed-in" in value for value in cookies) == expected, (answer.status, cookies)


# --- applications of other providers -------------------------------------------------------------


async def put_rules(root: Path, *rules: ClientRule) -> None:
    store = SqliteStore(root)
    await store.open()
    try:
        record = POD_RULES.put("/alice/", PodRules(rules))
        await store.commit(Write(Version(secrets.token_hex(8)), 0, records=(record,)))
    finally:
        await store.close()


def rule(client: str, path: str, *actions: str) -> ClientRule:
    return ClientRule(client, Limit("/alice/", (Place(path, actions),)))


async def test_an_owner_limits_the_applications_of_other_providers(
    start: Start, clock: FakeClock, settings: Settings
) -> None:
    with running_provider() as provider:
        world: World = await prepared(start, clock, provider)
        app = world.app()
        payload = app.token.split(".")[1]
        claims = json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        client_id = str(claims.get("client_id") or claims["azp"])
        assert (await world.get(app)).status == 200
        for rules, status in (
            ([rule("", "/alice/other/", "read")], 403),
            ([rule("", "/alice/private/", "read")], 200),
            ([rule("", "/alice/other/"), rule(client_id, "/alice/private/", "read")], 200),
            ([rule("", "/alice/private/", "read"), rule(client_id, "/alice/other/")], 403),
            ([rule("https://elsewhere.example", "/alice/other/")], 200),
            ([], 200),
        ):
            await put_rules(settings.root, *rules)
            assert (await world.get(app)).status == status, rules


async def test_the_page_for_applications_of_other_providers(
    pages_server: Server, browser: Browser, notes: App
) -> None:
    """And the limits there do not concern those of this provider."""
    token = await let_in(pages_server, browser, notes)
    assert "What applications of other providers" in (await browser.get("/.pages/apps")).text
    page = await browser.get("/.pages/apps/limits")
    chosen = {"access": "less", "another": "/alice/notes/", "read": "yes"}
    page = await browser.send(page, page.path, client="https://app.example", **chosen)
    assert "https://app.example<" in page.text
    page = await browser.send(page, page.path, client="", **chosen)
    assert "All others" in page.text
    assert (await pages_server.public.with_token(token).get(DOC)).status == 200
    page = await browser.post(
        page.url, {**page.form(page.path).fields, "client": "", "do": "remove"}
    )
    assert "All others" not in page.text


# --- channels ------------------------------------------------------------------------------------


async def test_an_open_channel_delivers_nothing_after_the_limit(
    pages_server: Server, browser: Browser, notes: App
) -> None:
    token = await let_in(pages_server, browser, notes)
    made = await channel(pages_server.public.with_token(token), "StreamingHTTPChannel2023", DOC)
    async with opened(pages_server.public, path_of(made["receiveFrom"])) as stream:
        await pages_server.alice.put(DOC, "<> a <#first>.", TURTLE)
        first = await stream.piece()
        page = await page_of(browser)
        await browser.send(page, page.path, do="pause")
        await pages_server.alice.put(DOC, "<> a <#second>.", TURTLE)
        await pages_server.alice.delete(DOC)
        page = await page_of(browser)
        await browser.send(page, page.path, do="resume")
        await pages_server.alice.put(DOC, "<> a <#third>.", TURTLE)
        assert first is not None
        assert json.loads(first)["type"] == "Update"
        after = await stream.piece()
        assert after is None or json.loads(after)["type"] == "Create", "not what came in between"
