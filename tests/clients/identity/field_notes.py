"""An application in a browser, Field Notes: one page, whatever library signs people in to it.

Its files are in ``tests/clients/pages``; the library is reached through a script ``session.js``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from playwright.sync_api import BrowserContext, Page, expect

from tests.support.browser_people import type_password
from tests.support.client_process import CLIENTS
from tests.support.node import install_packages
from tests.support.people import Account
from tests.support.websites import Website, running_website

PAGES = CLIENTS / "pages"
PAGE = "/notes.html"
CLIENT = "/client"
SignIn: TypeAlias = Callable[[Page, Account], None]


def sign_in_at_provider(page: Page, account: Account) -> None:
    """Do what the provider's pages ask for, which an application led to."""
    type_password(page, account.email)
    page.get_by_role("button", name="Allow", exact=True).click()


def confine_to_private(page: Page, account: Account) -> None:
    """Do the same, and let the application into the folder ``private/`` alone."""
    type_password(page, account.email)
    page.get_by_label("Only what I choose here").check()
    page.get_by_text("Folders and documents").click()
    page.get_by_label("private/", exact=True).check()
    page.get_by_role("button", name="Allow", exact=True).click()


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
        self.page.get_by_role("button", name="Sign in", exact=True).click()

    def sign_in(self, *, client_id: str = "", by: SignIn = sign_in_at_provider) -> None:
        """Press it, and do what the provider's pages ask for."""
        self.ask(client_id=client_id)
        by(self.page, self.account)
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


@contextmanager
def running_application(scripts: Mapping[str, Path]) -> Iterator[Website]:
    """The files of the application and the library's own, on a site of its own."""
    install_packages(CLIENTS)
    with running_website() as website:
        website.publish(PAGE, (PAGES / "notes.html").read_bytes(), "text/html")
        for name, script in {"notes.js": PAGES / "notes.js", **scripts}.items():
            website.publish(f"/{name}", script.read_bytes(), "text/javascript")
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
