"""Five things that people come for, each in so few steps, so that it does not take more again.

A step is a click, a choice, or what is typed into one field, Enter included. Before the pages were
made anew, the same things took the numbers in ``BEFORE``: counted in the version of that day.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import pytest
from PIL import ExifTags, Image
from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.browser_people import AT_BOTH_WIDTHS, App, Window, sign_in
from tests.support.people import Account, create_account
from tests.support.server import ServerProcess

pytestmark = pytest.mark.needs("chromium")

FOLDERS = ("Accounts", "Books", "Cooking", "Documents", "Family", "Garden", "House", "Letters")
"""What stands before the folder that is shared by its name."""
ENTRIES = [
    (f"{folder}/{number}.ttl", b"<> a <#Entry> .", "text/turtle")
    for folder in ("bookmarks", "calendar", "contacts", "groups", "notes")
    for number in range(3)
]
"""What pages and applications keep in the pod, newer than everything else."""
BEFORE = {"share": 5, "photos": 4, "undo": 2, "link": 6, "application": 4}


@dataclass
class Steps:
    """Does what a person does, and counts it."""

    task: str
    taken: int = 0

    def click(self, target: Locator) -> None:
        self.taken += 1
        target.click()

    def type(self, field: Locator, text: str) -> None:
        """Type into a field and press Enter."""
        self.taken += 1
        field.fill(text)
        field.press("Enter")

    def choose(self, field: Locator, option: str) -> None:
        self.taken += 1
        field.select_option(label=option)

    def are(self, number: int) -> None:
        """Check that there were so many, and at most half of those before."""
        assert self.taken == number
        assert 2 * number <= BEFORE[self.task]


@pytest.fixture
def pod(provider: ServerProcess) -> Pod:
    """Somebody with ten folders, photos of two summers, and entries that applications keep. Each
    test has its own, since it changes them."""
    owner = create_account(provider)
    with owner.owner() as client:
        for path, content, media_type in (
            *((f"{name}/x.txt", b"x", "text/plain") for name in FOLDERS),
            ("Trip/plan.txt", b"Pack the tent.", "text/plain"),
            ("Photos/sea.jpg", taken_at("2025:07:14 10:00:00"), "image/jpeg"),
            ("Photos/hills.jpg", taken_at("2026:08:02 10:00:00"), "image/jpeg"),
            ("report.txt", b"All is well.", "text/plain"),
            *ENTRIES,
        ):
            assert client.put(f"/{owner.name}/{path}", content, media_type).status == 201
    return Pod(provider, owner, create_account(provider))


@dataclass(frozen=True)
class Pod:
    provider: ServerProcess
    owner: Account
    friend: Account

    def url(self, page: str) -> str:
        return f"{self.provider.base_url}/.pages/{page}"


def taken_at(time: str) -> bytes:
    exif = Image.Exif()
    exif.get_ifd(ExifTags.IFD.Exif)[ExifTags.Base.DateTimeOriginal] = time
    content = io.BytesIO()
    Image.new("RGB", (40, 30), "teal").save(content, "JPEG", exif=exif)
    return content.getvalue()


@pytest.fixture
def home(chromium: Browser, pod: Pod, window: Window) -> Iterator[Page]:
    """The first page of the owner."""
    context = window.new_context(chromium)
    page = context.new_page()
    sign_in(page, pod.provider, pod.owner)
    page.goto(pod.url(""))
    yield page
    context.close()


@pytest.mark.feature("personal_data")
@AT_BOTH_WIDTHS
def test_a_folder_is_shared_with_a_friend(home: Page, pod: Pod) -> None:
    steps = Steps("share")
    steps.click(home.get_by_role("link", name="Share Trip"))
    dialog = home.get_by_role("dialog")
    steps.type(dialog.get_by_label("Name or e-mail address"), pod.friend.name)
    expect(dialog.get_by_text(f"{pod.friend.name} can view.")).to_be_visible()
    steps.are(2)


@pytest.mark.feature("previews")
@pytest.mark.feature("photos")
@AT_BOTH_WIDTHS
def test_the_photos_of_last_summer_are_found(home: Page, pod: Pod) -> None:
    # When a photo was taken is known once it has been shown.
    home.goto(pod.url(f"files/{pod.owner.name}/Photos/?view=grid"))
    pictures = home.locator(".tile img")
    expect(pictures).to_have_count(2)
    for picture in pictures.all():
        picture.scroll_into_view_if_needed()
        picture.evaluate("each => each.decode()")
    home.goto(pod.url(""))
    steps = Steps("photos")
    steps.click(home.get_by_role("link", name="All photos by month"))
    steps.click(home.get_by_role("link", name="Jul 2025"))
    expect(home.get_by_role("heading", name="July 2025")).to_be_visible()
    expect(home.get_by_role("link", name="sea.jpg")).to_be_visible()
    expect(home.get_by_role("link", name="hills.jpg")).to_have_count(0)
    steps.are(2)


@pytest.mark.feature("history")
@AT_BOTH_WIDTHS
def test_a_deletion_is_undone(home: Page, pod: Pod) -> None:
    home.goto(pod.url(f"files/{pod.owner.name}/Trip/"))
    row = home.locator('[data-name="plan.txt"]')
    row.get_by_role("link").focus()
    home.keyboard.press("Delete")
    expect(row).to_have_count(0)
    steps = Steps("undo")
    steps.click(home.get_by_role("button", name="Undo"))
    expect(row).to_be_visible()
    steps.are(1)


@pytest.mark.feature("links")
@AT_BOTH_WIDTHS
def test_a_link_until_friday_is_copied(home: Page, pod: Pod) -> None:
    home.context.grant_permissions(["clipboard-read", "clipboard-write"])
    steps = Steps("link")
    recent = home.get_by_role("region", name="Recent files")
    steps.click(recent.get_by_role("link", name="report.txt"))
    steps.click(home.get_by_role("link", name="Share", exact=True))
    dialog = home.get_by_role("dialog")
    steps.click(dialog.get_by_role("button", name="Copy link until Friday"))
    expect(dialog.get_by_text("The link is copied.")).to_be_visible()
    copied = home.evaluate("navigator.clipboard.readText()")
    assert copied.startswith(f"{pod.provider.base_url}/.links/open/")
    shown = dialog.get_by_text(re.compile(r"until \w+ \d+, \d+"))
    day = re.search(r"until (\w+ \d+, \d+)", shown.inner_text())
    assert day is not None
    assert datetime.strptime(day[1], "%b %d, %Y").strftime("%A") == "Friday"  # noqa: DTZ007
    steps.are(3)


@pytest.mark.feature("access_limits")
@AT_BOTH_WIDTHS
def test_an_application_is_let_into_one_folder(home: Page, pod: Pod, app: App) -> None:
    home.goto(app.request())
    steps = Steps("application")
    steps.choose(home.get_by_label("Only one folder:"), "Trip")
    steps.click(home.get_by_role("button", name="Allow", exact=True))
    home.wait_for_url(f"{app.redirect_uri}**")
    steps.are(2)
    home.goto(pod.url("apps"))
    limits = home.get_by_role("listitem").filter(has_text=re.compile(r"^/\w+/Trip/: read, add"))
    expect(limits).to_have_count(1)
    expect(home.get_by_text("Everything that you can")).to_have_count(0)
