"""Limits of simple tokens, for applications of other providers, and for open channels."""

from __future__ import annotations

import json
import secrets
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from podstead.app.adapters.keys import ensure_token_key
from podstead.app.adapters.root import unfinished_move
from podstead.app.adapters.system import SystemRandomness
from podstead.app.operator.administration import open_root
from podstead.app.operator.change_base_url import move_data_root
from podstead.config import Settings
from podstead.core.errors import Conflict, StorageError
from podstead.core.identifiers import ResourcePath
from podstead.features.access_limits import enforcement
from podstead.features.access_limits.enforcement import (
    LIMITS,
    POD_RULES,
    AccessLimitsHook,
    ClientRule,
    LimitStore,
    PodRules,
    StoredLimit,
    client_key,
)
from podstead.features.access_limits.limits import AllowedPlace, Limit
from podstead.storage.keys import KeyFiles
from podstead.storage.record_store import RecordStore
from podstead.storage.records import PodRecord, PutEntry, Version, Write
from podstead.storage.root import prepare_root
from podstead.storage.sqlite import SqliteFacts, SqliteStore
from tests.features.access_limits.test_pages import DOC, let_in, page_of
from tests.support import tus
from tests.support.application import BASE, Server, Start
from tests.support.asgi_sockets import connected
from tests.support.browser import Browser
from tests.support.clock import FakeClock
from tests.support.commands import invoke
from tests.support.idp_pages import App, sign_in
from tests.support.notification_channels import channel, path_of
from tests.support.people import create_account
from tests.support.provider import running_provider
from tests.support.provider_flows import Provider
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
    headers = {"Authorization": f"Bearer {token}"}
    refused = process.request("GET", "/alice/notes/b.ttl", "", headers)
    assert json.loads(refused.body)["error"] == "insufficient_scope"
    assert 'error="insufficient_scope"' in refused.headers["www-authenticate"]
    assert "token" in refused.headers["www-authenticate"]
    assert "error_uri" not in refused.headers["www-authenticate"]
    assert send(create("--read", "--until", "2001-01-01"), "GET", "/alice/notes/b.ttl") == 403
    later = create("--read", "--add", "--until", "2999-01-01")
    assert send(later, "GET", "/alice/notes/b.ttl") == 200
    assert send(later, "PUT", "/alice/notes/b.ttl") == 403
    assert send(create(), "PUT", "/alice/notes/b.ttl") == 204
    wrong = invoke(process.root, "token", "create", "alice", "--folder", "/alice/../bob/")
    assert wrong.exit_code == 2
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


async def test_limits_of_what_has_ended_make_room(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enforcement, "MAX_LIMITS", 3)
    records = RecordStore(provider.store, provider.clock, SystemRandomness())
    limits, limit = LimitStore(records), Limit("/alice/")
    ended = StoredLimit("me", "ended", limit, is_credential=True)
    await records.commit(
        [
            LIMITS.put("application", StoredLimit("me", "application", limit), owner="me"),
            LIMITS.put("credential", ended, owner="me"),
            LIMITS.put("token", StoredLimit("me", "", limit), owner="me"),
        ]
    )
    await records.commit(await limits.putting("b", StoredLimit("me", "b", limit), "me"))
    await records.commit(await limits.putting("c", StoredLimit("me", "c", limit), "me"))
    assert {each.key for each in await limits.of_owner("me")} == {"application", "b", "c"}
    with pytest.raises(Conflict):
        await limits.putting("d", StoredLimit("me", "d", limit), "me")


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
    return ClientRule(client, Limit("/alice/", (AllowedPlace(path, actions),)))


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


def test_an_identifier_that_is_an_origin_is_found_in_both_spellings() -> None:
    """The page stores the origin for both."""
    limit = Limit("/alice/")
    rules = PodRules((ClientRule("https://app.example", limit),))
    assert rules.of("https://app.example/", None) == limit
    assert rules.of("https://app.example/", "https://elsewhere.example") == limit
    assert rules.of("https://other.example/", "https://app.example") == limit
    assert rules.of("https://other.example/", None) is None


async def test_the_rules_of_a_pod_belong_to_it(
    pages_server: Server, browser: Browser, settings: Settings
) -> None:
    await sign_in(browser)
    page = await browser.get("/.pages/apps/limits")
    chosen = {"access": "less", "another": "/alice/notes/", "read": "yes"}
    await browser.send(page, page.path, client="", **chosen)
    store = SqliteStore(settings.root)
    await store.open()
    try:
        (stored,) = await POD_RULES.page(store, now_ms=0)
    finally:
        await store.close()
    assert stored.owner == "/alice/"


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


