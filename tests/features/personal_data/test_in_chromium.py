"""Contacts, calendar, notes and bookmarks in a real browser, on a phone and on a desk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.features.personal_data import documents
from tests.support.browser_fixtures import axe, chromium
from tests.support.browser_people import PHONE_WIDTH, Window, sign_in, violations
from tests.support.people import Account, create_account
from tests.support.server import ServerProcess, server_fixture

pytestmark = pytest.mark.needs("chromium")

provider = server_fixture(["--idp"])
COLLECTIONS = "/.pages/collections"


@pytest.fixture
def new_page(chromium: Browser) -> Iterator[Callable[[Window], Page]]:
    """Opens pages in windows of their own, which are closed in the end."""
    with ExitStack() as opened:

        def in_window(window: Window) -> Page:
            return opened.enter_context(window.new_context(chromium)).new_page()

        yield in_window


@pytest.fixture
def person(provider: ServerProcess) -> Account:
    """Somebody for whom applications have kept things already."""
    person = create_account(provider)
    root = f"/{person.name}/"
    with person.owner() as client:
        for path, turtle in (
            ("Contacts/index.ttl", documents.ADDRESS_BOOK),
            ("Contacts/people.ttl", documents.PEOPLE),
            ("Contacts/Person/1/index.ttl", documents.CONTACT),
            ("events.ttl", documents.EVENTS),
            ("settings/privateTypeIndex.ttl", documents.TYPE_INDEX),
        ):
            put = client.request("PUT", root + path, turtle, {"Content-Type": "text/turtle"})
            assert put.status < 300, put.text
    return person


def add(page: Page, base_url: str, kind: str, button: str, **typed: str) -> None:
    page.goto(f"{base_url}{COLLECTIONS}?view={kind}")
    page.get_by_role("link", name=button).first.click()
    for label, text in typed.items():
        page.get_by_label(label, exact=True).fill(text)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_contain_text("was added.")


def test_what_applications_keep_is_looked_through_and_edited_without_scripts(
    new_page: Callable[[Window], Page], provider: ServerProcess, person: Account
) -> None:
    page, base_url = new_page(Window(scripts=False)), provider.base_url
    sign_in(page, provider, person)
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Contacts & more").click()
    page.get_by_role("link", name="Carla Diaz").click()
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Name", exact=True).fill("Carla Dias")
    page.get_by_label("Telephone").fill("+49 1234\n+49 99")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="Carla Dias")).to_be_visible()
    expect(page.get_by_role("link", name="+4999")).to_have_attribute("href", "tel:+4999")
    add(page, base_url, "calendar", "New event", Name="Lunch", Begins="2099-05-01")
    expect(page.get_by_role("heading", name="May 1, 2099")).to_be_visible()
    add(page, base_url, "notes", "New note", Name="Shopping", Note="Milk\nBread")
    add(page, base_url, "bookmarks", "New bookmark", Name="News", Address="https://news.example/")
    link = page.get_by_role("link", name="https://news.example/")
    expect(link).to_have_attribute("href", "https://news.example/")
    page.get_by_role("link", name="News", exact=True).click()
    page.get_by_role("link", name="Delete").click()
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="No bookmarks yet")).to_be_visible()


def test_the_pages_are_accessible(
    new_page: Callable[[Window], Page], provider: ServerProcess, person: Account, axe: str
) -> None:
    page, base_url = new_page(Window(PHONE_WIDTH)), provider.base_url
    sign_in(page, provider, person)
    entry = f"/.pages/collections/{person.name}/Contacts/Person/1/index.ttl?thing=%23this"
    for address in (
        COLLECTIONS,
        f"{COLLECTIONS}?view=calendar",
        f"{COLLECTIONS}?view=calendar&month=2099-05",
        f"{COLLECTIONS}?view=notes",
        f"{COLLECTIONS}/new?view=calendar",
        entry,
        f"{entry}&do=edit",
        f"{entry}&do=delete",
        f"/.pages/files/{person.name}/Contacts/Person/1/index.ttl",
    ):
        page.goto(base_url + address)
        assert violations(page, axe) == {}, address
