"""Who has to wait when a stranger guesses the password of an account, and who does not."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Final

import pytest

from podstead.config import Settings
from podstead.idp.sign_in import MARK_S
from podstead.web.pages.addresses import SECURITY
from tests.http.idp_pages.test_nostr_sign_in import log_in
from tests.http.idp_pages.test_passkeys import log_in as log_in_by_passkey
from tests.http.idp_pages.test_passkeys import register as add_passkey
from tests.support.application import BASE, Server, password_of, running
from tests.support.browser import Browser, Page
from tests.support.clock import FakeClock
from tests.support.idp_pages import sign_in, whole_account
from tests.support.nostr import NostrKey
from tests.support.nostr_pages import link
from tests.support.passkeys import SoftAuthenticator

STRANGER: Final = "192.0.2.66"
JSON: Final = {"Content-Type": "application/json", "Accept": "application/json"}
NEW: Final = "quite another one"


async def guess(
    server: Server, login: str, *, peer: str = STRANGER, password: str = "a wrong guess"
) -> int:
    """The status of a sign-in of a program that has no cookie."""
    body = json.dumps({"username": login, "password": password}).encode()
    answer = await server.public.request(
        "POST", "/idp/credentials", headers=JSON, body=body, peer=peer
    )
    return answer.status


async def lock(server: Server, login: str = "alice") -> None:
    """Guess until signing in with the name has to wait, from one address after the other."""
    for index in range(8):
        if await guess(server, login, peer=f"198.51.100.{index}") == 429:
            return
    raise AssertionError("nobody has to wait")


async def try_again(browser: Browser, password: str | None = None) -> Page:
    """Sign in once more in a browser, after its session ended."""
    page = await browser.get("/idp/login")
    return await browser.send(
        page, "/idp/login", username="alice", password=password or password_of("alice")
    )


async def sign_out(browser: Browser) -> None:
    page = await whole_account(browser)
    await browser.send(page, "/.pages/sign-out")


@pytest.fixture
async def owner(server: Server) -> Browser:
    """A browser that has signed in before, and is signed out."""
    browser = Browser(server.application)
    assert (await sign_in(browser)).path == SECURITY
    await sign_out(browser)
    return browser


async def test_strangers_do_not_keep_the_owner_out(server: Server, owner: Browser) -> None:
    """Not even from the owner's own address, with all failures that it may have in a minute."""
    await lock(server)
    assert (await try_again(Browser(server.application))).status == 429
    for index in range(70):
        await guess(server, f"name{index}", peer=owner.peer)
    assert await guess(server, "bob", peer=owner.peer, password=password_of("bob")) == 429
    assert (await try_again(owner)).path == "/.pages/security"


async def test_an_owner_who_mistypes_can_try_again(server: Server, owner: Browser) -> None:
    await lock(server)
    page = await try_again(owner, "a mistake")
    assert "wrong" in page.text
    assert (await try_again(owner)).path == "/.pages/security"


async def test_a_known_browser_guesses_no_faster_than_others(
    server: Server, owner: Browser
) -> None:
    statuses = [(await try_again(owner, f"guess {index}")).status for index in range(7)]
    assert statuses == [200] * 5 + [429] * 2
    assert (await try_again(owner)).status == 429
    assert (await sign_in(Browser(server.application))).path == SECURITY


async def test_a_browser_is_known_at_the_accounts_that_it_signed_in_to_only(
    server: Server,
) -> None:
    other = Browser(server.application)
    await sign_in(other, "bob")
    await sign_out(other)
    await lock(server)
    assert (await try_again(other)).status == 429


async def test_a_mark_that_the_server_did_not_sign_is_nothing(
    server: Server, owner: Browser
) -> None:
    mark = owner.cookies["podstead-known"]
    device, made_s, signature = mark.split(".")
    await lock(server)
    for forged in (
        f"{'0' * 32}.{made_s}.{signature}",
        f"{device}.{int(made_s) + 1}.{signature}",
        f"{device}.{made_s}.{'0' * 64}",
        "~".join([f"{'0' * 32}.{made_s}.{signature}"] * 4 + [mark]),
        "~~..~.",
        "x" * 2000,
    ):
        owner.cookies["podstead-known"] = forged
        assert (await try_again(owner)).status == 429, forged
    owner.cookies["podstead-known"] = mark
    assert (await try_again(owner)).path == "/.pages/security"


