"""An application does not decide who its user is, unless the user expressly lets it.

The application holds what every application gets: a token by the authorization code grant. The same
requests with a token of Alice's own succeed, so what is refused is the credential and nothing else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.http.identity import IDENTITY, PREFIXES, at, patch, put
from tests.support.application import BASE, Server, acl_turtle
from tests.support.asgi import Answer, Client
from tests.support.browser import FORM, Browser, Page
from tests.support.idp_pages import App, register, sign_in, whole_account
from tests.support.rdf import N_TRIPLES, TURTLE, Triples, said, triples, written
from tests.support.transfers import transfer

ROOT = "/alice/"
CARD = "/alice/public/card"
ISSUER = "http://www.w3.org/ns/solid/terms#oidcIssuer"
SCOPE = "webid:write"
MAKING_A_PROFILE = {name: text for name, text in IDENTITY.items() if name != "schema same as"}
"""All but a link to another page about the same thing."""


@dataclass(frozen=True)
class Applied:
    """Alice's application, and what it can do."""

    server: Server
    app: Client

    async def profile(self, path: str = ROOT) -> Triples:
        answer = await self.server.alice.get(f"{path}.meta" if path == ROOT else path)
        return said(answer, f"{BASE}{path}")


@pytest.fixture
async def applied(server: Server, browser: Browser, app: App) -> Applied:
    """Two profiles: Alice's own, and one in a document of her pod."""
    content = at(CARD, IDENTITY["issuer"] + IDENTITY["key with a name"])
    assert (await put(server.alice, CARD, content)).status == 201
    tokens = await _tokens(browser, app)
    assert tokens["scope"] == "openid webid"
    return Applied(server, server.public.with_token(tokens["access_token"]))


async def _tokens(
    browser: Browser, app: App, *, tick: bool = False, **request: str
) -> dict[str, Any]:
    if (await whole_account(browser)).path == "/idp/login":
        await sign_in(browser)
    page = await browser.get(app.request(**{"scope": "openid webid", **request}))
    if "code=" not in page.url:
        page = await _confirm(browser, page, tick=tick)
    return await app.tokens(page)


async def _confirm(browser: Browser, page: Page, *, tick: bool = False) -> Page:
    ticked = {SCOPE: "yes"} if tick else {}
    return await browser.send(page, f"{page.path}/confirm", **ticked)


def assert_refused(answer: Answer) -> None:
    """The refusal says what would be needed."""
    assert answer.status == 403, answer.text
    body = answer.json()
    assert body["error"] == "insufficient_scope"
    for needed in (SCOPE, "consent page", "/idp/credentials", "pod token", "client certificate"):
        assert needed in body["message"]


# --- what it cannot do --------------------------------------------------------------------------


@pytest.mark.parametrize("statement", IDENTITY.values(), ids=IDENTITY)
@pytest.mark.parametrize("target", [ROOT, f"{ROOT}.meta", CARD])
async def test_an_application_cannot_change_who_its_user_is(
    applied: Applied, statement: str, target: str
) -> None:
    document = CARD if target == CARD else ROOT
    before = await applied.profile(document)
    changed = before | at(document, statement)

    if changed != before:
        assert_refused(await put(applied.app, target, changed))
        added = changed - before
        for kind in ("text/n3", "application/sparql-update"):
            assert_refused(await patch(applied.app, target, "insert", added, kind))
        assert await applied.profile(document) == before
        assert (await put(applied.server.alice, target, changed)).status == 204
    assert_refused(await put(applied.app, target, triples("", TURTLE, BASE + document)))
    everything = b"DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }"
    sparql = {"Content-Type": "application/sparql-update"}
    assert_refused(await applied.app.request("PATCH", target, headers=sparql, body=everything))
    if target != ROOT:
        assert_refused(await applied.app.delete(target))
    assert len(await applied.profile(document)) == len(changed)


