"""The pictures of ``docs/use/tour.md``, taken of a server with sample pods: ``make tour``.

Each picture has a heading of its own in the tour. They are WebP, as large as ``MAX_BYTES`` at the
most, and are taken anew when the pages change.
"""

from __future__ import annotations

import io
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from PIL import Image
from playwright.sync_api import Browser, FilePayload, Page, ViewportSize

from tests.support.browser_people import type_password
from tests.support.chromium import running_chromium
from tests.support.processes import REPOSITORY
from tests.support.sample_photos import LANDSCAPES, photo
from tests.support.sample_pod import FRIEND, OWNER, SamplePods
from tests.support.server import ServerProcess, run_command, running_server

FOLDER: Final = REPOSITORY / "docs/pictures"
MAX_BYTES: Final = 60_000
_DESK: Final = ViewportSize(width=1280, height=800)
_PHONE: Final = ViewportSize(width=360, height=740)
_DEADLINE_MS: Final = 120_000
_PORT: Final = 3000
_UPLOAD_BYTES_PER_S: Final = 1_500_000
_TRIP: Final = f"/{OWNER}/trip%20to%20the%20archipelago/"

Lead = Callable[[Page], None]
"""Leads a page from wherever it is to what the picture shows."""


@dataclass(frozen=True, slots=True)
class TourPicture:
    """One picture; on a phone in dark colours, otherwise on a desk in light ones."""

    name: str
    heading: str
    lead: Lead
    on_phone: bool = False
    is_tall: bool = False
    """Whether it shows the page to its end."""

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.webp"


def _open(address: str) -> Lead:
    def lead(page: Page) -> None:
        page.goto(address)
        page.wait_for_load_state("networkidle" if "/.pages/files/" in address else "load")

    return lead


def _edit(page: Page) -> None:
    page.goto(f"/.pages/files/{OWNER}/contacts/lena.ttl?view=edit")
    text = page.locator("textarea")
    text.fill(text.input_value().replace('"Boat builder" ;', '"Boat builder'))
    page.get_by_role("button", name="Save").click()
    page.get_by_role("alert").wait_for()


def _upload(page: Page) -> None:
    page.goto(f"/.pages/upload{_TRIP}")
    page.locator(".upload-buttons").wait_for()
    session = page.context.new_cdp_session(page)
    speed = {"latency": 5, "downloadThroughput": -1, "uploadThroughput": _UPLOAD_BYTES_PER_S}
    session.send("Network.emulateNetworkConditions", {"offline": False, **speed})
    files = [
        FilePayload(name=f"{name}.jpg", mimeType="image/jpeg", buffer=photo(name))
        for name in list(LANDSCAPES)[:4]
    ]
    film = FilePayload(name="across the bay.mp4", mimeType="video/mp4", buffer=bytes(24_000_000))
    choose = page.locator(".upload-buttons input[multiple]")
    choose.set_input_files([*files, film])
    page.locator(".upload-list [data-state=done]").nth(3).wait_for()
    page.locator(".upload-summary", has_text=re.compile(r"1[0-9](\.[0-9]+)? MB of")).wait_for()


def _share(page: Page) -> None:
    page.goto(f"/.pages/files{_TRIP}")
    page.get_by_role("link", name="Share", exact=True).click()
    page.get_by_role("dialog").get_by_role("heading", name="Share").wait_for()


def _profile(page: Page) -> None:
    page.goto("/.pages/profile")
    page.get_by_label("Choose a picture").set_input_files(
        FilePayload(name="me.jpg", mimeType="image/jpeg", buffer=SamplePods.picture_of_owner())
    )
    page.get_by_role("button", name="Upload").click()
    page.locator(".card img").wait_for()
    page.get_by_label("Name", exact=True).fill("Mara Lind")
    page.get_by_label("A few words about you").fill(
        "Photographs water in all its states. Mends old radios in winter."
    )
    page.get_by_label("Links").fill("https://mara.lind.example/")
    page.get_by_role("button", name="Save").click()
    page.locator(".card .note-text").wait_for()


