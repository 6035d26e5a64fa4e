"""A person downloads everything in their pod, in parts if they must, and nobody else does."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from podstead.config import Settings
from tests.support.application import Server, Start, password_of
from tests.support.asgi import Answer
from tests.support.browser import Browser, Page
from tests.support.clock import FakeClock
from tests.support.git import NOTHING, Git, push_of
from tests.support.idp_pages import sign_in

FORM = "/idp/account/export"
ARCHIVE = f"{FORM}/alice.zip"


@pytest.fixture
async def account(browser: Browser) -> Page:
    return await sign_in(browser)


async def allowed(browser: Browser, account: Page) -> Answer:
    """The archive, as the form leads to it."""
    answer = await browser.send(account, FORM)
    assert answer.path == ARCHIVE
    return await archive(browser)


async def archive(browser: Browser, **headers: str) -> Answer:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return await browser.ask("GET", ARCHIVE, headers=fields)


async def test_a_person_downloads_their_pod(
    browser: Browser, account: Page, server: Server
) -> None:
    await server.alice.put("/alice/private/diary", "dear diary", "text/plain")
    answer = await allowed(browser, account)
    assert (answer.status, answer.header("content-type")) == (200, "application/zip")
    assert answer.header("content-disposition") == 'attachment; filename="alice.zip"'
    assert answer.header("content-length") == str(len(answer.body))
    with zipfile.ZipFile(io.BytesIO(answer.body)) as opened:
        assert opened.testzip() is None
        assert opened.read("alice/private/diary.txt") == b"dear diary"
        assert b"acl:agent" in opened.read("alice/private/.acl")


@pytest.mark.feature("history")
async def test_former_versions_are_downloaded_on_request(
    browser: Browser, account: Page, server: Server
) -> None:
    for content in ("dear diary", "dear reader"):
        await server.alice.put("/alice/private/diary", content, "text/plain")
    page = await browser.send(account, FORM, versions="yes")
    assert page.url.endswith(f"{ARCHIVE}?versions=yes")
    answer = await browser.ask("GET", f"{ARCHIVE}?versions=yes")
    with zipfile.ZipFile(io.BytesIO(answer.body)) as opened:
        (name,) = [each for each in opened.namelist() if each.startswith("former versions/alice")]
        assert opened.read(name) == b"dear diary"
        assert opened.read("alice/private/diary.txt") == b"dear reader"


async def test_a_download_goes_on_where_it_broke_off(
    browser: Browser, account: Page, server: Server, clock: FakeClock
) -> None:
    whole = await allowed(browser, account)
    etag = whole.header("etag") or ""
    clock.advance(3600)  # the sign-in is not recent any more
    rest = await archive(browser, range="bytes=1000-", if_range=etag)
    assert rest.status == 206
    size = len(whole.body)
    assert rest.header("content-range") == f"bytes 1000-{size - 1}/{size}"
    assert rest.body == whole.body[1000:]
    assert (await archive(browser, range=f"bytes={size}-")).status == 416
    # Of another state, the client gets all.
    await server.alice.put("/alice/public/new", "new", "text/plain")
    other = await archive(browser, range="bytes=1000-", if_range=etag)
    assert other.status == 200
    assert other.header("etag") != etag


@pytest.mark.needs("git")
async def test_git_repositories_are_in_every_part_of_it(
    start: Start, clock: FakeClock, settings: Settings, tmp_path: Path
) -> None:
    server = await start(clock=clock, idp=True, git=True)
    work = Git(tmp_path).new("work")
    tip = work.commit("a", "1")
    push = push_of(work, old=NOTHING)
    typed = "application/x-git-receive-pack-request"
    await server.alice.post("/alice/private/notes/git-receive-pack", push, typed)
    browser = Browser(server.application)
    whole = await allowed(browser, await sign_in(browser))
    with zipfile.ZipFile(io.BytesIO(whole.body)) as opened:
        opened.extract("alice/private/notes/repository.bundle", tmp_path)
    place = str(tmp_path / "alice/private/notes/repository.bundle")
    assert work.branches(place)["refs/heads/main"] == tip
    rest = await archive(browser, range="bytes=500-", if_range=whole.header("etag") or "")
    assert (rest.status, rest.body) == (206, whole.body[500:])
    changed = work.commit("a", "2")
    push = push_of(work, old=tip)
    await server.alice.post("/alice/private/notes/git-receive-pack", push, typed)
    again = await archive(browser, range="bytes=500-", if_range=whole.header("etag") or "")
    assert again.status == 200
    assert changed.encode() in again.body
    assert [path.name for path in (settings.root / "git").glob("new-*")] == []


async def test_it_takes_a_recent_sign_in(browser: Browser, account: Page, clock: FakeClock) -> None:
    clock.advance(601)
    page = await browser.send(account, FORM)
    assert page.path.startswith("/idp/login")
    assert "before you download everything" in page.text
    assert (await archive(browser)).status in (303, 403)
    page = await browser.send(page, "/idp/login", username="alice", password=password_of("alice"))
    assert page.url.endswith("/.pages/security?view=account")
    assert (await allowed(browser, page)).status == 200


async def test_it_is_for_this_person_in_this_session_for_a_day(
    browser: Browser, account: Page, server: Server, clock: FakeClock
) -> None:
    assert (await allowed(browser, account)).status == 200
    another = Browser(server.application)
    assert (await archive(another)).status in (303, 401)
    await sign_in(another)
    assert (await archive(another)).status in (303, 403)
    bob = Browser(server.application)
    await sign_in(bob, "bob")
    assert (await archive(bob)).status == 404
    clock.advance(24 * 3600 + 1)
    assert (await archive(browser)).status in (303, 401, 403)


async def test_a_page_of_another_site_does_not_start_it(browser: Browser, account: Page) -> None:
    headers = {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}
    answer = await browser.ask("POST", FORM, headers=headers, body=b"")
    assert answer.status == 403
    assert (await archive(browser)).status in (303, 403)