@pytest.mark.feature("legacy_notifications")
async def test_an_open_socket_hears_nothing_beyond_the_limit(
    pages_server: Server, browser: Browser, notes: App
) -> None:
    token, allowed = await let_in(pages_server, browser, notes), "/alice/notes/b.ttl"
    await pages_server.alice.put(allowed, "<> a <#first>.", TURTLE)
    headers = {"Authorization": f"Bearer {token}"}
    async with connected(
        pages_server.application, protocols=["solid-0.1"], headers=headers
    ) as socket:
        await socket.receive()
        for each in (DOC, allowed):
            await socket.send(f"sub {BASE}{each}")
            assert await socket.receive() == f"ack {BASE}{each}"
        page = await page_of(browser)
        await browser.send(page, page.path, access="less", another="/alice/notes/", read="yes")
        await pages_server.alice.put(DOC, "<> a <#second>.", TURTLE)
        await pages_server.alice.put(allowed, "<> a <#second>.", TURTLE)
        assert await socket.receive() == f"err {BASE}{DOC} forbidden"
        assert await socket.receive() == f"pub {BASE}{allowed}"


async def test_a_token_opens_no_page_exports_nothing_and_makes_no_credentials(
    pages_server: Server, browser: Browser, notes: App
) -> None:
    """Those need a session of the person."""
    client = pages_server.public.with_token(await let_in(pages_server, browser, notes))
    form = "application/x-www-form-urlencoded"
    for path in (
        "/.pages/zip/alice/",
        "/.pages/files/alice/photos/",
        "/.pages/apps",
        "/idp/account",
    ):
        answer = await client.request("GET", path, headers={"Accept": "text/html"})
        leads_to = answer.header("location") or ""
        assert answer.status in {401, 403} or leads_to.startswith(("/idp/login", "/.pages/sign-in"))
    for path in (
        "/idp/account/client-credentials",
        "/idp/account/tokens",
        "/idp/account/export",
        "/.pages/apps/limits",
    ):
        answer = await client.post(path, "access=all", form)
        assert answer.status in {401, 403}, (path, answer.text)


# --- git, and pods that are renamed --------------------------------------------------------------


@pytest.mark.feature("git")
def test_git_is_within_the_limit(tmp_path: Path) -> None:
    with running_server(ServerProcess(tmp_path / "root", ["--git"])) as server:
        json_type = {"Content-Type": "application/json"}
        made = server.request("POST", "/.pods", '{"name": "alice"}', json_type)
        owner = json.loads(made.body)["token"]
        for path in ("/alice/code/a.ttl", "/alice/notes/b.ttl"):
            headers = {"Authorization": f"Bearer {owner}", "Content-Type": TURTLE}
            assert server.request("PUT", path, "<> a <#x>.", headers).status == 201
        result = invoke(server.root, "token", "create", "alice", "--read", "--folder", "code/")
        token = result.stdout.strip()

        def refs(container: str, service: str) -> int:
            path = f"{container}info/refs?service=git-{service}"
            return server.request("GET", path, "", {"Authorization": f"Bearer {token}"}).status

        assert refs("/alice/code/", "upload-pack") == 200
        assert refs("/alice/code/", "receive-pack") == 403
        assert refs("/alice/notes/", "upload-pack") == 403


async def test_limits_follow_a_pod_that_is_renamed(provider: Provider) -> None:
    """Whoever consented before the renaming signs in under the new WebID without a page."""
    records = RecordStore(provider.store, provider.clock, SystemRandomness())
    old, new = f"{BASE}/alice/#me", f"{BASE}/alicia/#me"
    limit = Limit(
        "/alice/", (AllowedPlace("/alice/a/", ("read",)), AllowedPlace("/bob/b/", ("add",)))
    )
    stored = StoredLimit(old, "client", limit, own_folder="/alice/apps/x/")
    await records.commit([LIMITS.put(client_key(old, "client"), stored, owner="account")])
    await records.commit([POD_RULES.put("/alice/", PodRules((rule("", "/alice/a/", "read"),)))])

    def renamed(path: ResourcePath) -> ResourcePath:
        return ResourcePath(path.replace("/alice/", "/alicia/", 1))

    elsewhere = "https://old.example/alice/profile/card#me"
    stored = StoredLimit(elsewhere, "client", limit)
    await records.commit([LIMITS.put(client_key(elsewhere, "client"), stored, owner="other")])
    before = PodRecord("alice", ResourcePath("/alice/"), old, 0)
    after = PodRecord("alicia", ResourcePath("/alicia/"), new, 0)
    changes = await AccessLimitsHook(records).of_renaming(before, after, renamed)
    assert await records.try_commit(changes.records, changes.preconditions)
    limits = LimitStore(records)
    assert await limits.of_client(old, "client") is None
    found = await limits.find(client_key(new, "client"))
    assert found is not None
    assert found.value.own_folder == "/alicia/apps/x/"
    moved = found.value.limit
    assert moved == Limit(
        "/alicia/", (AllowedPlace("/alicia/a/", ("read",)), AllowedPlace("/bob/b/", ("add",)))
    )
    assert await limits.of_client(elsewhere, "client") == moved, "the WebID of this one remains"
    assert await limits.rules_of(ResourcePath("/alice/")) is None
    rules = await limits.rules_of(ResourcePath("/alicia/"))
    assert rules is not None
    assert rules.owner == "/alicia/"
    assert rules.value.rules == (
        ClientRule("", Limit("/alicia/", (AllowedPlace("/alicia/a/", ("read",)),))),
    )


