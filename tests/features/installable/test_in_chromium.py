"""The installed pages in Chromium: what it needs to install them, reading without a network, and
files that the system shares."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from tests.support.browser_fixtures import chromium, person, provider
from tests.support.browser_people import PHONE_WIDTH, Window, sign_in, sign_out, type_password
from tests.support.people import PASSWORD, Account, create_account
from tests.support.server import ServerProcess, running_server
from tests.support.waiting import wait_until

pytestmark = pytest.mark.needs("chromium")

OFFLINE = "/.pages/offline"
CONTROLLED = "() => navigator.serviceWorker.controller !== null"
KEPT = """path => caches.open("podstead-pages").then(pages => pages.keys()).then(
    keys => keys.some(key => new URL(key.url).pathname === path))"""
COUNT = "name => caches.open(name).then(cache => cache.keys()).then(keys => keys.length)"
PUT_PAGES = """([path, count, date]) => caches.open("podstead-pages").then(async pages => {
    for (let number = 0; number < count; number++) {
        const headers = {date: new Date(date).toUTCString()};
        await pages.put(path + number, new Response("<h1>A page</h1>", {headers}));
    }
})"""
SHOW_PICTURES = """([path, count]) => {
    for (let number = 0; number < count; number++) new Image().src = `${path}?${number}`;
}"""
SHARE = """() => {
    const form = new FormData();
    form.append("files", new File(["taken on the road"], "road.txt", {type: "text/plain"}));
    return fetch("/.pages/receive", {method: "POST", body: form, redirect: "manual"})
        .then(answer => answer.type);
}"""

_HOSTILE = """<!doctype html><form method="post" enctype="multipart/form-data" action="{address}">
<input type="file" name="files" multiple></form><script>
const files = new DataTransfer();
files.items.add(new File(["planted"], "planted.txt", {type: "text/plain"}));
document.querySelector("input").files = files.files;
document.querySelector("form").submit();
</script>"""


@pytest.fixture
def page(chromium: Browser, provider: ServerProcess, person: Account) -> Iterator[Page]:
    """A page of a phone, which the service worker serves."""
    with Window(PHONE_WIDTH).new_context(chromium, service_workers="allow") as context:
        page = context.new_page()
        sign_in(page, provider, person)

        def is_controlled() -> bool:
            page.goto(f"{provider.base_url}/.pages/")
            return bool(page.evaluate(CONTROLLED))

        # A page that is loaded while the service worker starts does without it.
        wait_until(is_controlled, "the service worker serves the page")
        yield page


@contextmanager
def stopped(provider: ServerProcess) -> Iterator[None]:
    provider.stop()
    try:
        yield
    finally:
        provider.start()


def _open(page: Page, provider: ServerProcess, path: str) -> None:
    page.goto(f"{provider.base_url}/.pages/files{path}")
    page.wait_for_load_state("networkidle")


def _open_until(page: Page, provider: ServerProcess, path: str, *, is_kept: bool) -> None:
    """Open a page until the service worker has taken note of it, for which nobody waits."""

    def is_noted() -> bool:
        _open(page, provider, path)
        return bool(page.evaluate(KEPT, f"/.pages/files{path}")) is is_kept

    wait_until(is_noted, "the page is kept" if is_kept else "the page is dropped")


def test_chromium_finds_nothing_that_keeps_it_from_installing(
    page: Page, provider: ServerProcess
) -> None:
    session = page.context.new_cdp_session(page)
    found = session.send("Page.getAppManifest")
    assert found["errors"] == []
    manifest = json.loads(found["data"])
    assert manifest["start_url"] == "/.pages/"
    for icon in manifest["icons"]:
        answer = page.request.get(provider.base_url + icon["src"])
        with Image.open(io.BytesIO(answer.body())) as picture:
            assert "x".join(map(str, picture.size)) == icon["sizes"]
            assert picture.get_format_mimetype() == answer.headers["content-type"] == "image/png"
    assert session.send("Page.getInstallabilityErrors")["installabilityErrors"] == []


def test_what_was_opened_is_read_without_a_network_until_the_person_signs_out(
    page: Page, provider: ServerProcess, person: Account
) -> None:
    path = f"/{person.name}/diary.txt"
    with person.owner() as owner:
        assert owner.put(path, "a day in the hills").status == 201
    _open_until(page, provider, path, is_kept=True)
    address = page.url
    page.evaluate(PUT_PAGES, [f"/.pages/files/{person.name}/long-ago", 1, "2020-01-01"])
    with stopped(provider):
        page.context.set_offline(True)
        page.goto(address)
        expect(page.get_by_text("a day in the hills")).to_be_visible()
        expect(page.get_by_role("status")).to_contain_text("You are offline")
        page.goto(f"{provider.base_url}/.pages/files/{person.name}/never-opened.txt")
        expect(page.get_by_role("heading", name="You are offline")).to_be_visible()
        expect(page.get_by_role("link", name="A page")).to_have_count(0)
        page.get_by_role("link", name="diary.txt").click()
        expect(page.get_by_text("a day in the hills")).to_be_visible()
        page.context.set_offline(False)
    page.goto(f"{provider.base_url}/.pages/")
    sign_out(page)
    wait_until(
        lambda: page.evaluate(KEPT, f"/.pages/files{path}") is False, "the page is forgotten"
    )


def test_pictures_and_many_pages_leave_room_for_the_page_about_the_network(
    page: Page, provider: ServerProcess, person: Account
) -> None:
    path, picture = f"/{person.name}/diary.txt", io.BytesIO()
    Image.new("RGB", (9, 6), "teal").save(picture, "PNG")
    with person.owner() as owner:
        assert owner.put(path, "a day in the hills").status == 201
        stored = owner.put(f"/{person.name}/a.png", picture.getvalue(), "image/png")
        assert stored.status == 201
    _open_until(page, provider, path, is_kept=True)
    wait_until(lambda: page.evaluate(KEPT, OFFLINE) is True, "the page is kept")
    page.evaluate(SHOW_PICTURES, [f"/.pages/raw/{person.name}/a.png", 45])
    wait_until(lambda: page.evaluate(COUNT, "podstead-pictures") >= 45, "all pictures are kept")
    wait_until(
        lambda: page.evaluate(KEPT, f"/.pages/files{path}") is True, "the page is still kept"
    )
    page.evaluate(PUT_PAGES, [f"/.pages/files/{person.name}/", 45, "2020-01-01"])
    _open_until(page, provider, f"/{person.name}/a.png", is_kept=True)
    wait_until(lambda: page.evaluate(COUNT, "podstead-pages") == 41, "the oldest are dropped")
    assert page.evaluate(KEPT, OFFLINE) is True


def test_what_is_gone_and_what_others_share_is_not_kept(
    page: Page, provider: ServerProcess, person: Account
) -> None:
    friend = create_account(provider)
    shared, own = f"/{friend.name}/public/list.txt", f"/{person.name}/old.txt"
    with friend.owner() as owner:
        assert owner.put(shared, "bread").status == 201
    with person.owner() as owner:
        assert owner.put(own, "old").status == 201
    _open(page, provider, shared)
    expect(page.get_by_text("bread")).to_be_visible()
    _open_until(page, provider, own, is_kept=True)
    assert page.evaluate(KEPT, f"/.pages/files{shared}") is False
    with person.owner() as owner:
        assert owner.delete(own).status == 204
    _open_until(page, provider, own, is_kept=False)


def test_the_pages_of_one_person_are_not_kept_for_the_next(
    page: Page, provider: ServerProcess, person: Account
) -> None:
    """Who signs out and in at the provider, which the service worker does not see."""
    friend = create_account(provider)
    own, other = f"/{person.name}/diary.txt", f"/{friend.name}/list.txt"
    for each, path in ((person, own), (friend, other)):
        with each.owner() as owner:
            assert owner.put(path, "text").status == 201
    _open_until(page, provider, own, is_kept=True)
    page.context.clear_cookies()
    sign_in(page, provider, friend)
    _open_until(page, provider, other, is_kept=True)
    assert page.evaluate(KEPT, f"/.pages/files{own}") is False


def test_files_that_the_system_shares_are_put_in(
    page: Page, provider: ServerProcess, person: Account
) -> None:
    assert page.evaluate(SHARE) == "opaqueredirect"
    page.goto(f"{provider.base_url}/.pages/receive")
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.get_by_role("link", name="road.txt")).to_be_visible()
    with person.owner() as owner:
        assert owner.get(f"/{person.name}/road.txt").body == b"taken on the road"
    assert page.evaluate("caches.has('podstead-received')") is False


def test_files_that_the_system_shares_wait_until_the_person_has_signed_in(
    page: Page, provider: ServerProcess, person: Account
) -> None:
    page.context.clear_cookies()
    assert page.evaluate(SHARE) == "opaqueredirect"
    page.goto(f"{provider.base_url}/.pages/receive")
    type_password(page, person.name)
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.get_by_role("link", name="road.txt")).to_be_visible()
    with person.owner() as owner:
        assert owner.get(f"/{person.name}/road.txt").body == b"taken on the road"


def test_a_form_of_another_site_reaches_no_pod(
    page: Page, provider: ServerProcess, person: Account
) -> None:
    """The person would have to send the files."""
    hostile = _HOSTILE.replace("{address}", f"{provider.base_url}/.pages/receive")
    page.route(
        "http://elsewhere.example/",
        lambda route: route.fulfill(content_type="text/html", body=hostile),
    )
    page.goto("http://elsewhere.example/")
    page.wait_for_url("**/.pages/upload/**")
    expect(page.get_by_role("button", name="Upload", exact=True)).to_be_visible()
    page.wait_for_load_state("networkidle")
    with person.owner() as owner:
        assert owner.get(f"/{person.name}/planted.txt").status == 404
