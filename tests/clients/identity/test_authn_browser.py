"""Applications in a browser, and the pages of ours: two libraries that sign people in.

@inrupt/solid-client-authn-browser asks the provider again when a page is reloaded;
@uvdsl/solid-oidc-client-browser keeps a refresh token. Everything is clicked and typed as a person
does; the applications are on another site than the provider, which is what cookies and
cross-origin requests make a difference for.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.clients.identity.field_notes import (
    CLIENT,
    PAGES,
    Application,
    opened,
    running_application,
)
from tests.support.browser_people import sign_out
from tests.support.client_process import CLIENTS
from tests.support.people import PASSWORD, create_account
from tests.support.processes import REPOSITORY
from tests.support.server import ServerProcess, running_server
from tests.support.websites import Website

TLS = REPOSITORY / "tests/support/tls"
PACKAGES = CLIENTS / "node_modules"
INRUPT = {
    "session.js": PAGES / "inrupt.js",
    "solid-client-authn.bundle.js": PACKAGES
    / "@inrupt/solid-client-authn-browser/dist/solid-client-authn.bundle.js",
}
_UVDSL = PACKAGES / "@uvdsl/solid-oidc-client-browser/dist/esm/web"
UVDSL = {
    "session.js": PAGES / "uvdsl.js",
    "uvdsl-session.js": _UVDSL / "index.min.js",
    "uvdsl-worker.js": _UVDSL / "RefreshWorker.js",
}
"""The scripts of an application, besides its own."""

pytestmark = pytest.mark.needs("chromium")


@pytest.fixture(scope="module")
def website() -> Iterator[Website]:
    """The application's, known by a document too."""
    with running_application(INRUPT) as website:
        yield website


@pytest.fixture(scope="module")
def other_website() -> Iterator[Website]:
    """That of an application that uses the other library."""
    with running_application(UVDSL) as website:
        yield website


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    """A browser that has been nowhere yet."""
    context = chromium.new_context()
    yield context
    context.close()


@pytest.fixture
def application(context: BrowserContext, website: Website, provider: ServerProcess) -> Application:
    """Open, and without a person yet."""
    return opened(context, website, create_account(provider))


def visits(page: Page) -> list[str]:
    """The addresses that the tab goes to from now on."""
    visited: list[str] = []
    page.on(
        "request",
        lambda request: visited.append(request.url) if request.is_navigation_request() else None,
    )
    return visited


def test_somebody_signs_in_and_uses_their_pod(application: Application) -> None:
    """Registered by itself; requests with a token and a proof, from another site."""
    application.sign_in()
    url = application.account.pod_url + "private/note"
    assert application.does("Write", url, "my own words") == "201"
    assert application.does("Read", url) == "200 my own words"
    assert application.account.provider.get(urlsplit(url).path).status == 401


@pytest.mark.feature("passkeys")
def test_somebody_signs_in_with_a_passkey(application: Application) -> None:
    """By password first, to add it; then signed out everywhere, and in again by the passkey,
    for tokens that are as good."""
    application.sign_in()
    page = application.page
    with_authenticator(page)
    page.goto(f"{application.provider}/.pages/security")
    page.get_by_label("Name of the new passkey").fill("my laptop")
    application.press("Add a passkey")
    expect(page.get_by_role("button", name="Remove my laptop")).to_be_visible()
    sign_out(page)
    expect(page.get_by_text("You are signed out")).to_be_visible()
    page.goto(application.url)
    application.knows("nobody")
    application.ask()
    application.press("Use a passkey")
    application.press("Allow")
    application.knows(application.account.web_id)
    url = application.account.pod_url + "private/note"
    assert application.does("Write", url, "my own words") == "201"
    assert application.does("Read", url) == "200 my own words"


def with_authenticator(page: Page) -> None:
    """Let the browser of a page have an authenticator, and use it when a button is pressed."""
    page.add_init_script("PublicKeyCredential.isConditionalMediationAvailable = async () => false;")
    session = page.context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    session.send("WebAuthn.addVirtualAuthenticator", {"options": options})


def test_a_newcomer_makes_an_account_on_the_way(application: Application) -> None:
    """And comes back to the application with it."""
    application.ask()
    page, name = application.page, f"new{application.account.name}"
    page.get_by_role("link", name="Create an account and a pod").click()
    page.get_by_label("Name of your pod").fill(name)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Repeat the password").fill(PASSWORD)
    application.press("Create the account")
    application.press("Allow")
    application.knows(f"{application.provider}/{name}/#me")
    url = f"{application.provider}/{name}/private/"
    assert application.does("Read", url).startswith("200 ")


def test_an_application_that_has_an_identifier_is_called_by_its_name(
    application: Application,
) -> None:
    """By its document; the person sees which site it is of, and where they go on to."""
    application.ask(client_id=application.website.origin + CLIENT)
    host = urlsplit(application.website.origin).netloc
    expect(application.page.locator(".client")).to_contain_text("Field Notes")
    expect(application.page.locator(".client")).to_contain_text(f"An application from {host}")
    application.page.go_back()
    application.sign_in(client_id=application.website.origin + CLIENT)


