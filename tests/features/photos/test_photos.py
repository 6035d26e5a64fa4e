"""The photos of a pod in one place: from all folders, by month, and only for the owner."""

from __future__ import annotations

import asyncio
import io
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from PIL import ExifTags, Image

from podstead.app.adapters.root import prepared_root
from podstead.app.adapters.system import SystemRandomness
from podstead.config import Settings
from podstead.core.identifiers import ResourcePath
from podstead.storage.record_store import RecordStore
from podstead.storage.records import Metadata
from podstead.storage.sqlite.store import SqliteStore
from podstead.web.files.documents import ContentPreviews
from tests.support.application import Server, Start, running, with_two_pods
from tests.support.browser import Browser
from tests.support.clock import FakeClock
from tests.support.pod_pages import sign_in_by_token
from tests.support.postgresql import new_database
from tests.support.server import DEADLINE_S
from tests.support.transfers import put

PHOTOS = "/.pages/photos"
PNG = "image/png"

pytestmark = pytest.mark.feature("previews")

PICTURE_DATES = "podstead.features.previews.taken.PictureDates"
PREVIEWS = "podstead.features.previews.worker.Previews"


@pytest.fixture
async def alice(server: Server) -> Browser:
    """The browser of Alice, who is signed in to the pages by her pod's token."""
    return await sign_in_by_token(server, server.alice)


async def shown(browser: Browser, query: str = "") -> list[str]:
    """The paths of the photos on the page."""
    page = await browser.get(PHOTOS + query)
    assert page.status == 200
    return re.findall(
        r'<li class="tile" data-name="[^"]*"><a href="/\.pages/files([^"]*)"', page.text
    )


async def test_pictures_of_all_folders_are_in_one_place(server: Server, alice: Browser) -> None:
    assert "No photos yet" in (await alice.get(PHOTOS)).text
    for path in ("private/a.png", "private/deep/er/b.png", "settings/icon.png"):
        await put(server.alice, f"/alice/{path}", "picture", PNG)
    await put(server.alice, "/alice/private/c.txt")
    expected = ["/alice/private/a.png", "/alice/private/deep/er/b.png"]
    assert sorted(await shown(alice)) == expected
    # No page of other people leads there.
    bob = await sign_in_by_token(server, server.bob)
    assert await shown(bob) == []
    assert (await bob.get(f"{PHOTOS}?pod=alice")).status == 404


