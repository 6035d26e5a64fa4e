"""PodOS, a browser of pods: on a page of its own that holds its one element."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Page, expect

from tests.clients.applications.sites import PACKAGES, PAGES, publish_folder
from tests.clients.identity.field_notes import sign_in_at_provider
from tests.support.client import Client
from tests.support.people import Account
from tests.support.websites import Website, running_website

PAGE = "/podos.html"

pytestmark = pytest.mark.needs("chromium")


@pytest.fixture(scope="module")
def website() -> Iterator[Website]:
    with running_website() as website:
        publish_folder(website, "/elements/", PACKAGES / "@pod-os/elements/dist/elements")
        website.publish(PAGE, (PAGES / "podos.html").read_bytes(), "text/html")
        yield website


@dataclass(frozen=True, slots=True)
class PodBrowser:
    """PodOS in somebody's browser."""

    page: Page
    account: Account

    def open(self, url: str) -> None:
        """Type an address, as a person does."""
        self.page.get_by_role("button", name="search or enter URI").click()
        self.page.locator("pos-navigation input").fill(url)
        self.page.keyboard.press("Enter")

    def create(self, what: str, name: str) -> None:
        """Make a file or a folder in the folder that is shown."""
        self.page.get_by_label(f"Create new {what}").click()
        self.page.locator("pos-create-new-container-item input").fill(name)
        self.page.keyboard.press("Enter")
        expect(self.page.get_by_role("button", name=f"{name} (Click")).to_be_visible()

    def choose(self, item: str) -> None:
        """An item of the menu of whoever is signed in."""
        self.page.get_by_label("User menu").click()
        self.page.get_by_text(item, exact=True).click()


@pytest.fixture
def pods(page: Page, website: Website, account: Account) -> PodBrowser:
    """Signed in."""
    page.goto(website.origin + PAGE)
    page.get_by_role("button", name="Login", exact=True).click()
    page.locator("#idpUrl").fill(account.provider.base_url)
    page.locator("input#login").click()
    sign_in_at_provider(page, account)
    expect(page.get_by_label("User menu")).to_be_visible()
    assert page.url.startswith(website.origin)
    return PodBrowser(page, account)


def test_a_folder_and_a_document_in_it_are_made_and_edited(pods: PodBrowser, owner: Client) -> None:
    """The folder by PUT without a body and without Content-Type."""
    page, private = pods.page, f"/{pods.account.name}/private/"
    pods.open(pods.account.pod_url + "private/")
    pods.create("folder", "holiday")
    assert owner.members(private) == {f"{private}holiday/"}
    pods.create("file", "note.md")
    assert owner.members(f"{private}holiday/") == {f"{private}holiday/note.md"}
    page.get_by_role("button", name="Edit", exact=True).click()
    page.locator("[contenteditable=true]").click()
    page.keyboard.type("Bring the tent.")
    expect(page.get_by_text("all saved")).to_be_visible()
    assert owner.get(f"{private}holiday/note.md").text.strip() == "Bring the tent."


def test_somebody_stays_signed_in_and_signs_out(pods: PodBrowser) -> None:
    """After a reload by the refresh token."""
    page, private = pods.page, pods.account.pod_url + "private/"
    pods.open(private)
    expect(page.get_by_label("Create new folder")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Create new folder")).to_be_visible()
    pods.choose("Logout")
    expect(page.get_by_role("button", name="Login", exact=True)).to_be_visible()
    page.reload()
    expect(page.get_by_text("Sorry, something went wrong")).to_be_visible()
    expect(page.get_by_label("Create new folder")).to_be_hidden()