def _trash(page: Page) -> None:
    for name in ("recipes/", "books.jsonld", "letter%20to%20the%20landlord.txt"):
        page.goto(f"/.pages/delete/{OWNER}/{name}")
        page.get_by_role("button", name="Delete", exact=True).click()
        page.get_by_text(" was deleted.").wait_for()
    page.goto("/.pages/trash")


def _compare(page: Page) -> None:
    page.goto(f"/.pages/versions{_COSTS}")
    page.get_by_role("link", name="Compare with now").first.click()
    page.get_by_role("heading", name="Two versions of").wait_for()


_COSTS: Final = f"{_TRIP}costs.csv"
_WHY: Final = f"/.pages/why{_TRIP}?ask=yes&kind=person&who={FRIEND}"
_CONTACT: Final = f"/.pages/files/{OWNER}/contacts/lena.ttl"

PICTURES: Final = (
    TourPicture("sign-in", "Sign in", _open("/.pages/sign-in"), is_tall=True),
    TourPicture("files", "Files", _open(f"/.pages/files/{OWNER}/")),
    TourPicture("grid", "Pictures", _open(f"/.pages/files/{OWNER}/photos/?view=grid")),
    TourPicture("contact", "Linked data for people", _open(_CONTACT)),
    TourPicture("edit", "Edit in place", _edit),
    TourPicture("upload", "Upload", _upload),
    TourPicture("share", "Share", _share),
    TourPicture("why", "Why can Jonas see this?", _open(_WHY)),
    TourPicture("profile", "Profile", _profile),
    TourPicture("activity", "Activity", _open("/.pages/activity")),
    TourPicture("versions", "Versions", _open(f"/.pages/versions{_COSTS}")),
    TourPicture("compare", "Two versions beside each other", _compare),
    TourPicture("storage", "Storage", _open("/.pages/storage")),
    TourPicture("trash", "Trash", _trash),
    TourPicture("console", "The operator's console", _open("/.pages/console/accounts")),
    TourPicture("files-phone", "On a phone", _open(f"/.pages/files{_TRIP}"), on_phone=True),
    TourPicture("contact-phone", "A contact on a phone", _open(_CONTACT), on_phone=True),
)
"""In the order of the tour."""


def main(names: list[str]) -> int:
    """Take the pictures of ``names``, or all."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, running_chromium() as chromium:
        root = Path(folder) / "root"
        server = ServerProcess(root=root, options=["--idp"], port=_PORT)
        with running_server(server) as provider:
            pods = SamplePods(provider)
            pods.create()
            promoted = run_command("account", "promote", OWNER, "--root", str(root))
            assert promoted.returncode == 0, promoted.stderr
            for on_phone in (False, True):
                _take(chromium, provider, on_phone=on_phone, names=names)
    return 0


def _take(chromium: Browser, provider: ServerProcess, *, on_phone: bool, names: list[str]) -> None:
    context = chromium.new_context(
        base_url=provider.base_url,
        locale="en",
        viewport=_PHONE if on_phone else _DESK,
        color_scheme="dark" if on_phone else "light",
        reduced_motion="reduce",
        service_workers="block",
    )
    context.set_default_timeout(_DEADLINE_MS)
    page = context.new_page()
    signed_in = False
    for each in PICTURES:
        if each.on_phone is not on_phone or (names and each.name not in names):
            continue
        if each.name != "sign-in" and not signed_in:
            _sign_in(page)
            signed_in = True
        each.lead(page)
        each.path.write_bytes(_small(page.screenshot(full_page=each.is_tall)))
        sys.stdout.write(f"{each.path.name}: {each.path.stat().st_size} bytes\n")
    context.close()


def _sign_in(page: Page) -> None:
    page.goto("/idp/login?next=/.pages/files/")
    type_password(page, OWNER)
    page.wait_for_url("**/.pages/files/**")


def _small(screenshot: bytes) -> bytes:
    """The best WebP that is small enough."""
    with Image.open(io.BytesIO(screenshot)) as shown:
        picture = shown.convert("RGB")
    for quality in (None, *range(92, 40, -6)):
        written = io.BytesIO()
        picture.save(written, "WEBP", method=6, lossless=quality is None, quality=quality or 100)
        if written.tell() < MAX_BYTES:
            return written.getvalue()
    raise AssertionError("the picture is too detailed")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
