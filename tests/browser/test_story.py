"""One story from the first page to the last: two people with accounts here, and a visitor whose
account is at a Community Solid Server. The connection breaks while many files are sent.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FilePayload, Page, expect

from tests.support.breaking_proxy import (
    BreakingProxy,
    running_behind,
    running_breaking_proxy,
)
from tests.support.community_server import CommunityServer, shared_community_server
from tests.support.people import PASSWORD
from tests.support.server import ServerProcess

DEADLINE_MS = 120_000
FILES = 50
FILE_BYTES = 120_000
NOTE = "We meet at eight.\n"
BETTER_NOTE = "We meet at half past seven.\n"

pytestmark = pytest.mark.needs("chromium")


@dataclass(frozen=True)
class Servers:
    """Ours behind a proxy, and the Community Solid Server."""

    ours: ServerProcess
    proxy: BreakingProxy
    community: CommunityServer


@dataclass(frozen=True)
class Story:
    """A browser for each person, whose names end with ``suffix``."""

    server: ServerProcess
    proxy: BreakingProxy
    community: CommunityServer
    mara: Page
    jonas: Page
    carol: Page
    photos: dict[str, bytes]
    suffix: str

    def url(self, page: str, path: str = "") -> str:
        """A page about something in Mara's pod."""
        return f"{self.server.base_url}/.pages/{page}/mara{self.suffix}/{path}"

    def files(self, path: str = "") -> str:
        return self.url("files", path)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    folder = tmp_path_factory.mktemp("story")
    with (
        running_breaking_proxy() as proxy,
        running_behind(proxy, folder / "root", "--idp") as server,
    ):
        yield Servers(server, proxy, shared_community_server())


@pytest.fixture(params=[360, 1280])
def story(request: pytest.FixtureRequest, chromium: Browser, servers: Servers) -> Story:
    width: int = request.param
    photos = {f"photo {number}.jpg": os.urandom(FILE_BYTES) for number in range(FILES)}
    mara, jonas, carol = [_new_page(chromium, width) for _ in range(3)]
    servers.proxy.broken = 0
    return Story(
        servers.ours, servers.proxy, servers.community, mara, jonas, carol, photos, str(width)
    )


def _new_page(chromium: Browser, width: int) -> Page:
    page = chromium.new_context(
        service_workers="block", locale="en", viewport={"width": width, "height": 740}
    ).new_page()
    page.set_default_timeout(DEADLINE_MS)
    return page


@pytest.mark.feature("uploads")
def test_two_people_and_a_visitor_share_a_folder(story: Story, tmp_path: Path) -> None:
    for page, name in ((story.mara, "mara"), (story.jonas, "jonas")):
        register(page, story, name + story.suffix)
    create_folder_with_note(story)
    upload_over_a_broken_connection(story)
    share_with_jonas(story)
    jonas_edits_the_note(story)
    carol_asks_for_access(story)
    mara_allows_it(story)
    carol_looks_around(story)
    mara_thinks_twice_about_deleting(story)
    export(story, tmp_path / "export.zip")


def register(page: Page, story: Story, name: str) -> None:
    page.goto(f"{story.server.base_url}/idp/register")
    page.get_by_label("Name of your pod").fill(name)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Repeat the password").fill(PASSWORD)
    page.get_by_role("button", name="Create the account").click()
    page.wait_for_url("**/.pages/welcome")


def create_folder_with_note(story: Story) -> None:
    page = story.mara
    page.goto(story.files())
    _create(page, "Folder", "trip")
    expect(page.get_by_role("status").filter(has_text="trip")).to_be_visible()
    page.goto(story.files("trip/"))
    _create(page, "Text", "note.txt")
    page.goto(story.files("trip/note.txt?view=edit"))
    page.get_by_label("Text of note.txt").fill(NOTE)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text(NOTE.strip())).to_be_visible()


def _create(page: Page, kind: str, name: str) -> None:
    page.locator("summary", has_text="New").click()
    page.get_by_role("link", name=kind, exact=True).click()
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_role("button", name="Create").click()
    page.wait_for_url("**/.pages/files/**")


def upload_over_a_broken_connection(story: Story) -> None:
    page = story.mara
    page.goto(story.files("trip/"))
    # On a phone, the menu of what is new has them.
    page.locator(".upload-buttons:not([hidden])").wait_for(state="attached")
    story.proxy.break_after([1_000_000, 3_000_000])
    page.locator(".upload-buttons input[multiple]").set_input_files(
        [
            FilePayload(name=name, mimeType="image/jpeg", buffer=content)
            for name, content in story.photos.items()
        ]
    )
    news = page.locator("[data-uploads] > [aria-live]")
    finished = f"Files uploaded: {FILES}"
    expect(news).to_contain_text(finished, timeout=DEADLINE_MS)
    assert story.proxy.broken == 2
    expect(page.locator("#count")).to_have_text(f"{FILES + 1} items")