@pytest.mark.parametrize("statement", MAKING_A_PROFILE.values(), ids=MAKING_A_PROFILE)
async def test_an_application_cannot_make_a_profile(applied: Applied, statement: str) -> None:
    """By PUT, PATCH and POST, as a document, a container or a description."""
    app, owner = applied.app, applied.server.alice
    if "[" not in statement:
        for kind in ("text/n3", "application/sparql-update"):
            path = "/alice/new"
            assert_refused(await patch(app, path, "insert", at(path, statement), kind))
    for path in ("/alice/new", "/alice/new/", f"{CARD}.meta", "/alice/public/.meta"):
        assert_refused(await put(app, path, at(path, statement)))
    turtle = PREFIXES + statement
    basic = '<http://www.w3.org/ns/ldp#BasicContainer>; rel="type"'
    for headers in ({"slug": "new"}, {"slug": "new", "link": basic}):
        assert_refused(await app.post("/alice/public/", turtle, TURTLE, **headers))
    assert (await owner.get("/alice/new")).status == 404
    assert (await owner.post("/alice/public/", turtle, TURTLE, slug="new")).status == 201
    assert_refused(await app.delete("/alice/public/new"))
    assert_refused(await app.put("/alice/public/new", "other", "text/plain"))
    assert (await owner.delete("/alice/public/new")).status == 204


async def test_an_application_cannot_make_a_profile_of_access_rules(applied: Applied) -> None:
    """Rules are a document with a URL of its own as well."""
    rules = acl_turtle("/alice/public/")
    statement = f"<#me> <{ISSUER}> <https://evil.example/>."
    assert_refused(await applied.app.put("/alice/public/.acl", rules + statement, TURTLE))
    assert (await applied.app.put("/alice/public/.acl", rules, TURTLE)).status == 204
    for kind in ("text/n3", "application/sparql-update"):
        stated = triples(statement, TURTLE, f"{BASE}/alice/public/.acl")
        assert_refused(await patch(applied.app, "/alice/public/.acl", "insert", stated, kind))


async def test_an_application_cannot_delete_a_profile_with_what_it_describes(
    applied: Applied,
) -> None:
    """C-20: a description goes with its document."""
    photo, owner = "/alice/public/photo.jpg", applied.server.alice
    assert (await owner.put(photo, "x", "image/jpeg")).status == 201
    stated = at(f"{photo}.meta", IDENTITY["issuer"])
    assert (await put(owner, f"{photo}.meta", stated)).status == 201
    assert_refused(await applied.app.delete(photo))
    assert (await owner.delete(photo)).status == 204


@pytest.mark.parametrize("rule", ["acl:agentClass foaf:Agent", "acl:agent <{bob}>"])
async def test_an_application_cannot_have_an_accomplice_change_the_owners_identity(
    applied: Applied, rule: str
) -> None:
    """It may change access rules; but Control of a profile does not make anybody its owner."""
    server = applied.server
    before = await applied.profile()
    rules = (await server.alice.get(f"{ROOT}.acl")).text + (
        "\n@prefix acl: <http://www.w3.org/ns/auth/acl#>."
        "\n@prefix foaf: <http://xmlns.com/foaf/0.1/>."
        f"\n<#more> a acl:Authorization; {rule.format(bob=server.bob_web_id)}; "
        f"acl:accessTo <{BASE}{ROOT}>; acl:mode acl:Read, acl:Write, acl:Control."
    )
    assert (await applied.app.put(f"{ROOT}.acl", rules, TURTLE)).status == 204
    changed = before | at(ROOT, IDENTITY["same as"])
    refused = await put(server.bob, ROOT, changed)
    assert refused.status == 403
    assert "Only the owner" in refused.json()["message"]
    assert (await put(server.public, ROOT, changed)).status == 401
    assert await applied.profile() == before
    harmless = before | at(ROOT, "<#me> foaf:nick 'Al'.")
    assert (await put(server.bob, ROOT, harmless)).status == 204
    assert (await put(server.alice, ROOT, changed)).status == 204


async def test_nobody_states_an_identity_without_a_credential(server: Server) -> None:
    """Control for everybody lets everybody write, and nobody become somebody."""
    everybody = ("acl:agentClass foaf:Agent", "+Read +Write +Control")
    assert (await server.put_acl("/alice/public/", everybody)).status == 204
    assert (await put(server.public, CARD, at(CARD, IDENTITY["issuer"]))).status == 401
    assert (await put(server.public, CARD, at(CARD, "<#me> foaf:name 'A'."))).status == 201
    assert (await put(server.bob, CARD, at(CARD, IDENTITY["issuer"]))).status == 204


