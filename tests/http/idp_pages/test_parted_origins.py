"""A provider with an origin of its own: what is at one of both is not at the other."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from podstead.web.pages.addresses import SECURITY
from tests.support.application import BASE, Server, Start, password_of
from tests.support.asgi import Client
from tests.support.browser import Browser
from tests.support.clock import FakeClock
from tests.support.idp_pages import App, register, reply_of, sign_in, whole_account
from tests.support.signing import Signer, decoded, proof_claims

PROVIDER_HOST = "idp.localhost:3000"
PROVIDER = f"http://{PROVIDER_HOST}"
TURTLE = "text/turtle"


@pytest.fixture
async def server(start: Start, clock: FakeClock) -> Server:
    return await start(clock=clock, idp=True, idp_base_url=PROVIDER)


@pytest.fixture
def provider(server: Server) -> Client:
    """The public, at the provider's origin."""
    return Client(server.application, host=PROVIDER_HOST)


@pytest.fixture
def browser(server: Server) -> Browser:
    return Browser(server.application, base_url=PROVIDER)


@pytest.fixture
async def app(server: Server, provider: Client) -> App:
    """An application that has registered itself at the provider."""
    return await register(replace(server, public=provider))


ELSEWHERE = (
    "/alice/",
    "/alice/private/",
    "/alice/.acl",
    "/alice/.well-known/solid",
    "/.pods",
    "/.well-known/solid",
    "/.notifications",
    "/.notifications/WebSocketChannel2023/",
    "/alice/private/info/refs?service=git-upload-pack",
)
OF_THE_PROVIDER = (
    "/idp/login",
    "/idp/register",
    "/idp/account",
    "/idp/auth",
    "/idp/token",
    "/idp/reg",
    "/idp/me",
    "/idp/credentials",
    "/idp/session/end",
    "/.well-known/openid-configuration",
    "/.well-known/oauth-authorization-server",
    "/.well-known/jwks.json",
)


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"])
async def test_no_pod_is_at_the_origin_of_the_provider(
    server: Server, provider: Client, method: str
) -> None:
    """Whoever asks, and whatever for: also the owner, and nothing is changed."""
    before = await server.alice.get("/alice/private/", accept=TURTLE)
    owner = {"Authorization": server.alice.authorization, "Content-Type": TURTLE}
    for path in ELSEWHERE:
        for headers in (owner, {"Content-Type": TURTLE}):
            answer = await provider.request(method, path, headers=headers, body=b"<#a> <#b> 1.")
            assert answer.status == 404, path
    after = await server.alice.get("/alice/private/", accept=TURTLE)
    assert (after.status, after.header("etag")) == (200, before.header("etag"))


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_nothing_of_the_provider_is_at_the_origin_of_the_pods(
    server: Server, provider: Client, method: str
) -> None:
    for path in OF_THE_PROVIDER:
        assert (await server.public.request(method, path)).status == 404, path
        assert (await provider.request(method, path)).status != 404, path


async def test_every_route_is_at_one_of_both_origins(server: Server, provider: Client) -> None:
    """But for the page that says what the server is, the icon, the style, and what the header and
    the footer of pages lead to."""
    pods = {route.path for route in server.application.routes.services}
    parted = server.application.provider_routes[PROVIDER_HOST]
    own = {route.path for route in parted.services}
    assert pods & own == {
        "/",
        "/favicon.ico",
        "/.pages/assets/{hash}/{file}",
        "/.pages/sign-in",
        "/.pages/sign-out",
        "/.pages/language",
        "/.pages/security",
        "/.pages/security/browsers",
        "/.pages/welcome",
        "/.pages/apps",
    }
    console = {path for path in pods | own if path.startswith(("/.pages/console", "/.pages/link"))}
    assert console <= own - pods
    assert not {path for path in pods if path.startswith(("/idp", "/.well-known/jwks"))}
    assert set(server.application.provider_routes) == {PROVIDER_HOST}
    options = await provider.request("OPTIONS", "/alice/")
    assert (options.status, options.header("allow")) == (204, "OPTIONS")


async def test_the_provider_names_its_own_origin_throughout(
    server: Server, provider: Client
) -> None:
    described = (await provider.get("/.well-known/openid-configuration")).json()
    assert described["issuer"] == PROVIDER
    places = [value for name, value in described.items() if name.endswith(("_endpoint", "_uri"))]
    assert places
    assert all(place.startswith(f"{PROVIDER}/") for place in places)
    facts = (await server.public.get("/", accept="application/json")).json()
    assert facts["signIn"] == f"{PROVIDER}/idp/login"
    page = (await server.public.get("/", accept="text/html")).text
    assert f'href="{PROVIDER}/idp/register"' in page
    profile = (await server.public.get("/alice/", accept=TURTLE)).text
    assert f"oidcIssuer <{PROVIDER}>" in profile
    sent = {"name": "carol", "email": "c@example.org", "password": "long enough it is"}
    made = (await server.public.post("/.pods", json.dumps(sent), "application/json")).json()
    assert made["webId"] == f"{BASE}/carol/#me"
    assert (made["idpIssuer"], made["loginUrl"]) == (PROVIDER, f"{PROVIDER}/idp/auth")