def test_somebody_reloads_the_page(application: Application) -> None:
    """Asked again with ``prompt=none``, the provider answers without showing a page."""
    application.sign_in()
    visited = visits(application.page)
    application.page.reload()
    application.knows(application.account.web_id)
    own, asked, back = visited[:3]
    assert own.startswith(application.url)
    assert asked.startswith(f"{application.provider}/idp/auth?")
    assert parse_qs(urlsplit(asked).query)["prompt"] == ["none"]
    assert back.startswith(f"{application.url}?code=")
    url = application.account.pod_url + "private/"
    assert application.does("Read", url).startswith("200 ")


def test_somebody_who_left_the_provider_is_nobody_after_a_reload(application: Application) -> None:
    """A-55: the application is told ``login_required``, and shows itself."""
    application.sign_in()
    application.page.context.clear_cookies()
    visited = visits(application.page)
    application.page.reload()
    application.knows("nobody")
    assert any("error=login_required" in url for url in visited)


def test_somebody_signs_out_of_the_application(application: Application) -> None:
    """It does not ask again when it is reloaded; the provider knows them still."""
    application.sign_in()
    application.press("Sign out here")
    application.knows("nobody")
    visited = visits(application.page)
    application.page.reload()
    application.knows("nobody")
    assert not any(url.startswith(application.provider) for url in visited)
    application.page.goto(f"{application.provider}/idp/login")
    assert application.page.url == f"{application.provider}/.pages/security"


def test_somebody_signs_out_of_the_provider(application: Application) -> None:
    """And comes back to the application, whose document names the page."""
    application.sign_in(client_id=application.website.origin + CLIENT)
    application.press("Sign out at the provider")
    application.knows("nobody")
    application.page.goto(f"{application.provider}/idp/account")
    assert application.page.url == f"{application.provider}/idp/login"


def test_somebody_does_not_want_to(application: Application) -> None:
    """A-59: the application learns why it got nothing."""
    application.ask()
    application.press("Cancel and go back")
    application.knows("nobody")
    expect(application.page.locator("#problem")).to_have_text("access_denied")


def test_another_application_gets_nothing_without_consent(
    application: Application, context: BrowserContext
) -> None:
    """Though the same person sits at the same browser, and is signed in."""
    application.sign_in()
    with running_application(INRUPT) as website:
        other = opened(context, website, application.account)
        other.ask(quietly=True)
        expect(other.page.locator("#problem")).to_have_text("consent_required")
        other.knows("nobody")
        other.ask()
        other.press("Allow")
        other.knows(application.account.web_id)


def test_somebody_signs_in_over_https(chromium: Browser, website: Website, tmp_path: Path) -> None:
    """A-61: the browser keeps the cookies that only this very host can set."""
    tls = ssl.create_default_context(cafile=TLS / "certificate.pem")
    files = ["--ssl-cert", str(TLS / "certificate.pem"), "--ssl-key", str(TLS / "key.pem")]
    server = ServerProcess(root=tmp_path / "root", options=["--idp", *files], tls=tls)
    with (
        running_server(server) as provider,
        chromium.new_context(ignore_https_errors=True) as context,
    ):
        application = opened(context, website, create_account(provider))
        application.sign_in()
        application.page.reload()
        application.knows(application.account.web_id)
        assert application.does("Read", application.account.pod_url + "private/").startswith("200")
        kept = context.cookies(provider.base_url)
        assert {"__Host-podstead-browser", "__Host-podstead-session"} <= {
            cookie["name"] for cookie in kept
        }
        assert all(cookie["secure"] and cookie["httpOnly"] for cookie in kept)
        assert {cookie["sameSite"] for cookie in kept} == {"Lax"}


# --- by the other library -----------------------------------------------------------------------


@pytest.fixture
def other_application(
    context: BrowserContext, other_website: Website, provider: ServerProcess
) -> Application:
    return opened(context, other_website, create_account(provider))


def test_somebody_signs_in_at_an_application_of_another_kind(
    other_application: Application,
) -> None:
    """A public client, which examines the access token."""
    other_application.sign_in()
    url = other_application.account.pod_url + "private/note"
    assert other_application.does("Write", url, "my own words") == "201"
    assert other_application.does("Read", url) == "200 my own words"


def test_an_application_refreshes_its_tokens_when_it_is_reloaded(
    other_application: Application,
) -> None:
    """A-66: in the background, by its refresh token and the same key; again and again."""
    other_application.sign_in()
    visited = visits(other_application.page)
    for _ in range(3):
        other_application.page.reload()
        other_application.knows(other_application.account.web_id)
    assert not any(url.startswith(other_application.provider) for url in visited)
    url = other_application.account.pod_url + "private/"
    assert other_application.does("Read", url).startswith("200 ")


def test_an_application_is_disconnected(other_application: Application) -> None:
    """A-56, A-86: on the account page, while it is open; it gets no new tokens."""
    other_application.sign_in()
    account = other_application.page.context.new_page()
    account.goto(f"{other_application.provider}/.pages/apps")
    account.get_by_role("button", name="Disconnect").click()
    expect(account.get_by_role("status")).to_be_visible()
    url = other_application.account.pod_url + "private/"
    assert other_application.does("Read", url).startswith("401 ")
    other_application.page.reload()
    other_application.knows("nobody")
