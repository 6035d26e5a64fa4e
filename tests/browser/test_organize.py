"""Renaming, moving, copying, deleting and downloading in a real browser, also without scripts."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.support.browser_people import violations
from tests.support.client import Client
from tests.support.server import ServerProcess, running_server

PHONE: ViewportSize = {"width": 360, "height": 740}
DESK: ViewportSize = {"width": 1280, "height": 800}
JSON = {"Content-Type": "application/json"}
ROOT = "/alice/private/"

pytestmark = pytest.mark.needs("chromium")


@dataclass(frozen=True)
class Home:
    """A pod on a server without accounts, and its token."""

    server: ServerProcess
    token: str

    def url(self, path: str) -> str:
        return self.server.base_url + path

    def status(self, path: str) -> int:
        with Client(self.server, token=self.token) as owner:
            return owner.get(ROOT + path).status


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with running_server(ServerProcess(root=tmp_path / "root")) as server:
        with Client(server) as public:
            sent = json.dumps({"name": "alice"})
            made = json.loads(public.request("POST", "/.pods", sent, JSON).body)
        with Client(server, token=made["token"]) as owner:
            for name, content_type, content in (
                ("photos/2025/sea.jpg", "image/jpeg", "x" * 2000),
                ("photos/2025/sky.jpg", "image/jpeg", "x" * 3000),
                ("photos/a very long name of a folder that wraps/x.txt", "text/plain", "x"),
                ("archive/old.txt", "text/plain", "old"),
                ("note.txt", "text/plain", "a note"),
                ("album.ttl", "text/turtle", "<#a> <#p> <photos/2025/sea.jpg>, <note.txt>."),
            ):
                path = ROOT + name.replace(" ", "%20")
                stored = owner.put(path, content, content_type)
                assert stored.status == 201, stored.text
        yield Home(server, made["token"])


def sign_in(page: Page, home: Home) -> None:
    page.goto(home.url(ROOT))
    page.get_by_label("Token").fill(home.token)
    page.get_by_role("main").get_by_role("button", name="Sign in").click()
    page.wait_for_url(home.url(f"/.pages/files{ROOT}"))


def tour(page: Page, home: Home) -> Iterator[str]:
    sign_in(page, home)
    page.goto(home.url(f"/.pages/rename{ROOT}photos/"))
    yield "rename"
    page.get_by_label("New name").fill("archive")
    page.get_by_role("button", name="Rename").click()
    page.get_by_text("There is already something with this name.").wait_for()
    yield "rename-refused"
    page.goto(home.url(f"/.pages/move{ROOT}photos/2025/"))
    yield "move"
    page.get_by_role("button", name="private").click()
    page.get_by_text("Access set on a file").wait_for()
    yield "move-elsewhere"
    page.goto(home.url(f"/.pages/copy{ROOT}?selection=yes&name=note.txt&name=photos/"))
    yield "copy-several"
    page.goto(home.url(f"/.pages/delete{ROOT}photos/"))
    yield "delete"
    page.goto(home.url(f"/.pages/delete{ROOT}?selection=yes&name=note.txt&name=photos/"))
    yield "delete-several"


def test_axe_finds_nothing_on_any_page(page: Page, home: Home, axe: str) -> None:
    seen = {name: violations(page, axe) for name in tour(page, home)}
    assert len(seen) == 7
    assert {name: found for name, found in seen.items() if found} == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_every_page_fits_its_window(
    chromium: Browser, home: Home, size: ViewportSize, scheme: str
) -> None:
    shown = chromium.new_context(
        viewport=size, color_scheme="dark" if scheme == "dark" else "light"
    )
    page = shown.new_page()
    for name in tour(page, home):
        assert not page.evaluate("document.documentElement.scrollWidth > innerWidth"), name
        pictures = os.environ.get("PODSTEAD_PICTURES")
        if pictures:
            place = Path(pictures) / f"{name}-{size['width']}-{scheme}.png"
            page.screenshot(path=place, full_page=True)
    shown.close()


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
@pytest.mark.parametrize("with_scripts", [True, False], ids=["scripts", "no scripts"])
def test_a_person_puts_files_in_order(
    chromium: Browser, home: Home, size: ViewportSize, *, with_scripts: bool
) -> None:
    context = chromium.new_context(viewport=size, java_script_enabled=with_scripts)
    page = context.new_page()
    sign_in(page, home)

    page.goto(home.url(f"/.pages/rename{ROOT}note.txt"))
    expect(page.get_by_role("heading", name="Links that lead there")).to_be_visible()
    expect(page.get_by_role("link", name="album.ttl")).to_be_visible()
    page.get_by_label("New name").fill("my note.txt")
    page.keyboard.press("Enter")
    expect(page.get_by_text("It is now called my note.txt.")).to_be_visible()

    page.goto(home.url(f"/.pages/move{ROOT}?selection=yes&name=my%2520note.txt&name=photos/"))
    expect(page.get_by_role("heading", name="Move 2 items")).to_be_visible()
    page.get_by_role("button", name="archive").click()
    page.get_by_role("button", name="Move here").click()
    expect(page.get_by_text("What you selected was moved here.")).to_be_visible()
    assert page.url == home.url(f"/.pages/files{ROOT}archive/")
    assert home.status("archive/photos/2025/sea.jpg") == 200
    assert home.status("photos/") == 404

    page.goto(home.url(f"/.pages/copy{ROOT}archive/photos/2025/"))
    page.get_by_text("Somewhere else").click()
    page.get_by_label("Address of a folder").fill(home.url(ROOT))
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="archive")).to_be_visible()
    page.get_by_role("button", name="Copy here").click()
    expect(page.get_by_text("2025 was copied here.")).to_be_visible()
    assert home.status("2025/sky.jpg") == 200

    page.goto(home.url(f"/.pages/delete{ROOT}archive/"))
    expect(page.get_by_text("4 folders, 5 files")).to_be_visible()
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("archive was deleted.")).to_be_visible()
    assert home.status("archive/old.txt") == 404
    context.close()


def test_a_folder_is_downloaded_as_a_zip_file(
    chromium: Browser, home: Home, tmp_path: Path
) -> None:
    context = chromium.new_context()
    page = context.new_page()
    sign_in(page, home)
    with page.expect_download() as download:
        page.evaluate(f"location.href = '/.pages/zip{ROOT}photos/'")
    assert download.value.suggested_filename == "photos.zip"
    saved = tmp_path / "photos.zip"
    download.value.save_as(saved)
    with zipfile.ZipFile(saved) as archive:
        assert archive.testzip() is None
        assert archive.read("photos/2025/sea.jpg") == b"x" * 2000
    context.close()
