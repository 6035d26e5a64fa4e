"""A profile says whose tokens count for its WebID, those of this server's provider included."""

from __future__ import annotations

import json
from urllib.parse import urlencode, urlsplit

import pytest

from podstead.idp.grants import ConnectedClient
from podstead.web.account.collections import shown_applications
from podstead.web.pages.addresses import SECURITY
from podstead.web.sign_in.authorization import place_of, places_of
from tests.support.application import BASE, Server, acl_turtle, password_of
from tests.support.asgi import Answer, Client
from tests.support.browser import FORM, Browser
from tests.support.clock import FakeClock
from tests.support.idp_pages import App, csrf_token, register, sign_in, whole_account
from tests.support.rdf import TURTLE

PROFILE = "/alice/"
ALICE = f"{BASE}{PROFILE}#me"
ISSUER = "http://www.w3.org/ns/solid/terms#oidcIssuer"
WARNING = "Your profile does not name this server as your identity provider"
PRIVATE = "/alice/private/"
SPARQL = {"Content-Type": "application/sparql-update"}


async def rename(owner: Client, *issuers: str) -> None:
    """Have the profile name these providers and no other."""
    named = "".join(f"INSERT DATA {{ <{ALICE}> <{ISSUER}> <{each}> }};" for each in issuers)
    update = f"DELETE WHERE {{ <{ALICE}> <{ISSUER}> ?other }}; {named}"
    answer = await owner.request("PATCH", PROFILE, headers=SPARQL, body=update.encode())
    assert answer.status == 204, answer.text


async def app_token(browser: Browser, app: App) -> str:
    page = await browser.get(app.request())
    tokens = await app.tokens(await browser.send(page, f"{page.path}/confirm"))
    return str(tokens["access_token"])


def assert_refused(answer: Answer) -> None:
    assert answer.status == 401
    assert "no longer states this server" in answer.json()["message"]
    assert "account page" in answer.json()["message"]


async def test_a_token_of_our_own_is_refused_once_the_profile_names_others(
    server: Server, browser: Browser, app: App
) -> None:
    """Solid-OIDC section 6.1: for the token of an application and for the owner's own."""
    await sign_in(browser)
    application = server.public.with_token(await app_token(browser, app))
    for client in (application, server.alice):
        assert (await client.get(PRIVATE)).status == 200
    await rename(server.alice, "https://idp.example/")
    for client in (application, server.alice):
        assert_refused(await client.get(PRIVATE))
        assert_refused(await client.put("/alice/private/doc", "text", "text/plain"))
        assert_refused(await client.get("/alice/public/"))
    assert (await server.bob.get("/bob/private/")).status == 200


async def test_a_provider_among_others_is_named_also_with_a_slash_at_its_end(
    server: Server,
) -> None:
    """A-40."""
    await rename(server.alice, "https://idp.example/", f"{BASE}/")
    assert (await server.alice.get(PRIVATE)).status == 200


@pytest.mark.parametrize("stated", [f'<{ISSUER}> "{BASE}"', f"<{ISSUER}> <{BASE}/alice/>"])
async def test_something_like_the_statement_is_not_the_statement(
    server: Server, stated: str
) -> None:
    answer = await server.alice.put(PROFILE, f"<#me> {stated}.", TURTLE)
    assert answer.status == 204
    assert_refused(await server.alice.get(PRIVATE))


async def test_the_account_page_says_so_and_restores_the_statement(
    server: Server, browser: Browser, app: App
) -> None:
    page = await sign_in(browser)
    assert WARNING not in page.text
    application = server.public.with_token(await app_token(browser, app))
    await rename(server.alice, "https://idp.example/")
    page = await whole_account(browser)
    assert WARNING in page.text
    state = await browser.ask("GET", "/idp/account/issuer", headers={"Accept": "application/json"})
    assert state.json() == {"issuer": BASE, "named": False}

    page = await browser.send(page, "/idp/account/issuer")
    assert page.path == SECURITY
    assert "names this server as your identity provider again" in page.text
    assert WARNING not in page.text
    for client in (application, server.alice):
        assert (await client.get(PRIVATE)).status == 200
    profile = (await server.alice.get(f"{PROFILE}.meta")).text
    assert "https://idp.example/" in profile  # what else is named stays


