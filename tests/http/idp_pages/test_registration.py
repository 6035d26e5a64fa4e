"""A person makes themselves an account (A-95, A-96)."""

from __future__ import annotations

import html
import json
import re
import urllib.parse
from dataclasses import replace

import pytest

from podstead.app.adapters.keys import ensure_token_key
from podstead.config import Settings
from podstead.pods.names import UnusablePodName, check_name
from podstead.storage.keys import KeyFiles
from podstead.storage.root import prepare_root
from podstead.web.pages.rendering import refusal_text
from tests.support.application import BASE, Server, Start, running
from tests.support.browser import Browser, Page
from tests.support.clock import FakeClock
from tests.support.idp_pages import App, reply_of

PASSWORD = "a few words in a row"
GOOD = {
    "username": "carol",
    "email": "carol@example.org",
    "password": PASSWORD,
    "confirmPassword": PASSWORD,
}


async def test_an_account_and_a_pod_are_made_and_the_person_is_signed_in(browser: Browser) -> None:
    page = await _register(browser)
    assert (page.status, page.path) == (200, "/.pages/welcome")
    assert f"{BASE}/carol/#me" in page.text
    answer = await browser.ask("GET", "/carol/", headers={"Accept": "text/turtle"})
    assert answer.status == 200
    assert f"<{BASE}>" in answer.text, "the profile names the provider"


async def test_an_email_address_is_optional(browser: Browser) -> None:
    page = await _register(browser, email="")
    assert page.path == "/.pages/welcome"
    assert "Add an e-mail address" in page.text


async def test_the_welcome_keeps_a_way_back_in_and_leads_to_the_files(browser: Browser) -> None:
    page = await _register(browser, email="")
    assert "Keep a way back in" in page.text
    assert f"{BASE}/carol/" in page.text
    typed = {"email": "carol@example.org", "current": "wrong"}
    page = await browser.send(page, "/idp/account/email", **typed)
    assert page.path == "/.pages/welcome"
    assert "The current password is wrong" in page.text
    page = await browser.send(page, "/idp/account/email", **typed | {"current": GOOD["password"]})
    assert "carol@example.org" in page.text
    page = await browser.get("/.pages/welcome")
    assert 'href="/.pages/files/carol/"' in page.text
    assert (await browser.get("/.pages/files/carol/")).status == 200


async def test_who_wanted_to_see_a_page_is_led_to_it_from_the_welcome(browser: Browser) -> None:
    wanted = "/.pages/files/alice/photos/?view=grid&sort=-changed"
    page = await browser.get(wanted)
    [link] = re.findall(r'href="(/idp/register\?[^"]*)"', page.text)
    page = await browser.send(
        await browser.get(html.unescape(link)),
        "/idp/register",
        **GOOD | {"confirmPassword": "other"},
    )
    assert page.status == 400, "and the page is remembered when the form is shown again"
    page = await browser.send(page, "/idp/register", **GOOD)
    assert page.path == "/.pages/welcome"
    assert f'href="{html.escape(wanted)}"' in page.text
    page = await browser.send(page, "/idp/account/two-factor/recovery-codes")
    [link] = re.findall(r'href="(/.pages/welcome[^"]*)"', page.text)
    page = await browser.get(html.unescape(link))
    assert f'href="{html.escape(wanted)}"' in page.text, "after a step, too"


async def test_the_welcome_leads_to_pages_of_this_server_only(browser: Browser) -> None:
    page = await browser.get("/idp/register?next=https://evil.example/")
    page = await browser.send(page, "/idp/register", **GOOD)
    assert page.url.endswith("/.pages/welcome")
    for address in ("https://evil.example/", "//evil.example/.pages/", "javascript:alert(1)"):
        page = await browser.get(f"/.pages/welcome?next={urllib.parse.quote(address, safe='')}")
        assert page.status == 200
        assert "wanted to see" not in page.text
        assert "evil.example" not in page.text.partition("<footer")[0]


async def test_a_person_sent_by_an_application_returns_to_it(browser: Browser, app: App) -> None:
    """A-95: the page names the application, as the one to sign in on does."""
    page = await browser.get(app.request())
    uid = page.path.rpartition("/")[2]
    assert f'href="/idp/register?uid={uid}"' in page.text
    page = await browser.get(f"/idp/register?uid={uid}")
    assert "Notes" in page.text
    assert "app.example" in page.text
    page = await browser.send(page, "/idp/register", **GOOD)
    assert "code" in reply_of(page)
    tokens = await app.tokens(page)
    assert tokens["scope"] == "openid webid"