# --- what it can do -----------------------------------------------------------------------------


@pytest.mark.parametrize("target", [ROOT, f"{ROOT}.meta", CARD])
async def test_an_application_edits_a_profile_and_leaves_its_identity(
    applied: Applied, target: str
) -> None:
    """As the profile editors of SolidOS and others do: whole documents, and patches."""
    document = CARD if target == CARD else ROOT
    before = await applied.profile(document)
    edited = before | at(document, "<#me> foaf:name 'Alice P.'; foaf:img </alice/public/a.jpg>.")
    for content in (edited, before, edited):
        assert (await put(applied.app, target, content)).status == 204
        assert await applied.profile(document) == content
    nick = at(document, "<#me> foaf:nick 'Al'.")
    for verb in ("insert", "delete"):
        assert (await patch(applied.app, target, verb, nick, "text/n3")).status == 204
    assert await applied.profile(document) == edited


async def test_an_application_links_things_to_pages_about_them(applied: Applied) -> None:
    """Recipes and films name such pages by ``schema:sameAs``: their documents are no profiles."""
    path = "/alice/films"
    film = "<#it> schema:sameAs <https://films.example/{0}>; owl:sameAs <urn:film:{0}>."
    for number, status in enumerate((201, 204, 204)):
        assert (await put(applied.app, path, at(path, film.format(number)))).status == status
    assert_refused(await put(applied.app, path, at(path, film.format(2) + IDENTITY["issuer"])))
    assert (await applied.app.delete(path)).status == 204


async def test_a_statement_can_be_read_from_any_form_of_a_document(applied: Applied) -> None:
    """What is compared is what the documents say."""
    before = written(await applied.profile(CARD), N_TRIPLES)
    assert (await applied.app.put(CARD, before, N_TRIPLES)).status == 204
    assert_refused(await applied.app.put(CARD, "", N_TRIPLES))


# --- the ways that are left ---------------------------------------------------------------------


async def test_the_owners_own_credentials_state_identity(
    server: Server, browser: Browser, app: App
) -> None:
    """A token for a password, and one for client credentials."""
    page = await sign_in(browser)
    token = page.form("/idp/account/client-credentials").fields["csrf_token"]
    answer = await browser.ask(
        "POST",
        "/idp/account/client-credentials",
        headers={"Accept": "application/json", "X-CSRF-Token": token},
    )
    made = answer.json()
    form = {
        "grant_type": "client_credentials",
        "client_id": made["id"],
        "client_secret": made["secret"],
    }
    script = (await server.public.post("/idp/token", urlencode(form), FORM)).json()
    for owner in (server.alice, server.public.with_token(script["access_token"])):
        for content in (at(CARD, IDENTITY["issuer"]), at(CARD, IDENTITY["storage"])):
            assert (await put(owner, CARD, content)).status in {201, 204}


async def test_the_permission_is_requested_in_plain_words_and_given_by_a_tick(
    server: Server, browser: Browser, app: App
) -> None:
    await sign_in(browser)
    page = await browser.get(app.request(scope="openid webid"))
    assert "change who can act as you" not in page.text
    scopes = f"openid webid {SCOPE}"
    page = await browser.get(app.request(scope=scopes))
    assert "change who can act as you" in page.text
    assert f'name="{SCOPE}" type="checkbox"' in page.text
    assert not re.search(rf'<input[^>]*name="{SCOPE}"[^>]* checked', page.text)

    declined = await app.tokens(await _confirm(browser, page))
    assert declined["scope"] == "openid webid"
    content = at(CARD, IDENTITY["issuer"])
    assert_refused(await put(server.public.with_token(declined["access_token"]), CARD, content))

    page = await browser.get(app.request(scope=scopes))
    allowed = await app.tokens(await _confirm(browser, page, tick=True))
    assert allowed["scope"] == scopes
    assert (
        await put(server.public.with_token(allowed["access_token"]), CARD, content)
    ).status == 201


