"""The photos of a pod in a real browser: the light box, and what follows on scroll."""

from __future__ import annotations

import io

import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from tests.support.browser_fixtures import axe, chromium, context, nothing_stays_open, page, window
from tests.support.browser_people import IN_EVERY_WINDOW, Window, sign_in, violations
from tests.support.people import Account, create_account
from tests.support.server import ServerProcess, server_fixture

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.feature("previews")]

__all__ = ["axe", "chromium", "context", "nothing_stays_open", "page", "provider", "window"]

MANY = 203
ON_A_PAGE = 200

provider = server_fixture(["--idp"])


@pytest.fixture(scope="module")
def photographer(provider: ServerProcess) -> Account:
    """Somebody with more photos than a page has."""
    account = create_account(provider)
    content = io.BytesIO()
    Image.new("RGB", (90, 60), "teal").save(content, "PNG")
    with account.owner() as owner:
        for number in range(MANY - 2):  # which no browser and no preview shows, to be quick
            path = f"/{account.name}/trip/{number:03}.heic"
            assert owner.put(path, b"x", "image/heic").status == 201
        for name in ("newer", "newest"):
            path = f"/{account.name}/trip/{name}.png"
            assert owner.put(path, content.getvalue(), "image/png").status == 201
    return account


@pytest.fixture
def photos(page: Page, provider: ServerProcess, photographer: Account) -> Page:
    sign_in(page, provider, photographer)
    page.goto(f"{provider.base_url}/.pages/photos")
    return page


@IN_EVERY_WINDOW
def test_a_photo_opens_and_leads_to_the_next(photos: Page, window: Window) -> None:
    tiles = photos.locator(".photos .tile")
    first, second = (str(tiles.nth(at).get_attribute("data-name")) for at in (0, 1))
    photos.get_by_role("link", name=first).click()
    if not window.scripts:
        photos.wait_for_url(f"**/trip/{first}")
        expect(photos.get_by_role("main").locator("img").first).to_be_visible()
        return
    look = photos.get_by_role("dialog")
    expect(look.get_by_role("img", name=first)).to_have_js_property("naturalWidth", 90)
    box = look.get_by_role("img", name=first).bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= window.width
    close = look.get_by_role("button", name="Close").bounding_box()
    assert close is not None
    assert close["x"] + close["width"] <= window.width
    expect(look.get_by_role("button", name="Previous")).to_be_disabled()
    photos.keyboard.press("ArrowRight")
    expect(look.get_by_role("img", name=second)).to_be_visible()
    look.get_by_role("button", name="Previous").click()
    expect(look.get_by_role("img", name=first)).to_be_visible()
    photos.keyboard.press("ArrowRight")
    expect(look.get_by_role("img", name=second)).to_be_visible()
    photos.keyboard.press("Escape")
    expect(look).to_be_hidden()
    expect(photos.get_by_role("link", name=second)).to_be_focused()


def test_the_light_box_goes_on_where_the_page_ends(photos: Page, axe: str) -> None:
    tiles = photos.locator(".photos .tile")
    last = tiles.nth(ON_A_PAGE - 1)
    last.scroll_into_view_if_needed()
    last.click()
    look = photos.get_by_role("dialog")
    expect(look.get_by_role("img")).to_be_visible()
    assert violations(photos, axe) == {}
    photos.keyboard.press("ArrowRight")
    expect(tiles).to_have_count(MANY)
    expect(
        look.get_by_role("img", name=str(tiles.nth(ON_A_PAGE).get_attribute("data-name")))
    ).to_be_visible()
    names = tiles.evaluate_all("tiles => tiles.map(tile => tile.dataset.name)")
    assert len(set(names)) == MANY


@IN_EVERY_WINDOW
def test_all_photos_are_reached_by_the_bar_and_follow(
    photos: Page, window: Window, provider: ServerProcess
) -> None:
    photos.goto(f"{provider.base_url}/.pages/")
    photos.get_by_role("navigation", name="Pages").get_by_role("link", name="Photos").click()
    photos.wait_for_url("**/.pages/photos")
    tiles = photos.locator(".photos .tile")
    expect(tiles).to_have_count(ON_A_PAGE)
    more = photos.get_by_role("link", name="Show more")
    if window.scripts:
        more.scroll_into_view_if_needed()
        expect(tiles).to_have_count(MANY)
        expect(more).to_have_count(0)
        expect(photos.locator("main h2.month")).to_have_count(1)
    else:
        more.click()
        expect(tiles).to_have_count(MANY - ON_A_PAGE)