async def test_without_small_pictures_photos_are_still_there(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{PREVIEWS}.picture", ContentPreviews.picture)
    server = await start()
    browser = await sign_in_by_token(server, server.alice)
    for name, media_type in (("a.heic", "image/heic"), ("drawing.svg", "image/svg+xml")):
        await put(server.alice, f"/alice/private/{name}", "picture", media_type)
    assert await shown(browser) == ["/alice/private/a.heic"]
    assert "/.pages/thumbnail" not in (await browser.get(PHOTOS)).text


async def test_a_month_leads_to_it_and_to_those_before(server: Server, alice: Browser) -> None:
    await put(server.alice, "/alice/private/a.png", "picture", PNG)
    [month] = re.findall(r'href="/\.pages/photos\?month=([0-9-]+)"', (await alice.get(PHOTOS)).text)
    assert await shown(alice, f"?month={month}") == ["/alice/private/a.png"]
    assert await shown(alice, "?month=2099-12") == ["/alice/private/a.png"]
    assert await shown(alice, "?month=1999-12") == []


async def test_photos_may_be_older_than_computers_count(
    server: Server, alice: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def taken(_: object, pictures: Sequence[Metadata]) -> Mapping[ResourcePath, int]:
        return {each.path: -52_704_000_000 for each in pictures}  # 1 May 1968

    monkeypatch.setattr(f"{PREVIEWS}.taken", taken)
    await put(server.alice, "/alice/private/a.png", "picture", PNG)
    page = await alice.get(PHOTOS)
    assert page.status == 200
    assert "May 1968" in page.text
    assert await shown(alice, "?month=1968-05") == ["/alice/private/a.png"]


@pytest.fixture(params=["embedded", "postgresql"])
def of_both_engines(
    request: pytest.FixtureRequest, settings: Settings, tmp_path: Path
) -> Iterator[Settings]:
    """Settings of each engine, with a root that is prepared."""
    with ExitStack() as stack:
        database = None
        if request.param == "postgresql":
            database = stack.enter_context(new_database())
        own = settings.with_values(root=tmp_path / "photos", database=database)
        stack.enter_context(prepared_root(own))
        yield own


def photo(taken: str) -> bytes:
    """A picture that a camera took at that time."""
    exif = Image.Exif()
    exif.get_ifd(ExifTags.IFD.Exif)[ExifTags.Base.DateTimeOriginal] = taken
    written = io.BytesIO()
    Image.new("RGB", (90, 60), "teal").save(written, "JPEG", exif=exif)
    return written.getvalue()


async def shown_in_time(browser: Browser, query: str, expected: list[str]) -> None:
    """Wait until these photos are on the page."""
    until_s = time.monotonic() + DEADLINE_S
    while await shown(browser, query) != expected:
        assert time.monotonic() < until_s, f"not in time: {expected}"
        await asyncio.sleep(0.02)


async def test_uploaded_photos_are_sorted_before_any_is_shown(
    of_both_engines: Settings,
) -> None:
    async with running(of_both_engines) as application:
        server = await with_two_pods(application)
        await sorts_uploaded_photos(server, await sign_in_by_token(server, server.alice))


async def sorts_uploaded_photos(server: Server, alice: Browser) -> None:
    dates = {"a.jpg": "2019:07:04 12:00:00", "b.jpg": "2021:02:03 23:59:59", "c.jpg": "nonsense"}
    for name, taken in dates.items():
        await put(server.alice, f"/alice/private/{name}", photo(taken), "image/jpeg")
    a, b, c = (f"/alice/private/{name}" for name in dates)
    await shown_in_time(alice, "?month=2021-02", [b, a])
    assert await shown(alice) == [c, b, a]
    assert "July 2019" in (await alice.get(PHOTOS)).text
    # Another picture at the same path has a date of its own; one that is gone has none.
    await put(server.alice, a, photo("2022:01:01 00:00:00"), "image/jpeg")
    await shown_in_time(alice, "?month=2022-01", [a, b])
    assert (await server.alice.delete(a)).status == 204
    assert await shown(alice) == [c, b]


async def test_a_photo_that_no_request_has_written_gets_its_date_when_it_is_asked_for(
    server: Server, alice: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(f"{PICTURE_DATES}.committed", lambda *_: None)
        await put(server.alice, "/alice/private/a.jpg", photo("2019:07:04 12:00:00"), "image/jpeg")
    await shown_in_time(alice, "?month=2019-07", ["/alice/private/a.jpg"])


async def test_what_is_gone_for_good_leaves_no_date(
    server: Server, alice: Browser, store: SqliteStore, settings: Settings
) -> None:
    await put(server.alice, "/alice/private/a.jpg", photo("2019:07:04 12:00:00"), "image/jpeg")
    await shown_in_time(alice, "?month=2019-07", ["/alice/private/a.jpg"])
    previews = pytest.importorskip("podstead.features.previews").FEATURE
    await previews.remove_derived(settings, RecordStore(store, FakeClock(), SystemRandomness()))
    assert await store.fetch("SELECT path FROM previews_taken") == []


async def test_a_photo_that_cannot_be_read_is_read_once(
    server: Server, alice: Browser, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    processes = pytest.importorskip("podstead.features.previews.processes").RenderingProcesses
    carry_out = processes.carry_out

    async def noted(self: object, task: str, *arguments: object, requester: str) -> bytes | None:
        read.append(task)
        made: bytes | None = await carry_out(self, task, *arguments, requester=requester)
        return made

    monkeypatch.setattr(processes, "carry_out", noted)
    await put(server.alice, "/alice/private/a.jpg", "no picture", "image/jpeg")
    until_s = time.monotonic() + DEADLINE_S
    while not await store.fetch("SELECT path FROM previews_taken"):
        assert time.monotonic() < until_s, "not in time: it was tried"
        await asyncio.sleep(0.02)
    assert await shown(alice) == ["/alice/private/a.jpg"]
    # What comes after it is read, and so would be what the page had asked for before.
    await put(server.alice, "/alice/private/b.jpg", photo("2019:07:04 12:00:00"), "image/jpeg")
    await shown_in_time(alice, "?month=2019-07", ["/alice/private/b.jpg"])
    assert read == ["taken", "taken"]
