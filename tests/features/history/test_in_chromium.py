"""What people undo in a real browser: on a phone and on a desk, with scripts and without."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from tests.support.browser_fixtures import (
    axe,
    chromium,
    context,
    page,
    person,
    provider,
    window,
)
from tests.support.browser_people import IN_EVERY_WINDOW, sign_in, violations
from tests.support.client import Client
from tests.support.people import Account, Person
from tests.support.provider_clients import register, script_token
from tests.support.server import ServerProcess

pytestmark = pytest.mark.needs("chromium")

RDF = "@prefix : <#> . :a :name "
SINCE = "2000-01-01"


class Home:
    """A person with a folder."""

    def __init__(self, server: ServerProcess, person: Account) -> None:
        self.server = server
        self.person = person
        self.folder = f"/{person.name}/private/trip/"
        self._token = script_token(person)

    def page(self, kind: str, path: str) -> str:
        """The page of that kind about something in the folder."""
        return f"{self.server.base_url}/.pages/{kind}{self.folder}{path}"

    def put(self, name: str, *contents: str | bytes, content_type: str = "text/plain") -> None:
        """Write one after the other."""
        self._put(self._token, name, contents, content_type)

    def _put(
        self, token: str, name: str, contents: tuple[str | bytes, ...], content_type: str
    ) -> None:
        with Client(self.server, token=token) as client:
            for content in contents:
                answer = client.put(self.folder + name, content, content_type)
                assert answer.status in {201, 204}, answer.text

    def text(self, name: str) -> str | None:
        """What is there now, if anything."""
        with Client(self.server, token=self._token) as client:
            answer = client.get(self.folder + name)
            return answer.text if answer.status == 200 else None

    def change_with_application(self) -> str:
        """Three files; an application that the person has let in changes two of them and deletes
        the other, and the person mends one. Returns the client ID."""
        for name in ("a.txt", "b.txt", "c.txt"):
            self.put(name, "good")
        application = register(self.server)
        token: str = application.tokens(Person(self.person), bound=False)["access_token"]
        for name in ("a.txt", "c.txt"):
            self._put(token, name, ("scrambled",), "text/plain")
        with Client(self.server, token=token) as client:
            assert client.delete(f"{self.folder}b.txt").status in {200, 204, 205}
        self.put("c.txt", "mended")
        return application.client_id


@pytest.fixture
def home(provider: ServerProcess, person: Account) -> Home:
    return Home(provider, person)


@IN_EVERY_WINDOW
def test_a_deleted_folder_is_in_the_trash_and_comes_back(page: Page, home: Home) -> None:
    home.put("a.txt", "a letter")
    home.put("sub/b.txt", "another one")
    sign_in(page, home.server, home.person)
    page.goto(home.page("delete", ""))
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("trip was deleted.")).to_be_visible()
    assert home.text("a.txt") is None
    page.goto(f"{home.server.base_url}/.pages/trash")
    expect(page.get_by_role("rowheader", name="trip")).to_be_visible()
    page.get_by_label("Name", exact=True).fill("another name")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("Nothing of that name")).to_be_visible()
    page.get_by_label("Name", exact=True).fill("TRI")
    page.get_by_role("button", name="Show").click()
    page.get_by_role("button", name="Restore trip").click()
    expect(page.get_by_text("It has been restored.")).to_be_visible()
    assert page.url == home.page("files", "")
    assert (home.text("a.txt"), home.text("sub/b.txt")) == ("a letter", "another one")
    page.goto(f"{home.server.base_url}/.pages/trash")
    expect(page.get_by_text("Nothing here")).to_be_visible()


@IN_EVERY_WINDOW
def test_the_trash_is_emptied(page: Page, home: Home) -> None:
    home.put("a.txt", "a letter")
    home.put("b.txt", "another one")
    sign_in(page, home.server, home.person)
    for name in ("a.txt", "b.txt"):
        page.goto(home.page("delete", name))
        page.get_by_role("button", name="Delete").click()
        expect(page.get_by_text(f"{name} was deleted.")).to_be_visible()
    page.goto(f"{home.server.base_url}/.pages/trash")
    page.get_by_role("button", name="Delete for good: a.txt").click()
    expect(page.get_by_text("It has been deleted for good.")).to_be_visible()
    expect(page.get_by_role("rowheader", name="b.txt")).to_be_visible()
    expect(page.get_by_role("rowheader", name="a.txt")).to_be_hidden()
    empty = page.get_by_role("button", name="Delete everything for good")
    expect(empty).to_be_hidden()
    page.get_by_text("Empty the trash").click()
    empty.click()
    expect(page.get_by_text("The trash has been emptied.")).to_be_visible()
    expect(page.get_by_text("Nothing here")).to_be_visible()


@IN_EVERY_WINDOW
def test_all_traces_of_a_folder_are_removed(page: Page, home: Home) -> None:
    home.put("a.txt", "one", "two")
    sign_in(page, home.server, home.person)
    page.goto(f"{home.server.base_url}/.pages/trash")
    page.get_by_role("link", name="Remove all traces").click()
    page.get_by_label("File or folder").fill("private/trip/")
    page.get_by_role("button", name="Show what is kept").click()
    expect(page.get_by_text("One former version")).to_be_visible()
    expect(page.get_by_text("It still exists, and that stays.")).to_be_visible()
    page.get_by_label("I know that nobody can restore it.").check()
    page.get_by_role("button", name="Remove it for good").click()
    expect(page.get_by_text("Nothing of it is in the trash or among the versions")).to_be_visible()
    assert home.text("a.txt") == "two"
    page.goto(home.page("versions", "a.txt"))
    expect(page.get_by_text("No former version of this document is kept.")).to_be_visible()


@IN_EVERY_WINDOW
def test_two_versions_are_compared_and_the_first_is_restored(page: Page, home: Home) -> None:
    home.put("list.txt", "tent\nstove", "tent\nkettle")
    sign_in(page, home.server, home.person)
    page.goto(f"{home.server.base_url}/.pages/versions{home.folder}list.txt")
    expect(page.get_by_role("heading", name="Versions of list.txt")).to_be_visible()
    page.get_by_role("link", name="Compare with now").click()
    expect(page.locator("del")).to_have_text("stove")
    expect(page.locator("ins")).to_have_text("kettle")
    page.get_by_role("link", name="All versions").click()
    page.get_by_role("button", name="Restore").click()
    expect(page.get_by_text("The version has been restored.")).to_be_visible()
    assert home.text("list.txt") == "tent\nstove"


@IN_EVERY_WINDOW
def test_what_an_application_has_done_is_undone(page: Page, home: Home) -> None:
    client_id = home.change_with_application()
    sign_in(page, home.server, home.person)
    page.goto(f"{home.server.base_url}/.pages/trash")
    page.get_by_role("link", name="Undo changes").click()
    _show_changes(page, client_id)
    expect(page.get_by_text("The version before is restored")).to_have_count(1)
    expect(page.get_by_text("Restored from the trash")).to_have_count(1)
    expect(page.get_by_text("Left: somebody has changed it since")).to_have_count(1)
    assert home.text("a.txt") == "scrambled"
    page.get_by_role("button", name="Undo these changes").click()
    expect(page.get_by_text("Some changes could not be undone")).to_be_visible()
    assert [home.text(name) for name in ("a.txt", "b.txt", "c.txt")] == ["good", "good", "mended"]


def _show_changes(page: Page, client_id: str) -> None:
    who = page.get_by_label("Who")
    choice = who.locator(f'option[value*="{client_id}"]')
    expect(choice).to_have_count(1)
    assert client_id not in choice.inner_text()
    who.select_option(choice.get_attribute("value"))
    page.get_by_label("From").fill(SINCE)
    page.get_by_role("button", name="Show the changes").click()
    page.get_by_role("button", name="Undo these changes").wait_for()


def _picture(shade: int) -> bytes:
    file = io.BytesIO()
    Image.new("L", (40, 30), shade).save(file, "PNG")
    return file.getvalue()


def _trash_and_undo(page: Page, home: Home) -> Iterator[str]:
    page.goto(f"{home.server.base_url}/.pages/trash")
    yield "empty trash"
    client_id = home.change_with_application()
    page.goto(f"{home.server.base_url}/.pages/trash")
    page.get_by_text("How long it is kept").click()
    page.get_by_text("Empty the trash").click()
    yield "trash"
    page.get_by_role("link", name="Undo changes").click()
    yield "undo"
    _show_changes(page, client_id)
    yield "changes"


def _versions(page: Page, home: Home) -> Iterator[str]:
    home.put("a.txt", "one", "two")
    home.put("b.ttl", f"{RDF}1 .", f"{RDF}2 .", content_type="text/turtle")
    home.put("c.png", _picture(0), _picture(255), content_type="image/png")
    page.goto(home.page("versions", "a.txt"))
    yield "versions"
    for name in ("a.txt", "b.ttl", "c.png"):
        page.goto(home.page("versions", name))
        page.get_by_role("link", name="Compare with now").click()
        yield f"two versions of {name}"


def _purge(page: Page, home: Home) -> Iterator[str]:
    home.put("a.txt", "one", "two")
    page.goto(f"{home.server.base_url}/.pages/purge")
    yield "nothing to purge"
    page.get_by_label("File or folder").fill(home.folder)
    page.get_by_role("button", name="Show what is kept").click()
    page.get_by_role("button", name="Remove it for good").wait_for()
    yield "what is kept"


@pytest.mark.parametrize("pages", [_trash_and_undo, _versions, _purge])
def test_axe_finds_nothing_on_any_page(
    page: Page,
    home: Home,
    axe: str,
    pages: Callable[[Page, Home], Iterator[str]],
) -> None:
    sign_in(page, home.server, home.person)
    seen = {name: violations(page, axe) for name in pages(page, home)}
    assert len(seen) == (2 if pages is _purge else 4)
    assert {name: found for name, found in seen.items() if found} == {}