async def test_a_browser_is_known_for_half_a_year(
    server: Server, owner: Browser, clock: FakeClock
) -> None:
    clock.advance(MARK_S - 1)
    await lock(server)
    assert (await try_again(owner)).path == "/.pages/security"
    await sign_out(owner)
    clock.advance(MARK_S)
    await lock(server)
    assert (await try_again(owner)).status == 429


async def test_a_new_password_makes_other_browsers_unknown(
    server: Server, owner: Browser, clock: FakeClock
) -> None:
    """Whoever had the old one may have signed in to them."""
    other = Browser(server.application)
    page = await sign_in(other)
    clock.advance(5)
    typed = {"current": password_of("alice"), "new": NEW, "confirm": NEW}
    await other.send(page, "/idp/account/password", **typed)
    await sign_out(other)
    await lock(server)
    assert (await try_again(owner, NEW)).status == 429
    assert (await try_again(other, NEW)).path == "/.pages/security"


async def test_a_mark_outlives_a_new_start_and_signs_nobody_in(
    server: Server, owner: Browser, settings: Settings, clock: FakeClock
) -> None:
    async with running(replace(settings, idp=True), clock=clock) as application:
        again = Browser(application, cookies=dict(owner.cookies))
        assert (await whole_account(again)).path == "/idp/login"
        await lock(server)
        assert (await try_again(again)).path == "/.pages/security"


async def test_a_browser_is_known_at_several_accounts(server: Server, owner: Browser) -> None:
    await sign_in(owner, "bob")
    await sign_out(owner)
    await lock(server)
    assert (await try_again(owner)).path == "/.pages/security"


async def test_failures_of_others_do_not_prevent_changing_the_password(
    server: Server, owner: Browser
) -> None:
    page = await try_again(owner)
    del owner.cookies["podstead-known"]
    await lock(server)
    typed = {"current": password_of("alice"), "new": NEW, "confirm": NEW}
    page = await owner.send(page, "/idp/account/password", **typed)
    assert "Your password has been changed" in page.text


async def test_a_linked_nostr_key_gets_its_try(
    server: Server, owner: Browser, clock: FakeClock
) -> None:
    key = NostrKey.new()
    await try_again(owner)
    assert (await link(owner, clock, key)).status == 201
    await lock(server)
    assert (await log_in(Browser(server.application), clock, key)).status == 200


async def test_a_passkey_gets_its_try(server: Server) -> None:
    browser = Browser(server.application)
    await sign_in(browser)
    passkey = SoftAuthenticator(BASE)
    assert (await add_passkey(browser, passkey)).status == 200
    await lock(server)
    assert (await log_in_by_passkey(Browser(server.application), passkey)).status == 200


# --- what waiting tells -----------------------------------------------------------------------


@pytest.mark.parametrize("first", ["alice", "alice@example.org", "nobody", "nobody@example.org"])
async def test_waiting_does_not_link_a_pod_name_with_an_email_address(
    server: Server, first: str
) -> None:
    """Whatever name was guessed at, others are as they were: those of the same account too."""
    await lock(server, first)
    others = {"alice", "alice@example.org", "nobody", "nobody@example.org"} - {first}
    for other in sorted(others):
        assert await guess(server, other) == 401, other
    assert await guess(server, first.upper()) == 429


async def test_unknown_names_wait_like_known_ones(server: Server) -> None:
    statuses = {
        login: [await guess(server, login, peer=f"198.51.100.{index}") for index in range(7)]
        for login in ("alice", "alice@example.org", "nobody", "nobody@example.org")
    }
    assert set(map(tuple, statuses.values())) == {(401,) * 5 + (429,) * 2}
