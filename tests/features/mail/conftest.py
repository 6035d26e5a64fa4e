"""A server that sends mail, and its post office, which sends it when a test says so."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from podstead.config import Settings
from podstead.features.mail.destination import parse_mail_destination
from podstead.features.mail.sending import MailSender
from tests.support.application import Server, Start
from tests.support.browser import Browser
from tests.support.clock import FakeClock
from tests.support.console import administering
from tests.support.idp_pages import whole_account
from tests.support.mail import Postbox, PostOffice


@pytest.fixture
async def server(start: Start, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> Server:
    """Alice and Bob have addresses that they have not confirmed."""

    async def send_nothing(_sender: MailSender, _is_current: object) -> None:
        """The post office of the test does it."""

    monkeypatch.setattr(MailSender, "run", send_nothing)
    return await start(clock=clock, idp=True, mail=parse_mail_destination("console"))


@pytest.fixture
async def office(server: Server, settings: Settings, clock: FakeClock) -> AsyncIterator[PostOffice]:
    """Nothing waits in it: what was queued for Alice and Bob has been sent."""
    async with administering(settings, clock=clock) as services:
        office = PostOffice(services, Postbox())
        await office.deliver()
        yield office


@pytest.fixture
def browser(server: Server) -> Browser:
    return Browser(server.application)


@pytest.fixture
async def confirmed(server: Server, office: PostOffice) -> Browser:
    """The browser of Alice, in which she is signed in and has confirmed her address."""
    browser = Browser(server.application)
    page = await browser.get("/idp/login")
    page = await browser.send(
        page, "/idp/login", username="alice", password="the password of alice"
    )
    page = await whole_account(browser)
    page = await browser.send(page, "/idp/account/email/confirm")
    assert "is on its way" in page.text
    [message] = await office.deliver()
    page = await browser.get(message.link)
    page = await browser.send(page, message.link)
    assert "is confirmed" in page.text
    return browser