async def test_the_permission_is_not_given_without_a_request(
    server: Server, browser: Browser, app: App
) -> None:
    """Neither by ticking a box that the page did not have, nor since another application has it."""
    tokens = await _tokens(browser, app, tick=True)
    assert tokens["scope"] == "openid webid"
    tokens = await _tokens(browser, app, tick=True, scope=f"openid webid {SCOPE}")
    assert tokens["scope"] == f"openid webid {SCOPE}"
    other = await _tokens(browser, await register(server), scope=f"openid webid {SCOPE}")
    assert other["scope"] == "openid webid"
    plain = await _tokens(browser, app)
    client = server.public.with_token(plain["access_token"])
    assert_refused(await put(client, CARD, at(CARD, IDENTITY["issuer"])))


async def test_signing_in_for_an_application_does_not_include_the_permission(
    browser: Browser, app: App
) -> None:
    page = await browser.get(app.request(scope=f"openid webid {SCOPE}"))
    page = await browser.send(page, page.path, username="alice", password="the password of alice")
    assert "change who can act as you" in page.text


async def test_the_permission_is_remembered_and_can_be_taken_back(
    browser: Browser, app: App
) -> None:
    asked = f"openid webid {SCOPE}"
    assert (await _tokens(browser, app, tick=True, scope=asked))["scope"] == asked
    assert (await _tokens(browser, app, scope=asked, prompt="none"))["scope"] == asked
    assert "Changes who can act as you" in (await whole_account(browser)).text
    again = await _tokens(browser, app, scope=asked, prompt="consent")
    assert again["scope"] == "openid webid"
    page = await browser.get(app.request(scope=asked, prompt="none"))
    assert "error=consent_required" in page.url


async def test_a_refreshed_token_reaches_no_further(
    server: Server, browser: Browser, app: App
) -> None:
    """Asking for the scope when refreshing adds nothing (RFC 6749 section 6)."""
    scopes = "openid webid offline_access"
    tokens = await _tokens(browser, app, scope=scopes)
    form = {
        "grant_type": "refresh_token",
        "refresh_token": tokens["refresh_token"],
        "client_id": app.client_id,
        "scope": f"{scopes} {SCOPE}",
    }
    answer = await server.public.post("/idp/token", urlencode(form), FORM)
    if answer.status == 200:
        assert SCOPE not in answer.json()["scope"]
        client = server.public.with_token(answer.json()["access_token"])
        assert_refused(await put(client, CARD, at(CARD, IDENTITY["issuer"])))
    else:
        assert answer.json()["error"] == "invalid_scope"


async def test_a_later_write_is_compared_with_what_the_earlier_left(applied: Applied) -> None:
    """What a version states is remembered: with that version only."""
    path = "/alice/public/notes"
    plain, stated = at(path, "<#me> foaf:name 'A'."), at(path, IDENTITY["storage"])
    app, owner = applied.app, applied.server.alice
    for _ in range(2):
        assert (await put(app, path, plain)).status in {201, 204}
        assert_refused(await put(app, path, stated))
        assert (await put(owner, path, stated)).status == 204
        assert (await put(app, path, stated | plain)).status == 204
        assert_refused(await put(app, path, plain))
        assert (await put(owner, path, plain)).status == 204


@pytest.mark.parametrize("method", ["COPY", "MOVE"])
async def test_an_application_cannot_move_a_profile(applied: Applied, method: str) -> None:
    """Not away, not to a new URL, not over another document, and not inside a tree."""
    app, owner = applied.app, applied.server.alice
    plain = "/alice/public/plain"
    relative = PREFIXES + IDENTITY["issuer"]  # so that a copy would state it of itself
    assert (await owner.put(CARD, relative, TURTLE)).status == 204
    assert (await put(owner, plain, at(plain, "<#it> foaf:name 'It'."))).status == 201
    before = await applied.profile(CARD)
    for source, destination in (
        (CARD, "/alice/public/other"),
        (plain, CARD),
        ("/alice/public/", "/alice/elsewhere/"),
    ):
        answer = await transfer(app, method, source, destination)
        assert answer.status == 403, (source, destination)
    assert await applied.profile(CARD) == before
    assert (await transfer(app, method, plain, "/alice/public/fine")).status == 201
    assert (await transfer(owner, method, CARD, "/alice/public/other")).status == 201
