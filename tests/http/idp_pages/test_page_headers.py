"""The headers of every page (A-45, A-192)."""

from __future__ import annotations

import re

import pytest

from tests.support.application import BASE, Start
from tests.support.browser import Browser, Page
from tests.support.clock import FakeClock
from tests.support.idp_pages import App, register, sign_in, whole_account

NONCE = re.compile(r"'nonce-([0-9a-f]{32})'")


async def _pages(browser: Browser, app: App) -> list[Page]:
    """Every page, once."""
    pages = [
        await browser.get("/idp/login"),
        await browser.get("/idp/register"),
        await browser.get(app.request()),
        await browser.get("/idp/auth?client_id=nobody"),
        await browser.get(f"/idp/interaction/{'0' * 64}"),
        await browser.get("/idp/session/end"),
        await _after_signing_in(browser, app),
        await browser.get("/idp/account/delete"),
        await browser.get("/idp/session/end"),
        await browser.post("/idp/login", {}, Sec_Fetch_Site="cross-site"),
    ]
    account = await whole_account(browser)
    pages.append(await browser.send(account, "/idp/account/client-credentials"))
    page = await browser.get(app.request(response_mode="form_post", prompt="none"))
    return [*pages, page]


async def _after_signing_in(browser: Browser, app: App) -> Page:
    await sign_in(browser)
    return await browser.get(app.request())


async def test_every_page_has_a_strict_policy_and_is_kept_nowhere(
    browser: Browser, app: App
) -> None:
    """A-45."""
    nonces = []
    for page in await _pages(browser, app):
        answer = page.answer
        assert answer.header("content-type") == "text/html; charset=utf-8"
        assert answer.header("cache-control") == "no-store"
        assert answer.header("x-content-type-options") == "nosniff"
        assert answer.header("referrer-policy") == "no-referrer"
        policy = answer.header("content-security-policy") or ""
        rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
        [nonce] = set(NONCE.findall(policy))
        assert rules.pop("form-action") in {"'self'", "'self' https://app.example"}
        assert rules == {
            "default-src": "'none'",
            "script-src": f"'nonce-{nonce}'",
            "style-src": "'self'",
            "img-src": "'self' data:",
            "connect-src": "'self'",
            "frame-ancestors": "'none'",
            "base-uri": "'none'",
        }
        assert "<style" not in page.text
        assert len(re.findall(r"<script", page.text)) == len(
            re.findall(f'<script nonce="{nonce}">', page.text)
        )
        assert not re.search(r' (?:on[a-z]+|style)="', page.text)
        nonces.append(nonce)
    assert len(set(nonces)) == len(nonces), "each answer has its own"


async def test_a_page_loads_nothing_but_its_style(browser: Browser, app: App) -> None:
    """No third-party requests; the style sheets are files of this server."""
    for page in await _pages(browser, app):
        for link in re.findall(r"<link [^>]*>", page.text):
            assert re.fullmatch(
                r'<link rel="stylesheet" href="/\.pages/assets/[0-9a-f]+/\w+\.css">', link
            )
        assert not re.search(r"<(?:img|iframe|object|video|audio|source)\b", page.text)
        assert not re.search(r"\bsrc=|@import|url\(", page.text)


async def test_every_route_for_get_also_handles_head(browser: Browser) -> None:
    for path in ("/idp/login", "/idp/register", "/idp/auth", "/idp/session/end"):
        answer = await browser.ask("HEAD", path)
        assert answer.status == 200
        assert answer.body == b""
        assert int(answer.header("content-length") or "") > 0


@pytest.mark.parametrize(
    ("uri", "target"),
    [
        ("https://app.example:8443/callback", "https://app.example:8443"),
        ("http://127.0.0.1:8080/callback", "http://127.0.0.1:8080"),
        ("http://[::1]:8080/callback", "http:"),
        ("com.example.app:/callback", "com.example.app:"),
        ("com.example.app://callback", "com.example.app:"),
    ],
)
async def test_forms_may_lead_to_the_application_only(
    browser: Browser, app: App, uri: str, target: str
) -> None:
    """A-45: what a policy cannot name by its origin it names by its scheme."""
    native = await register(app.server, redirect_uris=[uri], application_type="native")
    page = await browser.get(native.request(redirect_uri=uri))
    policy = page.answer.header("content-security-policy") or ""
    assert f"form-action 'self' {target};" in policy


async def test_over_https_it_stays_so(start: Start, clock: FakeClock) -> None:
    server = await start(clock=clock, idp=True, base_url="https://pods.example")
    browser = Browser(server.application, base_url="https://pods.example")
    page = await browser.get("/idp/login")
    assert page.answer.header("strict-transport-security")


async def test_every_answer_of_an_account_is_kept_nowhere(browser: Browser) -> None:
    await sign_in(browser)
    for path in ("", "/sessions", "/grants", "/client-credentials"):
        answer = await browser.ask(
            "GET", f"/idp/account{path}", headers={"Accept": "application/json"}
        )
        assert answer.status == 200
        assert answer.header("cache-control") == "no-store"
        assert BASE not in (answer.header("link") or "")
