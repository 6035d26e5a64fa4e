"""Links that can be used once: the first operator's, and those for a lost password."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace

import pytest

from podstead.config import Settings
from podstead.storage.sqlite import SqliteStore
from tests.support.application import Server, Start, password_of, running
from tests.support.browser import Browser, Page
from tests.support.clock import FakeClock
from tests.support.console import ACCOUNTS, administering, promote, sign_in_operator
from tests.support.pod_pages import sign_in_to_account

#
# Links that work once: for the first operator, and for a person who has lost the password.


BOB = f"{ACCOUNTS}/bob"
NEW = "another few words in a row"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def server(start: Start, clock: FakeClock) -> Server:
    return await start(idp=True, clock=clock)


async def first_link(settings: Settings, clock: FakeClock) -> str | None:
    """The path of the link that a start prints."""
    async with administering(settings, clock=clock) as services:
        secret = await services.administration.create_first_link()
    return None if secret is None else f"/.pages/link/{secret}"


async def bobs_link(server: Server, settings: Settings) -> str:
    """The path of the link that an operator gets in the console."""
    operator = await sign_in_operator(server, settings)
    page = await operator.get(f"{BOB}/link")
    page = await operator.send(page, f"{BOB}/link")
    assert page.status == 200
    _, found, rest = page.text.partition("http://localhost:3000/.pages/link/")
    assert found
    return f"/.pages/link/{rest[:64]}"


async def choose(browser: Browser, path: str, password: str = NEW) -> Page:
    """Open the link and choose a password."""
    page = await browser.get(path)
    if page.status != 200:
        return page
    return await browser.send(page, path, password=password, confirm=password)


# --- the first operator -----------------------------------------------------------------------


@pytest.fixture
async def link(server: Server, settings: Settings, clock: FakeClock) -> str:
    path = await first_link(settings, clock)
    assert path is not None
    return path


async def create_operator(browser: Browser, path: str, name: str = "olga") -> Page:
    page = await browser.get(path)
    if page.status != 200:
        return page
    return await browser.send(page, path, username=name, password=NEW, confirm=NEW)


async def test_the_link_creates_an_operator_once(server: Server, link: str) -> None:
    browser = Browser(server.application)
    page = await create_operator(browser, link)
    assert (page.status, page.path) == (200, ACCOUNTS)
    assert (await Browser(server.application).get(link)).status == 404
    assert (await create_operator(Browser(server.application), link, "oscar")).status == 404


async def test_it_works_when_registration_is_closed(
    server: Server, settings: Settings, clock: FakeClock, link: str
) -> None:
    changed = replace(settings, idp=True, registration="closed")
    async with running(changed, clock=clock) as closed:
        assert (await Browser(closed).get("/idp/register")).status == 403
        assert (await create_operator(Browser(closed), link)).path == ACCOUNTS


async def test_a_mistake_does_not_use_it_up(server: Server, link: str) -> None:
    browser = Browser(server.application)
    page = await browser.get(link)
    page = await browser.send(page, link, username="bob", password=NEW, confirm=NEW)
    assert page.status == 409
    page = await browser.send(page, link, username="olga", password=NEW, confirm="other words")
    assert page.status == 400
    assert (await create_operator(browser, link)).path == ACCOUNTS


async def test_it_expires_after_a_day(server: Server, link: str, clock: FakeClock) -> None:
    clock.advance(24 * 3600)
    assert (await Browser(server.application).get(link)).status == 404


async def test_the_next_start_replaces_it(
    server: Server, link: str, settings: Settings, clock: FakeClock
) -> None:
    newer = await first_link(settings, clock)
    assert newer is not None
    assert (await Browser(server.application).get(link)).status == 404
    assert (await Browser(server.application).get(newer)).status == 200


async def test_there_is_none_when_there_is_an_operator(
    server: Server, link: str, settings: Settings, clock: FakeClock
) -> None:
    await promote(settings)
    assert await first_link(settings, clock) is None
    assert (await Browser(server.application).get(link)).status == 404


async def test_two_uses_at_once_create_one_account(server: Server, link: str) -> None:
    pages = await asyncio.gather(
        *(
            create_operator(Browser(server.application), link, name)
            for name in ("olga", "oscar", "otto")
        )
    )
    assert min(page.status for page in pages) == 200
    assert [page.path for page in pages].count(ACCOUNTS) == 1


async def test_its_secret_is_not_stored(server: Server, link: str, settings: Settings) -> None:
    secret = link.rpartition("/")[2]
    store = SqliteStore(settings.root)
    await store.open()
    try:
        [entry] = await store.list_entries("one-time-link", limit=9, now_ms=0)
    finally:
        await store.close()
    assert secret not in entry.entry
    assert secret.encode() not in entry.value
    assert entry.entry == f"one-time-link/{hashlib.sha256(secret.encode()).hexdigest()}"


# --- a lost password --------------------------------------------------------------------------


async def test_a_person_chooses_a_new_password_once(server: Server, settings: Settings) -> None:
    bob = await sign_in_to_account(server, "bob")
    path = await bobs_link(server, settings)
    browser = Browser(server.application)
    page = await choose(browser, path)
    assert (page.status, page.path) == (200, "/.pages/security")
    page = await browser.get("/.pages/security?view=events")
    assert "One-time sign-in link created" in page.text
    assert (await bob.get("/.pages/files/")).path == "/idp/login"
    assert (await choose(Browser(server.application), path, "third words in a row")).status == 404
    page = await browser.get("/idp/login")
    other = Browser(server.application)
    page = await other.get("/idp/login")
    page = await other.send(page, "/idp/login", username="bob", password=NEW)
    assert page.path == "/.pages/security"


async def test_opening_the_page_does_not_use_it_up(server: Server, settings: Settings) -> None:
    path = await bobs_link(server, settings)
    for _ in range(3):
        assert (await Browser(server.application).get(path)).status == 200
    assert (await choose(Browser(server.application), path)).path == "/.pages/security"


async def test_it_expires_after_an_hour(
    server: Server, settings: Settings, clock: FakeClock
) -> None:
    path = await bobs_link(server, settings)
    clock.advance(3600)
    assert (await Browser(server.application).get(path)).status == 404


async def test_a_newer_link_replaces_it(server: Server, settings: Settings) -> None:
    earlier, later = await bobs_link(server, settings), await bobs_link(server, settings)
    assert (await Browser(server.application).get(earlier)).status == 404
    assert (await Browser(server.application).get(later)).status == 200


async def test_it_does_not_enable_a_disabled_account(server: Server, settings: Settings) -> None:
    path = await bobs_link(server, settings)
    async with administering(settings) as services:
        kept = await services.accounts.find("bob")
        assert kept is not None
        await services.administration.act("disable", kept.value.account_id)
    assert (await choose(Browser(server.application), path)).status == 404


async def test_another_site_cannot_use_it(server: Server, settings: Settings) -> None:
    path = await bobs_link(server, settings)
    fields = {"password": NEW, "confirm": NEW}
    browser = Browser(server.application)
    page = await browser.post(path, fields, sec_fetch_site="cross-site")
    assert page.status == 403
    assert password_of("bob") != NEW
    await sign_in_to_account(server, "bob")


async def test_the_page_sends_its_address_to_nobody(server: Server, settings: Settings) -> None:
    page = await Browser(server.application).get(await bobs_link(server, settings))
    assert page.answer.header("referrer-policy") in ("no-referrer", "same-origin")
    assert "no-store" in (page.answer.header("cache-control") or "")