@pytest.mark.parametrize(
    ("changes", "field", "status"),
    [
        ({"username": "car.ol"}, "username", 400),
        ({"username": "Alice"}, "username", 409),
        ({"username": "c a r"}, "username", 400),
        ({"username": "c" * 65}, "username", 400),
        ({"username": ""}, "username", 400),
        ({"username": "idp"}, "username", 400),
        ({"username": "alice"}, "username", 409),
        ({"email": "carol"}, "email", 400),
        ({"email": "ALICE@example.org"}, "email", 409),
        ({"password": "short", "confirmPassword": "short"}, "password", 400),
        ({"password": "", "confirmPassword": ""}, "password", 400),
        ({"confirmPassword": "another one entirely"}, "confirmPassword", 400),
        ({"confirmPassword": ""}, "confirmPassword", 400),
    ],
)
async def test_what_is_wrong_is_said_at_its_field(
    browser: Browser, changes: dict[str, str], field: str, status: int
) -> None:
    """A-95: what was typed stays, but for passwords; nothing was made."""
    page = await _register(browser, **changes)
    assert (page.status, page.path) == (status, "/idp/register")
    assert f'id="{field}-error"' in page.text
    assert page.text.count('aria-invalid="true"') == 1
    typed = page.form("/idp/register").fields
    sent = {**GOOD, **changes}
    assert typed == {
        "username": sent["username"],
        "email": sent["email"],
        "password": "",
        "confirmPassword": "",
    }
    assert "podstead-session" not in browser.cookies
    page = await _register(browser)
    assert page.path == "/.pages/welcome", page.text


@pytest.mark.parametrize("name", ["c", "Carol", "carol_2", "-", "x" * 64])
async def test_the_page_takes_every_name_that_a_pod_may_have(browser: Browser, name: str) -> None:
    """One rule for the page, programs and commands."""
    page = await _register(browser, username=name)
    assert page.path == "/.pages/welcome", page.text
    assert f"{BASE}/{name}/" in page.text


@pytest.mark.parametrize("name", ["c a", "c.a", "ä", "x" * 65, "", "idp"])
async def test_the_page_says_of_a_name_what_the_server_says_to_programs(
    server: Server, browser: Browser, name: str
) -> None:
    """The pattern of its field is the same rule, so browsers refuse the rest before it is sent."""
    sent = json.dumps({"name": name, "email": "c@example.org", "password": "long enough"})
    message = (await server.public.post("/.pods", sent, "application/json")).json()["message"]
    page = await _register(browser, username=name)
    with pytest.raises(UnusablePodName) as refused:
        check_name(name)
    assert str(refused.value) == message
    assert refusal_text(refused.value) in html.unescape(page.text)
    pattern = re.search(r'pattern="([^"]*)"', page.text)
    assert pattern is not None
    assert bool(re.fullmatch(pattern[1], name)) == (name == "idp")


async def test_a_program_registers_with_json_and_without_cookies(server: Server) -> None:
    """A-95."""
    headers = {"Accept": "application/json", "Content-Type": "application/json"}
    browser = Browser(server.application)
    body = json.dumps(GOOD).encode()
    answer = await browser.ask("POST", "/idp/register", headers=headers, body=body)
    assert answer.status == 201
    assert answer.header("location") == f"{BASE}/carol/"
    assert answer.json()["webId"] == f"{BASE}/carol/#me"
    again = await browser.ask("POST", "/idp/register", headers=headers, body=body)
    assert again.status == 403, "now it has a cookie, and says nothing of where it comes from"
    answer = await Browser(server.application).ask(
        "POST", "/idp/register", headers=headers, body=body
    )
    assert answer.status == 409
    assert answer.json()["error"] == "Pod already exists"


@pytest.mark.parametrize(
    "said",
    [{"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "null"}],
)
async def test_no_other_site_registers_anybody(server: Server, said: dict[str, str]) -> None:
    """A-60."""
    headers = {"Content-Type": "application/json", **said}
    answer = await Browser(server.application).ask(
        "POST", "/idp/register", headers=headers, body=json.dumps(GOOD).encode()
    )
    assert answer.status == 403
    assert (await server.public.get("/carol/")).status in {401, 404}


async def test_a_closed_server_says_so(settings: Settings) -> None:
    """A-96."""
    closed = replace(settings, idp=True, registration="closed")
    ensure_token_key(KeyFiles(prepare_root(closed.root).keys))
    async with running(closed) as application:
        browser = Browser(application)
        page = await browser.get("/idp/register")
        assert page.status == 403
        assert "operator of this server creates the accounts" in page.text
        page = await browser.get("/idp/login")
        assert "/idp/register" not in page.text
        page = await browser.post("/idp/register", GOOD)
        assert page.status == 403
        assert "Registration is disabled" in page.text


async def test_registering_is_limited_by_address(start: Start, clock: FakeClock) -> None:
    """A-181; pages of the provider's own."""
    base = "https://pods.example"
    server = await start(clock=clock, idp=True, base_url=base, pod_creations_per_hour=3)
    browser = Browser(server.application, base_url=base)
    assert (await _register(browser)).path == "/.pages/welcome"
    page = await browser.post("/idp/register", {**GOOD, "username": "dave", "email": ""})
    assert page.status == 429
    assert "Too many attempts" in page.text


async def _register(browser: Browser, **changes: str) -> Page:
    page = await browser.get("/idp/register")
    return await browser.send(page, "/idp/register", **{**GOOD, **changes})
