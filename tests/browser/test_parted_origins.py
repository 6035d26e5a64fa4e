"""The provider at one name and the pods at another, both on loopback, as a browser meets them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.support.browser_people import sign_out, type_password
from tests.support.client import Client
from tests.support.people import PASSWORD
from tests.support.server import ServerProcess, run_command, running_server
from tests.support.waiting import wait_until

pytestmark = pytest.mark.needs("chromium")

PARTED = ("--idp", "--idp-base-url", "http://idp.localhost:0")
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with running_server(ServerProcess(tmp_path / "root", options=PARTED)) as server:
        yield server


def provider_of(server: ServerProcess) -> str:
    return f"http://idp.localhost:{server.port}"


def token_of(server: ServerProcess, name: str) -> str:
    """What a script gets for the password, at the provider."""
    host = {"Host": f"idp.localhost:{server.port}"}
    sent = json.dumps({"username": name, "password": PASSWORD})
    answer = server.request("POST", "/idp/credentials", sent, {**JSON, **host})
    assert answer.status == 200, answer.text
    return str(json.loads(answer.body)["access_token"])


def sign_in_at(page: Page, provider: str, name: str) -> None:
    page.goto(f"{provider}/idp/login")
    type_password(page, name)
    page.wait_for_url(f"{provider}/.pages/security")


def test_people_are_led_from_the_pods_to_the_provider_and_stay_there(
    context: BrowserContext, page: Page, server: ServerProcess
) -> None:
    provider = provider_of(server)
    page.goto(f"{server.base_url}/")
    page.get_by_role("link", name="Create an account and a pod").click()
    page.wait_for_url(f"{provider}/idp/register")
    page.get_by_label("Name of your pod").fill("alice")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Repeat the password").fill(PASSWORD)
    page.get_by_role("button", name="Create the account").click()
    page.wait_for_url(f"{provider}/.pages/welcome")
    page.get_by_text("Your addresses").click()
    assert f"{server.base_url}/alice/" in page.inner_text("main")
    cookies = context.cookies()
    assert cookies
    assert {cookie["domain"] for cookie in cookies} == {"idp.localhost"}
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.headers.get("cookie", "")))
    response = page.goto(f"{server.base_url}/idp/account")
    assert response is not None
    assert response.status == 404
    assert set(asked) == {""}


def test_a_page_of_a_pod_that_is_in_no_sandbox_gets_nothing_of_the_provider(
    page: Page, server: ServerProcess
) -> None:
    """The icon has the pods' own origin, which no stored page has, and no policy."""
    provider = provider_of(server)
    with Client(server) as client:
        sent = {"name": "alice", "email": "a@example.org", "password": PASSWORD}
        assert client.request("POST", "/.pods", json.dumps(sent), JSON).status == 201
    sign_in_at(page, provider, "alice")
    page.goto(f"{server.base_url}/favicon.ico")
    read = """async url => {
        try {
            const answer = await fetch(url, {credentials: "include"});
            return "read " + await answer.text();
        } catch (error) { return error.name; }
    }"""
    assert page.evaluate(read, f"{provider}/idp/account") == "TypeError"
    post = """async url => {
        const answer = await fetch(url, {
            method: "POST", credentials: "include", mode: "no-cors",
            headers: {"Content-Type": "application/x-www-form-urlencoded"}, body: "all=1",
        });
        return answer.type;
    }"""
    assert page.evaluate(post, f"{provider}/idp/logout") == "opaque"
    page.goto(f"{provider}/idp/account")
    assert page.url == f"{provider}/.pages/security", "still signed in"


def test_a_provider_that_moves_is_named_by_a_profile_again_when_its_owner_says_so(
    page: Page, tmp_path: Path
) -> None:
    server = ServerProcess(tmp_path / "root", options=("--idp",))
    with running_server(server), Client(server) as client:
        sent = {"name": "alice", "email": "a@example.org", "password": PASSWORD}
        assert client.request("POST", "/.pods", json.dumps(sent), JSON).status == 201
    provider = provider_of(server)
    changed = run_command("account", "change-issuer", provider, "--root", str(server.root))
    assert changed.returncode == 0, changed.stderr
    server.options = PARTED
    with running_server(server):
        bearer = {"Authorization": f"Bearer {token_of(server, 'alice')}"}
        assert server.get("/alice/private/", bearer).status == 401
        sign_in_at(page, provider, "alice")
        page.get_by_role("button", name="Restore").click()
        page.get_by_text("as your identity provider again").wait_for()
        bearer = {"Authorization": f"Bearer {token_of(server, 'alice')}"}
        assert server.get("/alice/private/", bearer).status == 200


KEPT = """path => caches.open("podstead-pages").then(pages => pages.keys()).then(
    keys => keys.some(key => new URL(key.url).pathname === path))"""


def test_signing_in_takes_one_form_and_signing_out_at_the_provider_ends_everything(
    chromium: Browser, server: ServerProcess
) -> None:
    provider = provider_of(server)
    with Client(server) as client:
        sent = {"name": "alice", "email": "a@example.org", "password": PASSWORD}
        assert client.request("POST", "/.pods", json.dumps(sent), JSON).status == 201
    with chromium.new_context(service_workers="allow") as context:
        page = context.new_page()
        files = f"{server.base_url}/.pages/files/alice/private/"

        page.goto(files)
        page.wait_for_url(f"{provider}/idp/**")
        type_password(page, "alice")
        page.get_by_role("button", name="Allow", exact=True).click()
        page.wait_for_url(files)

        def is_kept() -> bool:
            page.goto(files)
            return bool(page.evaluate(KEPT, "/.pages/files/alice/private/"))

        wait_until(is_kept, "the page is kept")
        page.goto(f"{provider}/.pages/security")
        page.get_by_label("Signed in as").click()
        page.get_by_role("button", name="Sign out", exact=True).first.click()
        page.wait_for_url(f"{server.base_url}/.pages/sign-in?ways=all&signed-out=yes")
        # With its service worker, the browser loses its subscription (Push API, section 3).
        registered = "() => navigator.serviceWorker.getRegistrations().then(all => all.length)"
        wait_until(lambda: page.evaluate(registered) == 0, "the service worker is gone")
        expect(page.get_by_role("button", name="Sign in to your account")).to_be_visible()
        wait_until(
            lambda: page.evaluate(KEPT, "/.pages/files/alice/private/") is False,
            "the page is forgotten",
        )
        page.goto(files)
        page.wait_for_url(f"{provider}/idp/**")
        page.get_by_text("Other ways to sign in").click()
        page.get_by_role("link", name="With a token").click()
        page.wait_for_url(f"{server.base_url}/.pages/sign-in?ways=all")


def test_whoever_signs_out_at_the_pods_is_not_signed_in_again_at_once(
    context: BrowserContext, page: Page, server: ServerProcess
) -> None:
    provider = provider_of(server)
    with Client(server) as client:
        sent = {"name": "alice", "email": "a@example.org", "password": PASSWORD}
        assert client.request("POST", "/.pods", json.dumps(sent), JSON).status == 201
    sign_in_at(page, provider, "alice")
    files = f"{server.base_url}/.pages/files/alice/private/"
    page.goto(files)
    page.get_by_role("button", name="Allow", exact=True).click()
    page.wait_for_url(files)
    sign_out(page)
    page.wait_for_url(f"{server.base_url}/.pages/sign-in?ways=all")
    page.get_by_role("button", name="Sign in to your account").click()
    page.wait_for_url(f"{provider}/idp/**")