def share_with_jonas(story: Story) -> None:
    story.jonas.goto(story.files("trip/"))
    expect(story.jonas.get_by_role("heading", name="You have no access")).to_be_visible()
    page = story.mara
    page.get_by_role("link", name="Share", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name or e-mail address").fill(f"jonas{story.suffix}")
    dialog.get_by_label("Role", exact=True).select_option("edit")
    dialog.get_by_role("button", name="Share", exact=True).click()
    expect(dialog.get_by_text(f"jonas{story.suffix} can edit.")).to_be_visible()


def jonas_edits_the_note(story: Story) -> None:
    page = story.jonas
    page.goto(f"{story.server.base_url}/.pages/shared")
    page.get_by_role("link", name="trip").click()
    page.get_by_role("link", name="note.txt").click()
    page.get_by_role("link", name="Edit", exact=True).click()
    page.get_by_label("Text of note.txt").fill(BETTER_NOTE)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text(BETTER_NOTE.strip())).to_be_visible()
    story.mara.goto(story.files("trip/note.txt"))
    expect(story.mara.get_by_text(BETTER_NOTE.strip())).to_be_visible()
    expect(story.mara.get_by_label("Details")).to_contain_text("jonas")


def carol_asks_for_access(story: Story) -> None:
    carol = story.community.create_agent(f"carol{story.suffix}")
    page = story.carol
    page.goto(f"{story.server.base_url}/.pages/sign-in?ways=all")
    page.get_by_label("Your address there, or where you sign in").fill(carol.web_id)
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url(f"{story.community.base_url}**")
    page.get_by_label("Email").fill(f"carol{story.suffix}@example.com")
    page.get_by_label("Password").fill("password123")
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("button", name="Authorize").click()
    page.wait_for_url(f"{story.server.base_url}/.pages/**")
    page.goto(story.files("trip/"))
    expect(page.get_by_role("heading", name="You have no access")).to_be_visible()
    page.get_by_role("link", name="Ask for access").click()
    page.get_by_label("Message (optional)").fill("It is me, from the boat.")
    page.get_by_role("button", name="Send the request").click()
    expect(page.get_by_text("Your request was sent to the owner.")).to_be_visible()


def mara_allows_it(story: Story) -> None:
    page = story.mara
    page.goto(f"{story.server.base_url}/.pages/requests")
    expect(page.get_by_text("It is me, from the boat.")).to_be_visible()
    page.get_by_role("button", name="Allow").click()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("can view.")).to_be_visible()


def carol_looks_around(story: Story) -> None:
    page = story.carol
    page.goto(story.files("trip/note.txt"))
    expect(page.get_by_text(BETTER_NOTE.strip())).to_be_visible()
    expect(page.get_by_role("link", name="Edit", exact=True)).to_have_count(0)
    page.goto(story.files("trip/"))
    expect(page.locator("#count")).to_have_text(f"{FILES + 1} items")
    expect(page.locator(".upload-buttons")).to_have_count(0)
    page.goto(story.files("private/"))
    expect(page.get_by_role("heading", name="You have no access")).to_be_visible()


def mara_thinks_twice_about_deleting(story: Story) -> None:
    """Before anything goes, the page says what; afterwards it is gone for everybody."""
    page = story.mara
    page.goto(story.url("delete", "trip/"))
    expect(page.get_by_text(f"{FILES + 1} files")).to_be_visible()
    page.get_by_role("link", name="Cancel").click()
    page.goto(story.url("delete", "trip/photo%200.jpg"))
    page.get_by_role("button", name="Delete").click()
    page.wait_for_url(story.files("trip/"))
    expect(page.locator("#count")).to_have_text(f"{FILES} items")
    story.jonas.goto(story.files("trip/photo%200.jpg"))
    expect(story.jonas.get_by_text("404 Not Found")).to_be_visible()
    del story.photos["photo 0.jpg"]


def export(story: Story, archive_path: Path) -> None:
    page = story.mara
    page.goto(f"{story.server.base_url}/.pages/security?view=account")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download everything").click()
    download.value.save_as(archive_path)
    with zipfile.ZipFile(archive_path) as archive:
        assert archive.testzip() is None
        [note] = [name for name in archive.namelist() if name.endswith("trip/note.txt")]
        trip = note.removesuffix("note.txt")
        assert archive.read(note).decode() == BETTER_NOTE
        for name, content in story.photos.items():
            assert archive.read(f"{trip}{name}") == content
        assert f"{trip}photo 0.jpg" not in archive.namelist()
