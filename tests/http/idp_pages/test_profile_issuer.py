"""A profile says whose tokens count for its WebID, those of this server's provider included."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from podstead.web.pages.addresses import SECURITY
from tests.support.application import BASE, Server, acl_turtle
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