async def test_a_challenge_leads_to_the_provider(server: Server) -> None:
    for challenge in (await server.public.get("/alice/private/")).header_lines("www-authenticate"):
        if challenge.startswith(("DPoP", "Bearer")):
            assert f'as_uri="{PROVIDER}"' in challenge


async def test_a_sign_in_at_the_provider_gives_access_at_the_pods(
    server: Server, browser: Browser, app: App
) -> None:
    page = await browser.get(app.request())
    assert page.url.startswith(f"{PROVIDER}/idp/interaction/")
    page = await browser.send(page, page.path, username="alice", password=password_of("alice"))
    if "code" not in page.url:
        page = await browser.send(page, f"{page.path}/confirm")
    assert reply_of(page)["iss"] == [PROVIDER]
    tokens = await app.tokens(page)
    claims: dict[str, Any] = decoded(tokens["access_token"].split(".")[1])
    assert (claims["iss"], claims["webid"]) == (PROVIDER, f"{BASE}/alice/#me")
    at_pods = Client(server.application, host="localhost:3000", token=tokens["access_token"])
    assert (await at_pods.get("/alice/private/")).status == 200


async def test_a_script_gets_a_token_for_a_proof_of_the_address_at_the_provider(
    server: Server, provider: Client, clock: FakeClock
) -> None:
    sent = json.dumps({"username": "alice", "password": password_of("alice")})
    statuses = {}
    for origin in (PROVIDER, BASE):
        claims = proof_claims("POST", f"{origin}/idp/credentials", clock.now_s())
        proof = Signer.new().proof(claims)
        answer = await provider.post("/idp/credentials", sent, "application/json", dpop=proof)
        statuses[origin] = answer.status
    assert statuses[PROVIDER] == 200
    assert statuses[BASE] in {400, 401}


async def test_a_session_is_of_no_use_at_the_pods(server: Server, browser: Browser) -> None:
    account = await sign_in(browser)
    assert account.url.startswith(f"{PROVIDER}{SECURITY}")
    at_pods = Browser(server.application, base_url=BASE, cookies=dict(browser.cookies))
    assert (await whole_account(at_pods)).status == 404
    answer = await at_pods.ask("GET", "/alice/private/", headers={"Sec-Fetch-Mode": "cors"})
    assert answer.status == 401
    page = await at_pods.get("/alice/private/")
    assert page.path == "/.pages/sign-in"
    assert answer.header_lines("set-cookie") == []


@pytest.mark.parametrize("view", ["sign-in", "browsers", "programs", "events", "account"])
async def test_the_account_has_its_pages_at_the_provider(browser: Browser, view: str) -> None:
    """In the dress and the languages of the others, without links to what is not there."""
    await sign_in(browser)
    page = await browser.get(f"/.pages/security?view={view}", Accept_Language="de")
    assert (page.status, page.path) == (200, "/.pages/security")
    assert 'lang="de"' in page.text
    assert f'href="{BASE}/alice/"' in page.text
    links = set(re.findall(r'(?:href|action)="(/[^"#?]*)', page.text))
    for link in sorted(each for each in links if not each.startswith("/.pages/assets/")):
        assert (await browser.ask("GET", link)).status != 404, link
    assert (await browser.get("/.pages/apps")).status == 200


@pytest.mark.parametrize(
    "said",
    [
        {"Sec-Fetch-Site": "same-site", "Origin": BASE},
        {"Sec-Fetch-Site": "cross-site", "Origin": BASE},
        {"Origin": BASE},
        {"Origin": "null"},
    ],
)
async def test_a_page_of_a_pod_sends_no_form_of_the_provider(
    browser: Browser, said: dict[str, str]
) -> None:
    """The pods are another origin, although browsers take both for the same site."""
    account = await sign_in(browser)
    token = account.form("/.pages/sign-out").fields["csrf_token"]
    form = {"Content-Type": "application/x-www-form-urlencoded", **said}
    answer = await browser.ask(
        "POST", "/idp/logout", headers=form, body=f"csrf_token={token}".encode()
    )
    assert answer.status == 403
    assert (await whole_account(browser)).path == SECURITY


async def test_no_page_of_a_pod_reads_what_the_provider_answers(provider: Client) -> None:
    answer = await provider.get("/idp/login", origin=BASE)
    assert answer.header("access-control-allow-origin") is None


@pytest.mark.feature("passkeys")
async def test_passkeys_are_made_for_the_host_of_the_provider(browser: Browser) -> None:
    account = await sign_in(browser)
    script = {
        "Accept": "application/json",
        "Content-Type": "application/json",
        "Sec-Fetch-Site": "same-origin",
    }
    sent = json.dumps(
        {"csrf_token": account.form("/.pages/sign-out").fields["csrf_token"]}
    ).encode()
    answer = await browser.ask("POST", "/idp/passkey/register/options", headers=script, body=sent)
    assert answer.json()["rp"] == {"name": PROVIDER_HOST, "id": "idp.localhost"}


async def test_pages_of_the_provider_name_the_addresses_of_pods(browser: Browser) -> None:
    registration = await browser.get("/idp/register")
    assert f"{BASE}/name/" in registration.text
    account = await sign_in(browser)
    assert f"{BASE}/alice/" in account.text
    assert f"{PROVIDER}/alice/" not in account.text
