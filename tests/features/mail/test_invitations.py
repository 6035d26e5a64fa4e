"""Invitations with a note, and those that are sent by mail."""

from __future__ import annotations

import pytest

from podstead.config import Settings
from podstead.features.mail.destination import MailDelayed
from podstead.storage.invitations import MAX_NOTE_CHARACTERS
from podstead.web.limits import WRONG_INVITATIONS_PER_HOUR
from tests.support.application import Server
from tests.support.browser import Browser
from tests.support.clock import FakeClock
from tests.support.console import sign_in_operator
from tests.support.mail import PostOffice

INVITATIONS = "/.pages/console/invitations"
NOTE = "Welcome <b>to</b> the club"
SHOWN = "Welcome &lt;b&gt;to&lt;/b&gt; the club"
ADDRESS = "carol@example.org"


@pytest.fixture
async def operator(server: Server, settings: Settings, office: PostOffice) -> Browser:
    browser = await sign_in_operator(server, settings)
    await office.deliver()
    return browser


async def create(operator: Browser, **typed: str) -> str:
    page = await operator.send(await operator.get(INVITATIONS), INVITATIONS, **typed)
    return page.text


async def test_the_page_and_the_message_have_the_note(
    operator: Browser, office: PostOffice, browser: Browser
) -> None:
    text = await create(operator, note=NOTE, send_to=ADDRESS)
    assert f"on its way to {ADDRESS}" in text
    assert SHOWN in text
    assert "invitation=" not in text
    [message] = await office.deliver()
    assert message.recipient == ADDRESS
    assert NOTE in message.text
    assert SHOWN in message.html
    _, _, link = message.text.partition("http://localhost:3000")
    page = await browser.get(link.split()[0])
    assert SHOWN in page.text
    assert "A note from whoever invited you:" in page.text


async def test_a_message_that_is_sent_again_has_a_link_that_works(
    operator: Browser, office: PostOffice, browser: Browser, clock: FakeClock
) -> None:
    await create(operator, note=NOTE, send_to=ADDRESS)
    office.box.failures.append(MailDelayed("busy"))
    assert await office.deliver() == []
    page = await operator.get("/.pages/console/health")
    assert "busy" in page.text
    clock.advance(120)
    [message] = await office.deliver()
    _, _, link = message.text.partition("http://localhost:3000")
    assert SHOWN in (await browser.get(link.split()[0])).text


async def test_a_revoked_invitation_is_not_sent(operator: Browser, office: PostOffice) -> None:
    await create(operator, send_to=ADDRESS)
    page = await operator.get(INVITATIONS)
    action = next(each for each in page.text.split('"') if each.endswith("/revoke"))
    await operator.send(page, action)
    assert await office.deliver() == []


async def test_a_wrong_code_shows_nothing_and_counts_as_a_guess(
    operator: Browser, office: PostOffice, browser: Browser, clock: FakeClock
) -> None:
    await create(operator, note=NOTE, send_to=ADDRESS)
    [message] = await office.deliver()
    _, _, link = message.text.partition("http://localhost:3000")
    shown = (await browser.get(link.split()[0], Sec_Fetch_Mode="navigate")).text
    assert SHOWN in shown
    for _ in range(WRONG_INVITATIONS_PER_HOUR):
        page = await browser.get(
            "/idp/register?invitation=0000-0000-0000-0000", Sec_Fetch_Mode="navigate"
        )
        assert page.status == 200
        assert "whoever invited you" not in page.text
    page = await browser.get(link.split()[0], Sec_Fetch_Mode="navigate")
    assert page.status == 200
    assert SHOWN not in page.text, "too many wrong codes came from this address"
    clock.advance(3600)
    assert SHOWN in (await browser.get(link.split()[0], Sec_Fetch_Mode="navigate")).text


@pytest.mark.parametrize(
    "typed",
    [
        {"note": "x" * (MAX_NOTE_CHARACTERS + 1)},
        {"send_to": "nobody"},
        {"send_to": "a@b.example\r\nBcc: c@d.example"},
        {"send_to": "a@b.example, c@d.example"},
        {"send_to": f"{'x' * 300}@b.example"},
    ],
)
async def test_what_is_out_of_bounds_is_refused(
    operator: Browser, office: PostOffice, typed: dict[str, str]
) -> None:
    page = await operator.send(await operator.get(INVITATIONS), INVITATIONS, **typed)
    assert page.status == 400
    assert await office.deliver() == []


async def test_sending_requires_a_recent_sign_in(
    operator: Browser, office: PostOffice, clock: FakeClock
) -> None:
    page = await operator.get(INVITATIONS)
    clock.advance(11 * 60)
    page = await operator.send(page, INVITATIONS, send_to=ADDRESS)
    assert page.path == "/idp/login"
    assert "Sign in again to send" in (await operator.get(INVITATIONS)).text
    assert await office.deliver() == []
