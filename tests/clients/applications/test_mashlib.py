"""The data browser of SolidOS (mashlib), on a site of its own, as its public hosts serve it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Locator, Page, Response, expect

from tests.clients.applications.sites import PACKAGES, publish_folder
from tests.clients.identity.field_notes import SignIn, confine_to_private, sign_in_at_provider
from tests.support.client import Client
from tests.support.people import Account
from tests.support.websites import Website, running_website

VCARD = "http://www.w3.org/2006/vcard/ns#"

pytestmark = pytest.mark.needs("chromium")


@pytest.fixture(scope="module")
def website() -> Iterator[Website]:
    with running_website() as website:
        publish_folder(website, "/", PACKAGES / "mashlib/dist")
        # The page there names the bundle that is not minified, which takes a browser longer.
        website.documents["/mashlib.js"] = website.documents["/mashlib.min.js"]
        yield website


@dataclass(frozen=True, slots=True)
class DataBrowser:
    """The data browser in somebody's browser."""

    page: Page
    website: Website
    account: Account

    @property
    def outline(self) -> Locator:
        """What it shows of the resource that was asked for."""
        return self.page.locator("#OutlineView")

    def open(self, url: str) -> None:
        """Type an address and press its button."""
        self.page.locator("#uriField").fill(url)
        self.page.locator("#goButton").click()

    def expand(self, name: str) -> None:
        """Press what stands before a name in a list, a triangle."""
        self.outline.get_by_role("row", name=name).last.locator("img").first.click()

    def make_folder(self, container: str, name: str) -> None:
        """Press the buttons for it, and wait until it is listed."""
        self.open(container)
        self.page.get_by_title("Add another tool").last.click()
        self.page.get_by_title("Make new folder").last.click()
        self.outline.get_by_role("textbox").last.fill(name)
        self.page.get_by_title("Continue").last.click()
        expect(self.outline.get_by_text(name)).to_be_visible()

    def sign_in(self, issuer: str, by: SignIn = sign_in_at_provider) -> None:
        """Type a provider, and do what its pages ask for."""
        self.page.goto(f"{self.website.origin}/browse.html?uri={self.account.pod_url}")
        self.page.get_by_role("button", name="Log in", exact=True).click()
        self.page.get_by_placeholder("https://example.com").fill(issuer)
        self.page.get_by_role("button", name="Go", exact=True).last.click()
        by(self.page, self.account)
        expect(self.page.locator("#webId")).to_have_text(f"<{self.account.web_id}>")
        assert self.page.url.startswith(self.website.origin)


@pytest.fixture
def data_browser(page: Page, website: Website, account: Account) -> DataBrowser:
    """Signed in by the address of the pod: people type what they know."""
    data_browser = DataBrowser(page, website, account)
    data_browser.sign_in(account.pod_url)
    return data_browser


def path_of(account: Account, name: str) -> str:
    return f"/{account.name}/{name}"


def put(url: str) -> Callable[[Response], bool]:
    """Is a response that to a PUT of a resource?"""
    return lambda response: (response.request.method, response.url) == ("PUT", url)


def test_somebody_signs_in_by_the_address_of_their_pod_browses_and_makes_a_folder(
    data_browser: DataBrowser, owner: Client
) -> None:
    """The provider is found by requests with credentials from another origin; the folder is made by
    PUT without a body and without Content-Type."""
    account = data_browser.account
    owner.put(path_of(account, "private/diary/today.txt"), "It rained.", "text/plain")
    data_browser.open(account.pod_url + "private/")
    data_browser.expand("diary")
    data_browser.expand("today.txt")
    expect(data_browser.outline.get_by_text("It rained.").last).to_be_visible()
    data_browser.make_folder(account.pod_url + "private/diary/", "holiday")
    diary = path_of(account, "private/diary/")
    assert owner.members(diary) == {f"{diary}holiday/", f"{diary}today.txt"}


@pytest.mark.feature("access_limits")
def test_it_stays_in_the_folder_that_it_was_let_into(
    page: Page, website: Website, account: Account, owner: Client
) -> None:
    """By the choice of the person on the page of consent."""
    owner.put(path_of(account, "private/diary/today.txt"), "It rained.", "text/plain")
    owner.put(path_of(account, "letters/first.txt"), "Dear Bob", "text/plain")
    data_browser = DataBrowser(page, website, account)
    data_browser.sign_in(account.pod_url, confine_to_private)
    data_browser.open(account.pod_url + "private/")
    data_browser.expand("diary")
    data_browser.expand("today.txt")
    expect(data_browser.outline.get_by_text("It rained.").last).to_be_visible()
    data_browser.make_folder(account.pod_url + "private/diary/", "holiday")
    with page.expect_response(account.pod_url + "letters/") as answer:
        data_browser.open(account.pod_url + "letters/")
    assert answer.value.status == 403
    assert 'error="insufficient_scope"' in answer.value.headers["www-authenticate"]
    expect(data_browser.outline.get_by_text("first.txt")).to_be_hidden()


def test_a_folder_is_shared_with_everyone(data_browser: DataBrowser, owner: Client) -> None:
    page, account = data_browser.page, data_browser.account
    owner.put(path_of(account, "private/photos/"), "", "text/turtle")
    data_browser.open(account.pod_url + "private/photos/")
    assert account.provider.get(path_of(account, "private/photos/")).status == 401
    page.get_by_title("Sharing").last.click()
    rules = account.pod_url + "private/photos/.acl"
    with page.expect_response(put(rules)):
        page.get_by_role("button", name="Set specific sharing for this folder").click()
    page.get_by_title("Add ...").click()
    with page.expect_response(put(rules)):
        page.get_by_title("Add Everyone").click()
    assert account.provider.get(path_of(account, "private/photos/")).status == 200


def test_a_profile_is_edited_and_somebody_signs_out(data_browser: DataBrowser) -> None:
    page, account = data_browser.page, data_browser.account
    data_browser.open(account.web_id)
    page.get_by_role("button", name="Add bio details").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox").fill("Grows roses.")
    with page.expect_response(put(account.pod_url)):
        dialog.get_by_role("button", name="Save Changes").click()
    expect(page.get_by_text("Grows roses.")).to_be_visible()
    profile = account.provider.get(f"/{account.name}/", {"Accept": "application/n-triples"})
    assert f'<{account.web_id}> <{VCARD}note> "Grows roses." .' in profile.text
    page.get_by_role("button", name="Logout", exact=True).click()
    expect(page.locator("#webId")).to_have_text("<public user>")
    with page.expect_response(account.pod_url + "private/") as answer:
        data_browser.open(account.pod_url + "private/")
    assert answer.value.status == 401