async def test_limits_follow_a_move_to_another_base_url(settings: Settings) -> None:
    """Consents are kept, so whoever signs in again under the new WebID sees no page."""
    layout = prepare_root(settings.root)
    ensure_token_key(KeyFiles(layout.keys))
    for fact in ("base-url", "issuer"):
        SqliteFacts(layout.database).write_fact(fact, BASE)
    limit = Limit("/alice/", (AllowedPlace("/alice/a/", ("read",)),))
    mine, theirs = f"{BASE}/alice/#me", "https://elsewhere.example/alice/#me"
    async with open_root(settings) as root:
        for each in (mine, theirs):
            stored = StoredLimit(each, "client", limit)
            record = LIMITS.put(client_key(each, "client"), stored, owner="account")
            await root.records.commit([record])
        token = LIMITS.put("of-a-token", StoredLimit(mine, "", limit), owner=mine)
        await root.records.commit([token])

    await move_data_root(
        settings, "https://pods.example", every_document=False, dry_run=False,
        on_step=lambda *_: None,
    )  # fmt: skip
    after = replace(settings, base_url="https://pods.example")
    async with open_root(after) as root:
        limits = LimitStore(root.records)
        new = "https://pods.example/alice/#me"
        assert await limits.of_client(mine, "client") is None
        assert await limits.of_client(new, "client") == limit
        assert await limits.of_client(theirs, "client") == limit
        moved = [(each.value.web_id, each.key) for each in await limits.of_owner("account")]
        assert sorted(moved) == [(each, client_key(each, "client")) for each in (theirs, new)]
        (of_token,) = await limits.of_owner(new)
        assert (of_token.key, of_token.value.web_id) == ("of-a-token", new)


async def test_a_limit_that_cannot_be_moved_stops_the_move(settings: Settings) -> None:
    layout = prepare_root(settings.root)
    ensure_token_key(KeyFiles(layout.keys))
    for fact in ("base-url", "issuer"):
        SqliteFacts(layout.database).write_fact(fact, BASE)
    async with open_root(settings) as root:
        damaged = PutEntry(LIMITS.entry_of("key"), b"{}", "account")
        await root.records.commit([damaged])
    with pytest.raises(StorageError):
        await move_data_root(
            settings, "https://pods.example", every_document=False, dry_run=False,
            on_step=lambda *_: None,
        )  # fmt: skip
    assert unfinished_move(settings) == "https://pods.example"


# --- uploads, and credentials made by a command --------------------------------------------------


@pytest.mark.feature("uploads")
async def test_an_upload_that_began_before_does_not_pass_the_limit(
    pages_server: Server, browser: Browser, notes: App
) -> None:
    client = pages_server.public.with_token(await let_in(pages_server, browser, notes))
    place = await tus.created(client, "/alice/photos/large", 4)
    page = await page_of(browser)
    chosen = {"access": "less", "another": "/alice/notes/", "read": "yes", "edit": "yes"}
    await browser.send(page, page.path, **chosen)
    fields = {**tus.VERSION, "Content-Type": tus.OCTETS, "Upload-Offset": "0"}
    assert (await client.request("PATCH", place, headers=fields, body=b"data")).status == 403
    assert (await tus.create(client, "/alice/photos/other", 4)).status == 403
    assert (await pages_server.alice.get("/alice/photos/large")).status == 404


def test_client_credentials_are_made_with_a_limit(tmp_path: Path) -> None:
    with running_server(ServerProcess(tmp_path / "root", ["--idp"])) as server:
        person = create_account(server)
        options = ["--folder", "private/", "--read", "--json"]
        result = invoke(server.root, "account", "credentials", person.name, *options)
        assert result.exit_code == 0, result.output
        made = json.loads(result.stdout)
        form = (
            f"grant_type=client_credentials&client_id={made['id']}&client_secret={made['secret']}"
        )
        sent = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = server.request("POST", "/idp/token", form, sent)
        tokens = json.loads(answer.body)
        (granted,) = tokens["authorization_details"]
        assert granted["locations"] == [f"{server.base_url}/{person.name}/private/"]
        headers = {
            "Authorization": f"Bearer {tokens['access_token']}",
            "Content-Type": "text/plain",
        }
        pod = f"/{person.name}/"
        assert server.request("GET", f"{pod}private/", "", headers).status == 200
        assert server.request("PUT", f"{pod}private/x", "x", headers).status == 403
        assert server.request("GET", f"{pod}settings/", "", headers).status == 403
