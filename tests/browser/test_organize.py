"""Renaming, moving, copying, deleting and downloading in a real browser, also without scripts."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser_people import IN_EVERY_WINDOW, violations
from tests.support.client import Client, create_pod
from tests.support.server import ServerProcess, server_fixture

pytestmark = pytest.mark.needs("chromium")


@dataclass(frozen=True)
class Home:
    """A pod on a server without accounts, and its token. What is put in order is in ``root``."""

    server: ServerProcess
    token: str
    root: str
    web_id: str

    def page(self, kind: str, path: str = "") -> str:
        """The page for doing something with what is there."""
        return f"{self.server.base_url}/.pages/{kind}{self.root}{path}"

    def status(self, path: str) -> int:
        with Client(self.server, token=self.token) as owner:
            return owner.get(self.root + path).status


server = server_fixture()


@pytest.fixture
def home(server: ServerProcess) -> Home:
    pod = create_pod(server)
    with pod.owner() as owner:
        for name, content_type, content in (
            ("photos/2025/sea.jpg", "image/jpeg", "x" * 2000),
            ("photos/2025/sky.jpg", "image/jpeg", "x" * 3000),
            ("photos/a very long name of a folder that wraps/x.txt", "text/plain", "x"),
            ("archive/old.txt", "text/plain", "old"),
            ("note.txt", "text/plain", "a note"),
            ("album.ttl", "text/turtle", "<#a> <#p> <photos/2025/sea.jpg>, <note.txt>."),
        ):
            path = f"{pod.root}private/{name.replace(' ', '%20')}"
            stored = owner.put(path, content, content_type)
            assert stored.status == 201, stored.text
    return Home(server, pod.token, f"{pod.root}private/", pod.web_id)


def sign_in(page: Page, home: Home) -> None:
    page.goto(home.server.base_url + home.root)
    page.get_by_label("Token").fill(home.token)
    page.get_by_role("main").get_by_role("button", name="Sign in").click()
    page.wait_for_url(home.page("files"))


def tour(page: Page, home: Home) -> Iterator[str]:
    sign_in(page, home)
    page.goto(home.page("rename", "photos/"))
    yield "rename"
    page.get_by_label("New name").fill("archive")
    page.get_by_role("button", name="Rename").click()
    page.get_by_text("There is already something with this name.").wait_for()
    yield "rename-refused"
    page.goto(home.page("move", "photos/2025/"))
    yield "move"
    page.get_by_role("button", name="private").click()
    page.get_by_text("Access set on a file").wait_for()
    yield "move-elsewhere"
    page.goto(home.page("copy", "?selection=yes&name=note.txt&name=photos/"))
    yield "copy-several"
    page.goto(home.page("delete", "photos/"))
    yield "delete"
    page.goto(home.page("delete", "?selection=yes&name=note.txt&name=photos/"))
    yield "delete-several"


def test_axe_finds_nothing_on_any_page(page: Page, home: Home, axe: str) -> None:
    seen = {name: violations(page, axe) for name in tour(page, home)}
    assert len(seen) == 7
    assert {name: found for name, found in seen.items() if found} == {}


@IN_EVERY_WINDOW
def test_a_person_puts_files_in_order(page: Page, home: Home) -> None:
    sign_in(page, home)

    page.goto(home.page("rename", "note.txt"))
    expect(page.get_by_role("heading", name="Links that lead there")).to_be_visible()
    expect(page.get_by_role("link", name="album.ttl")).to_be_visible()
    page.get_by_label("New name").fill("my note.txt")
    page.keyboard.press("Enter")
    expect(page.get_by_text("It is now called my note.txt.")).to_be_visible()

    page.goto(home.page("move", "?selection=yes&name=my%2520note.txt&name=photos/"))
    expect(page.get_by_role("heading", name="Move 2 items")).to_be_visible()
    page.get_by_role("button", name="archive").click()
    page.get_by_role("button", name="Move here").click()
    expect(page.get_by_text("What you selected was moved here.")).to_be_visible()
    assert page.url == home.page("files", "archive/")
    assert home.status("archive/photos/2025/sea.jpg") == 200
    assert home.status("photos/") == 404

    page.goto(home.page("copy", "archive/photos/2025/"))
    page.get_by_text("Somewhere else").click()
    page.get_by_label("Address of a folder").fill(home.server.base_url + home.root)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="archive")).to_be_visible()
    page.get_by_role("button", name="Copy here").click()
    expect(page.get_by_text("2025 was copied here.")).to_be_visible()
    assert home.status("2025/sky.jpg") == 200

    # To another pod, whose owner has given access to a folder.
    given = _given_folder(home)
    page.goto(home.page("move", "2025/"))
    page.get_by_text("Somewhere else").click()
    page.get_by_label("Address of a folder").fill(home.server.base_url + given)
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Move here").click()
    expect(page.get_by_text("2025 was moved here.")).to_be_visible()
    assert page.url == f"{home.server.base_url}/.pages/files{given}"
    expect(page.get_by_role("link", name="2025")).to_be_visible()
    assert home.status("2025/sky.jpg") == 404

    page.goto(home.page("delete", "archive/"))
    expect(page.get_by_text("4 folders, 5 files")).to_be_visible()
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("archive was deleted.")).to_be_visible()
    assert home.status("archive/old.txt") == 404


def _given_folder(home: Home) -> str:
    """A folder in the pod of somebody else, whose members the owner of this one may change."""
    pod = create_pod(home.server)
    folder = f"{pod.root}private/given/"
    rules = (
        "@prefix acl: <http://www.w3.org/ns/auth/acl#>.\n"
        f"<#owner> a acl:Authorization; acl:agent <{pod.web_id}>; acl:accessTo <./>;\n"
        "  acl:default <./>; acl:mode acl:Read, acl:Write, acl:Control.\n"
        f"<#friend> a acl:Authorization; acl:agent <{home.web_id}>; acl:accessTo <./>;\n"
        "  acl:default <./>; acl:mode acl:Read, acl:Write.\n"
    )
    with pod.owner() as owner:
        assert owner.put(folder, "", "text/turtle").status == 201
        assert owner.put(f"{folder}.acl", rules, "text/turtle").status == 201
    return folder


@IN_EVERY_WINDOW
def test_a_folder_is_downloaded_as_a_zip_file(page: Page, home: Home, tmp_path: Path) -> None:
    sign_in(page, home)
    page.locator("#members").get_by_role("link", name="photos").click()
    page.get_by_label("More actions").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert download.value.suggested_filename == "photos.zip"
    saved = tmp_path / "photos.zip"
    download.value.save_as(saved)
    with zipfile.ZipFile(saved) as archive:
        assert archive.testzip() is None
        assert archive.read("photos/2025/sea.jpg") == b"x" * 2000
