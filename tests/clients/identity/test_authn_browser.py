"""@inrupt/solid-client-authn-browser: an application in a browser, and the pages of ours (K-6).

Everything is clicked and typed as a person does; the application is on another site than the
provider, which is what cookies and cross-origin requests make a difference for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.clients.identity.applications import Website, running_website
from tests.clients.identity.people import PASSWORD, Account, create_account
from tests.clients.process import CLIENTS
from tests.support.chromium import running_chromium
from tests.support.node import install_packages
from tests.support.server import ServerProcess

PAGES = CLIENTS / "pages"
LIBRARY = "solid-client-authn.bundle.js"
PAGE = "/notes.html"
CLIENT = "/client"

pytestmark = pytest.mark.needs("chromium")


@dataclass(frozen=True, slots=True)
class Application:
    """The application, open in somebody's browser."""

    page: Page
    website: Website
    account: Account

    @property
    def url(self) -> str:
        return self.website.origin + PAGE

    @property
    def provider(self) -> str:
        """Its issuer, which is its base URL."""
        return self.account.provider.base_url

    def ask(self, *, client_id: str = "", quietly: bool = False) -> None:
        """Press its button to sign in."""
        self.page.get_by_label("Provider").fill(self.provider)
        self.page.get_by_label("Identifier").fill(client_id)
        self.page.get_by_label("without any page").set_checked(quietly)
        self.page.get_by_role("button", name="Sign in").click()

    def sign_in(self, *, client_id: str = "") -> None:
        """Press it, and do what the provider's pages ask for."""
        self.ask(client_id=client_id)
        self.page.get_by_label("E-mail address or pod name").fill(self.account.email)
        self.page.get_by_label("Password").fill(PASSWORD)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.get_by_role("button", name="Allow", exact=True).click()
        self.knows(self.account.web_id)

    def knows(self, who: str) -> None:
        """It shows who is signed in, on its own page."""
        expect(self.page.locator("#who")).to_have_text(who)
        assert self.page.url.startswith(self.url)

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).click()

    def does(self, what: str, url: str, text: str = "") -> str:
        """Status and text of the answer to what the application does with a document."""
        self.page.get_by_label("Document").fill(url)
        self.page.get_by_label("Text").fill(text)
        self.page.locator("#answer").evaluate("(answer) => answer.textContent = ''")
        self.press(what)
        expect(self.page.locator("#answer")).not_to_be_empty()
        return self.page.locator("#answer").inner_text()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with running_chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def website() -> Iterator[Website]:
    """The application's, known by a document too."""
    with running_application() as website:
        yield website


@pytest.fixture(scope="module")
def other_website() -> Iterator[Website]:
    with running_application() as website:
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


@contextmanager
def running_application() -> Iterator[Website]:
    """The files of the application and the library's own bundle, on a site of its own."""
    install_packages(CLIENTS)
    bundle = CLIENTS / "node_modules/@inrupt/solid-client-authn-browser/dist" / LIBRARY
    with running_website() as website:
        website.publish(PAGE, (PAGES / "notes.html").read_bytes(), "text/html")
        for script in (PAGES / "notes.js", bundle):
            website.publish(f"/{script.name}", script.read_bytes(), "text/javascript")
        page = website.origin + PAGE
        website.publish_client(CLIENT, page, post_logout_redirect_uris=[page])
        yield website


def opened(context: BrowserContext, website: Website, account: Account) -> Application:
    """The application of a site, in a tab of its own."""
    page = context.new_page()
    page.goto(website.origin + PAGE)
    application = Application(page, website, account)
    application.knows("nobody")
    return application


def visits(page: Page) -> list[str]:
    """The addresses that the tab goes to from now on."""
    visited: list[str] = []
    page.on(
        "request",
        lambda request: visited.append(request.url) if request.is_navigation_request() else None,
    )
    return visited


def test_somebody_signs_in_and_uses_their_pod(application: Application) -> None:
    """T-25: registered by itself; requests with a token and a proof, from another site."""
    application.sign_in()
    url = application.account.pod_url + "private/note"
    assert application.does("Write", url, "my own words") == "201"
    assert application.does("Read", url) == "200 my own words"
    assert application.account.provider.get(urlsplit(url).path).status == 401


def test_an_application_that_has_an_identifier_is_called_by_its_name(
    application: Application,
) -> None:
    """T-22: by its document; the person sees which site it is of, and where they go on to."""
    application.ask(client_id=application.website.origin + CLIENT)
    host = urlsplit(application.website.origin).netloc
    expect(application.page.locator(".client")).to_contain_text("Field Notes")
    expect(application.page.locator(".client")).to_contain_text(f"An application of {host}")
    application.page.go_back()
    application.sign_in(client_id=application.website.origin + CLIENT)


def test_somebody_reloads_the_page(application: Application) -> None:
    """T-25: asked again with ``prompt=none``, the provider answers without showing a page."""
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
    assert application.page.url == f"{application.provider}/idp/account"


def test_somebody_signs_out_of_the_provider(application: Application) -> None:
    """T-36: and comes back to the application, whose document names the page."""
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


def test_another_application_gets_nothing_without_being_asked_for(
    application: Application, other_website: Website
) -> None:
    """T-30: though the same person sits at the same browser, and is signed in."""
    application.sign_in()
    context = application.page.context
    other = opened(context, other_website, application.account)
    other.ask(quietly=True)
    expect(other.page.locator("#problem")).to_have_text("consent_required")
    other.knows("nobody")
    other.ask()
    other.press("Allow")
    other.knows(application.account.web_id)