async def test_restoring_needs_a_recent_sign_in_and_the_forms_token(
    server: Server, browser: Browser, clock: FakeClock
) -> None:
    page = await sign_in(browser)
    token = csrf_token(page)
    await rename(server.alice)
    refused = await browser.post("/idp/account/issuer", {"csrf_token": "wrong"})
    assert refused.status == 403
    clock.advance(3600)
    page = await browser.post("/idp/account/issuer", {"csrf_token": token})
    assert page.path == "/idp/login"
    assert "again=issuer" in page.url
    assert "before your profile names this server again" in page.text
    nobody = Browser(server.application)
    assert (await nobody.post("/idp/account/issuer", {})).path == "/idp/login"


async def test_an_application_cannot_restore_the_statement_itself(
    server: Server, browser: Browser, app: App
) -> None:
    """The page takes no tokens."""
    await sign_in(browser)
    token = await app_token(browser, app)
    await rename(server.alice)
    application = server.public.with_token(token)
    assert (await application.post("/idp/account/issuer", "", FORM)).status == 403
    assert_refused(await application.get(PRIVATE))
    assert WARNING in (await whole_account(browser)).text


async def test_an_owner_without_write_access_to_the_profile_gets_an_error(
    server: Server, browser: Browser
) -> None:
    await sign_in(browser)
    rules = acl_turtle(
        PROFILE,
        (f"acl:agent <{ALICE}>", "+Read +Control"),
        ("acl:agentClass foaf:Agent", "Read"),
        owner=False,
    )
    await rename(server.alice, "https://idp.example/", BASE)
    assert (await server.alice.put(f"{PROFILE}.acl", rules, TURTLE)).status == 204
    token = csrf_token(await whole_account(browser))
    page = await browser.post("/idp/account/issuer", {"csrf_token": token})
    assert page.status == 403
    assert "Access denied" in page.text


async def test_a_long_profile_locks_nobody_out(server: Server) -> None:
    """An application may make a profile long, and must not shut its user out so."""
    before = (await server.alice.get(f"{PROFILE}.meta", accept="application/n-triples")).text
    padding = "".join(f'<#n{number}> <#p> "{"x" * 90}".\n' for number in range(11_000))
    answer = await server.alice.put(PROFILE, before + padding, TURTLE)
    assert answer.status == 204, answer.text
    assert (await server.alice.get(PRIVATE)).status == 200


async def test_a_token_that_is_refused_for_the_profile_can_still_be_revoked(
    server: Server, browser: Browser
) -> None:
    """The statement may be restored: what its application has revoked stays so."""
    await sign_in(browser)
    app = await register(server)
    token = await app_token(browser, app)
    await rename(server.alice)
    form = urlencode({"token": token, "client_id": app.client_id})
    assert (await server.public.post("/idp/token/revocation", form, FORM)).status == 200
    page = await browser.send(await whole_account(browser), "/idp/account/issuer")
    assert page.status == 200
    refused = await server.public.with_token(token).get(PRIVATE)
    assert refused.json()["message"] == "The token is revoked"


# --- No application passes for somebody else on the page that asks for consent -----------------


BOBS = f"{BASE}/bob/public"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://app.example/a/b?c", "app.example"),
        ("https://App.example:8443/", "app.example:8443"),
        ("http://[::1]:5000/callback", "[::1]:5000"),
        ("org.example.app:/callback", "org.example.app:"),
        ("https://\u0430pp.example/", "xn--pp-6kc.example"),
        ("https://ex\u00e4mple.org/app", "xn--exmple-cua.org"),
        (f"https://{'a' * 80}\u00e4.example/", f"{'a' * 80}\\xe4.example"),
        ("https://pods.example/bob/app", "pods.example/bob"),
        ("https://PODS.example:443/bob/app", "pods.example:443/bob"),
        ("https://pods.example/alice/../bob/app", "pods.example/bob"),
        ("https://pods.example/alice/%2E%2e/bob/app", "pods.example/bob"),
        ("https://pods.example//bob/app", "pods.example/bob"),
        ("https://pods.example/", "pods.example"),
        ("https://pods.example", "pods.example"),
        ("http://pods.example/bob/", "pods.example"),
    ],
)
def test_a_place_is_named_so_that_nobody_passes_for_another(url: str, shown: str) -> None:
    assert place_of(url, base_url="https://pods.example") == shown


