"""The photos of a pod in one place: from all folders, by month, and only for the owner."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pytest

from podstead.core.identifiers import ResourcePath
from podstead.features.previews.worker import Previews
from podstead.storage.records import Metadata
from tests.support.application import Server
from tests.support.browser import Browser
from tests.support.pod_pages import sign_in_by_token
from tests.support.transfers import put

PHOTOS = "/.pages/photos"
PNG = "image/png"

pytestmark = pytest.mark.feature("previews")


@pytest.fixture
async def alice(server: Server) -> Browser:
    """The browser of Alice, who is signed in to the pages by her pod's token."""
    return await sign_in_by_token(server, server.alice)


async def shown(browser: Browser, query: str = "") -> list[str]:
    """The paths of the photos on the page."""
    page = await browser.get(PHOTOS + query)
    assert page.status == 200
    return re.findall(r'<li class="tile"><a href="/\.pages/files([^"]*)"', page.text)


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


async def test_a_month_leads_to_it_and_to_those_before(server: Server, alice: Browser) -> None:
    await put(server.alice, "/alice/private/a.png", "picture", PNG)
    [month] = re.findall(r'href="/\.pages/photos\?month=([0-9-]+)"', (await alice.get(PHOTOS)).text)
    assert await shown(alice, f"?month={month}") == ["/alice/private/a.png"]
    assert await shown(alice, "?month=2099-12") == ["/alice/private/a.png"]
    assert await shown(alice, "?month=1999-12") == []


async def test_photos_may_be_older_than_computers_count(
    server: Server, alice: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def taken(_: Previews, pictures: Sequence[Metadata]) -> Mapping[ResourcePath, int]:
        return {each.path: -52_704_000_000 for each in pictures}  # 1 May 1968

    monkeypatch.setattr(Previews, "taken", taken)
    await put(server.alice, "/alice/private/a.png", "picture", PNG)
    page = await alice.get(PHOTOS)
    assert page.status == 200
    assert "May 1968" in page.text
    assert await shown(alice, "?month=1968-05") == ["/alice/private/a.png"]