@pytest.mark.parametrize(
    ("client_id", "hosts", "shown"),
    [
        ("0a1b2c", ("app.example",), ["app.example"]),
        ("0a1b2c", ("pods.example",), ["pods.example"]),
        ("0a1b2c", ("org.example.app:",), ["org.example.app:"]),
        ("https://app.example/id", ("app.example",), ["app.example"]),
        ("https://id.example/id", ("app.example",), ["id.example", "app.example"]),
        ("https://evil.example/id", ("pods.example",), ["evil.example", "pods.example"]),
        ("https://pods.example/bob/app", ("pods.example",), ["pods.example/bob"]),
        ("https://pods.example/bob/app", ("app.example",), ["pods.example/bob", "app.example"]),
        ("https://pods.example/bob/app", (), ["pods.example/bob"]),
        ("https://pods.example/app", ("pods.example",), ["pods.example/app"]),
        ("https://app.example/id", ("\u0430pp.example",), ["app.example", "xn--pp-6kc.example"]),
    ],
)
def test_the_places_of_a_connected_application_are_named_in_the_same_way(
    client_id: str, hosts: tuple[str, ...], shown: list[str]
) -> None:
    connection = ConnectedClient("id", client_id, None, hosts, (), since_s=1, last_used_s=None)
    assert list(places_of(connection, base_url="https://pods.example")) == shown


PODS = "https://pods.example"


def connection(number: int, *redirect_uris: str, name: str | None = None) -> ConnectedClient:
    hosts = tuple(urlsplit(each).netloc for each in redirect_uris)
    return ConnectedClient(
        f"i{number}", f"c{number}", name, hosts, (), number, number, redirect_uris
    )


def test_registrations_are_together_where_they_are_at_one_place_and_nowhere_else() -> None:
    listed = [
        connection(1, "https://app.example/a", name="A"),
        connection(2, "https://app.example/b"),
        connection(3, "https://app.example:8443/a", name="A"),
        connection(4, "https://pods.example/bob/app"),
        connection(5, "https://pods.example/carol/app"),
        connection(6, "https://app.example/a", "https://evil.example/"),
        connection(7),
        connection(8),
    ]
    shown = shown_applications(listed, base_url=PODS)
    assert [each.connection_ids for each in shown] == [
        ["i1", "i2"],
        ["i3"],
        ["i4"],
        ["i5"],
        ["i6"],
        ["i7"],
        ["i8"],
    ]
    assert [each.name for each in shown[:4]] == ["A", "A", "pods.example/bob", "pods.example/carol"]
    assert len({each.application_id for each in shown}) == len(shown)


async def test_an_application_in_a_pod_does_not_pass_for_the_server(
    server: Server, browser: Browser
) -> None:
    """A-51, A-86: Bob's document is on the provider's host, and so is where the code would go. On
    the account page it is Bob's still."""
    document = {
        "client_id": f"{BOBS}/app",
        "client_name": "localhost:3000",
        "redirect_uris": [f"{BOBS}/app.html"],
    }
    put = await server.bob.put("/bob/public/app", json.dumps(document), "application/json")
    assert put.status == 201, put.text
    rules = acl_turtle(
        "/bob/public/app",
        (f"acl:agent <{server.bob_web_id}>", "Read Write Control"),
        ("acl:agentClass foaf:Agent", "Read"),
        owner=False,
    )
    assert (await server.bob.put("/bob/public/app.acl", rules, "text/turtle")).status == 201
    app = App(server, f"{BOBS}/app")
    page = await browser.get(app.request(redirect_uri=f"{BOBS}/app.html"))
    assert "An application from localhost:3000/bob<" in page.text
    assert "You will continue to <strong>localhost:3000/bob</strong>" in page.text
    page = await browser.send(page, page.path, username="alice", password=password_of("alice"))
    await browser.send(page, f"{page.path}/confirm")  # the test server is on this device
    account = await whole_account(browser)
    assert '<p class="quiet">localhost:3000/bob · Since' in account.text
