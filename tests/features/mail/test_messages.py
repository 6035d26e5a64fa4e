"""Confirmed addresses, links for a new password, and notices of changes."""

from __future__ import annotations

import asyncio
import re

import pytest

from podstead.app.monitoring.families import MailCounts, MailOutcome
from podstead.config import Settings
from podstead.core.errors import StorageError
from podstead.features.mail import compose, sending
from podstead.features.mail.destination import MailDelayed, MailRefused
from podstead.features.mail.sending import VERIFICATIONS_PER_DAY
from podstead.idp.mail_queue import LEASE_MS, MAX_WAITING_FOR_ACCOUNT
from podstead.idp.records import Account
from podstead.storage.record_store import secret_key
from tests.support.application import BASE, Server, Start, password_of
from tests.support.browser import Browser, Page
from tests.support.clock import FakeClock
from tests.support.console import promote
from tests.support.idp_pages import whole_account
from tests.support.mail import SENDER, PostOffice, Received
from tests.support.pod_pages import csrf_token_of

NEW_PASSWORD = "quite different words"
FORGOT = "/.pages/forgot"


async def account(office: PostOffice, name: str = "alice") -> Account:
    kept = await office.services.accounts.find(name)
    assert kept is not None
    return kept.value


async def ask(server: Server, login: str, *, peer: str = "127.0.0.1", **headers: str) -> Page:
    """What somebody who has lost the password of ``login`` sees."""
    browser = Browser(server.application, peer=peer)
    page = await browser.get(FORGOT, **headers)
    fields = {**page.form(FORGOT).fields, "login": login}
    return await browser.post(FORGOT, fields, **headers)


async def change_password(browser: Browser) -> None:
    page = await whole_account(browser)
    typed = {"current": password_of("alice"), "new": NEW_PASSWORD, "confirm": NEW_PASSWORD}
    page = await browser.send(page, "/idp/account/password", **typed)
    assert "has been changed" in page.text


async def sign_in(server: Server, name: str = "alice", password: str = "") -> Browser:
    browser = Browser(server.application)
    page = await browser.get("/idp/login")
    page = await browser.send(
        page, "/idp/login", username=name, password=password or password_of(name)
    )
    assert page.path == "/.pages/security", page.text
    return browser


# --- confirming an address ------------------------------------------------------------------------


async def test_whoever_registers_confirms_the_address(browser: Browser, office: PostOffice) -> None:
    page = await browser.get("/idp/register")
    password = "a few words in a row"
    typed = {"username": "carol", "password": password, "confirmPassword": password}
    await browser.send(page, "/idp/register", email="carol@example.org", **typed)
    [message] = await office.deliver()
    assert message.recipient == "carol@example.org"
    assert message.message["From"].addresses[0].addr_spec == SENDER
    assert message.message["Auto-Submitted"] == "auto-generated"
    assert "carol" in message.text
    for _ in range(2):  # a mail program looks at the link as well
        page = await browser.get(message.link)
        assert "Is carol@example.org your address" in page.text
    assert (await account(office, "carol")).email_verified_s == 0
    page = await browser.send(page, message.link)
    assert "is confirmed" in page.text
    assert (await account(office, "carol")).email_verified_s > 0
    assert (await browser.get(message.link)).status == 404, "it works once"
    assert await office.deliver() == []


async def test_a_link_confirms_only_the_address_that_it_was_sent_to(
    server: Server, office: PostOffice
) -> None:
    browser = await sign_in(server)
    page = await whole_account(browser)
    await browser.send(page, "/idp/account/email/confirm")
    [first] = await office.deliver()
    page = await whole_account(browser)
    typed = {"email": "new@example.org", "current": password_of("alice")}
    await browser.send(page, "/idp/account/email", **typed)
    [second] = await office.deliver()
    assert second.recipient == "new@example.org"
    assert (await browser.get(first.link)).status == 404
    assert (await Browser(server.application).post(first.link, {})).status == 404
    await browser.send(await browser.get(second.link), second.link)
    assert (await account(office)).email_verified_s > 0


async def test_another_address_has_to_be_confirmed_again(
    confirmed: Browser, office: PostOffice
) -> None:
    assert (await account(office)).email_verified_s > 0
    page = await whole_account(confirmed)
    typed = {"email": "new@example.org", "current": password_of("alice")}
    await confirmed.send(page, "/idp/account/email", **typed)
    assert (await account(office)).email_verified_s == 0
    messages = {each.recipient: each for each in await office.deliver()}
    assert set(messages) == {"alice@example.org", "new@example.org"}
    assert "E-mail address changed" in messages["alice@example.org"].subject


async def test_a_link_that_expired_confirms_nothing(
    browser: Browser, server: Server, office: PostOffice, clock: FakeClock
) -> None:
    person = await sign_in(server)
    await person.send(await whole_account(person), "/idp/account/email/confirm")
    [message] = await office.deliver()
    clock.advance(3 * 24 * 3600 + 1)
    assert (await browser.get(message.link)).status == 404


async def test_nobody_is_flooded_with_questions(server: Server, office: PostOffice) -> None:
    """Each account has five a day, whatever it states."""
    sent = 0
    for _ in range(4):
        for name in ("alice", "bob"):
            browser = await sign_in(server, name)
            page = await whole_account(browser)
            typed = {"email": "victim@example.org", "current": password_of(name)}
            await browser.send(page, "/idp/account/email", **typed)
            page = await whole_account(browser)
            typed["email"] = f"{name}@example.org"
            await browser.send(page, "/idp/account/email", **typed)
            sent += sum(each.recipient == "victim@example.org" for each in await office.deliver())
    assert sent <= 5


async def state_address(server: Server, name: str, email: str) -> None:
    browser = await sign_in(server, name)
    page = await whole_account(browser)
    await browser.send(page, "/idp/account/email", email=email, current=password_of(name))


async def test_a_stranger_keeps_nobody_from_confirming_an_address(
    server: Server, office: PostOffice
) -> None:
    for number in range(6):
        await state_address(server, "bob", "victim@example.org")
        await state_address(server, "bob", f"bob-{number}@example.org")
        await office.deliver()
    await state_address(server, "alice", "victim@example.org")
    assert [each.recipient for each in await office.deliver()] == ["victim@example.org"]


async def test_one_account_does_not_write_to_many_strangers(
    server: Server, office: PostOffice
) -> None:
    sent = 0
    for number in range(7):
        await state_address(server, "bob", f"stranger-{number}@example.org")
        sent += len(await office.deliver())
    assert sent <= VERIFICATIONS_PER_DAY


async def test_addresses_with_a_plus_sign_are_one_mailbox(
    server: Server, office: PostOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "VERIFICATIONS_TO_MAILBOX_PER_DAY", 1)
    await state_address(server, "alice", "victim+a@example.org")
    await state_address(server, "bob", "Victim+b@Example.org")
    assert len(await office.deliver()) == 1


# --- a new password ---------------------------------------------------------------------------


async def test_a_link_lets_a_person_choose_a_new_password(
    server: Server, confirmed: Browser, office: PostOffice
) -> None:
    await ask(server, "ALICE@example.org")
    [message] = await office.deliver()
    assert message.recipient == "alice@example.org"
    stranger = Browser(server.application)
    page = await stranger.get(message.link)
    page = await stranger.send(page, message.link, password=NEW_PASSWORD, confirm=NEW_PASSWORD)
    assert page.path == "/.pages/security"
    assert (await whole_account(confirmed)).path == "/idp/login", "signed out elsewhere"
    assert (await stranger.get(message.link)).status == 404, "it works once"
    [notice] = await office.deliver()
    assert "Password changed" in notice.subject


@pytest.mark.usefixtures("confirmed")
async def test_the_response_does_not_say_whether_there_is_an_account(
    server: Server, office: PostOffice
) -> None:
    """Alice has confirmed her address, Bob has not, and Carol does not exist."""
    pages = [
        await ask(server, login, peer=f"198.51.100.{number}")
        for number, login in enumerate(["alice", "bob", "carol", "carol@example.org"])
    ]
    assert len({(page.status, page.text) for page in pages}) == 1
    assert "If there is such an account" in pages[0].text
    assert [each.recipient for each in await office.deliver()] == ["alice@example.org"]


async def test_of_the_secrets_in_links_only_hashes_are_stored(
    server: Server, confirmed: Browser, office: PostOffice, settings: Settings
) -> None:
    assert confirmed.cookies
    await ask(server, "alice")
    [message] = await office.deliver()
    secret = message.link.rpartition("/")[2]
    files = [each for each in settings.root.rglob("*") if each.is_file()]
    content = b"".join(each.read_bytes() for each in files)
    assert secret.encode() not in content
    assert secret_key(secret).encode() in content


@pytest.mark.usefixtures("confirmed")
async def test_a_stranger_neither_floods_a_person_nor_ends_their_links(
    server: Server, office: PostOffice
) -> None:
    links: list[Received] = []
    for number in range(12):
        login = ["alice", "alice@example.org", "ALICE "][number % 3]
        page = await ask(server, login, peer=f"198.51.100.{number}")
        assert page.status == 200
        links += await office.deliver()
    assert len(links) == 3
    browser = Browser(server.application)
    page = await browser.get(links[0].link)
    page = await browser.send(page, links[0].link, password=NEW_PASSWORD, confirm=NEW_PASSWORD)
    assert page.path == "/.pages/security", "the first one still works"
    for each in links:
        assert (await browser.get(each.link)).status == 404, "a new password ends all of them"


async def test_another_address_ends_the_links_that_the_former_one_got(
    server: Server, confirmed: Browser, office: PostOffice
) -> None:
    """Whoever reads the mail of the former address may be the reason for the change."""
    await ask(server, "alice")
    [message] = await office.deliver()
    page = await whole_account(confirmed)
    typed = {"email": "safe@example.org", "current": password_of("alice")}
    await confirmed.send(page, "/idp/account/email", **typed)
    assert (await Browser(server.application).get(message.link)).status == 404


@pytest.mark.usefixtures("confirmed")
async def test_there_is_always_a_link_within_the_limit(
    server: Server, office: PostOffice, clock: FakeClock
) -> None:
    for number in range(3):
        await ask(server, "alice", peer=f"198.51.100.{number}")
    assert len(await office.deliver()) == 3
    clock.advance(20 * 60 + 1)
    await ask(server, "alice")
    assert len(await office.deliver()) == 1


async def test_one_address_asks_ten_times_an_hour_and_others_as_they_like(server: Server) -> None:
    statuses = [
        (await ask(server, f"person-{number}", peer="198.51.100.7")).status for number in range(11)
    ]
    assert statuses == [200] * 10 + [429]
    assert (await ask(server, "person-0", peer="198.51.100.8")).status == 200


async def test_without_mail_the_page_says_whom_to_ask(start: Start, clock: FakeClock) -> None:
    server = await start(clock=clock, idp=True, operator_contact="help@pods.example")
    browser = Browser(server.application)
    page = await browser.get("/idp/login")
    assert f'href="{FORGOT}"' in page.text
    page = await browser.get(FORGOT)
    assert "mailto:help@pods.example" in page.text
    assert "<form" not in page.text.partition("<main")[2].partition("</main")[0]
    assert (await browser.post(FORGOT, {"login": "alice"})).status == 404


# --- notices ------------------------------------------------------------------------------------


async def test_a_person_is_told_of_changes(confirmed: Browser, office: PostOffice) -> None:
    await change_password(confirmed)
    [message] = await office.deliver()
    assert message.recipient == "alice@example.org"
    assert message.subject == "Password changed: your account alice"
    assert "127.0.0.1" in message.text
    assert "Firefox on Linux" in message.text
    page = await whole_account(confirmed)
    await confirmed.send(page, "/idp/account/client-credentials", name='"><b>backup</b>')
    [message] = await office.deliver()
    assert "Client credentials created" in message.subject
    assert '"><b>backup</b>' in message.text
    assert "<b>" not in message.html


async def test_a_person_is_told_of_a_browser_that_is_new(
    server: Server, confirmed: Browser, office: PostOffice
) -> None:
    page = await whole_account(confirmed)
    page = await confirmed.send(page, "/.pages/sign-out")
    page = await confirmed.get("/idp/login")
    await confirmed.send(page, "/idp/login", username="alice", password=password_of("alice"))
    assert await office.deliver() == [], "this one is known"
    await sign_in(server)
    [message] = await office.deliver()
    assert message.subject == "New sign-in to your account alice"


async def test_who_has_not_confirmed_the_address_is_told_nothing(
    server: Server, office: PostOffice
) -> None:
    """It may be that of a stranger."""
    await change_password(await sign_in(server))
    assert await office.deliver() == []


async def test_a_command_of_the_operator_is_reported_too(
    confirmed: Browser, office: PostOffice
) -> None:
    assert confirmed.cookies
    alice = await account(office)
    await office.services.administration.create_sign_in_link(alice.account_id)
    [message] = await office.deliver()
    assert "One-time sign-in link created" in message.subject
    assert "the operator of this server" in message.text


# --- the queue ------------------------------------------------------------------------------------


async def test_a_message_is_tried_again_until_it_is_sent(
    confirmed: Browser, office: PostOffice, clock: FakeClock
) -> None:
    await change_password(confirmed)
    office.box.failures += [MailDelayed("no"), MailDelayed("not yet")]
    assert await office.deliver() == []
    assert await office.deliver() == [], "not at once"
    clock.advance(60)
    assert await office.deliver() == []
    clock.advance(299)
    assert await office.deliver() == []
    clock.advance(1)
    assert len(await office.deliver()) == 1
    clock.advance(24 * 3600)
    assert await office.deliver() == []


async def test_an_outage_of_two_days_ends_a_message(
    confirmed: Browser, office: PostOffice, clock: FakeClock
) -> None:
    await change_password(confirmed)
    clock.advance(2 * 24 * 3600 + 1)
    assert await office.deliver() == []


async def test_what_is_refused_is_given_up_and_logged(
    confirmed: Browser, office: PostOffice, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="podstead.audit")
    await change_password(confirmed)
    office.box.failures.append(MailRefused("550"))
    assert await office.deliver() == []
    assert await office.deliver() == []
    assert "mail given up" in caplog.text


@pytest.mark.parametrize("failure", [KeyError("a text"), StorageError("damaged")])
async def test_a_message_that_cannot_be_written_does_not_stop_others(
    server: Server,
    confirmed: Browser,
    office: PostOffice,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    failure: Exception,
) -> None:
    def fail(*_arguments: object, **_facts: object) -> None:
        raise failure

    before = MailCounts.counts.copy()
    await change_password(confirmed)
    clock.advance(1)
    with monkeypatch.context() as patch:
        patch.setattr(compose, "security_notice", fail)
        await sign_in(server, password=NEW_PASSWORD)
        [message] = await office.deliver()
        assert "New sign-in" in message.subject
    assert MailCounts.counts - before == {MailOutcome.DELAYED: 1, MailOutcome.SENT: 1}
    clock.advance(60)
    assert len(await office.deliver()) == 1, "it is not lost"


@pytest.mark.usefixtures("confirmed")
async def test_workers_send_each_message_once(server: Server, office: PostOffice) -> None:
    for number in range(3):
        await ask(server, "alice", peer=f"198.51.100.{number}")
    await sign_in(server)
    workers = [office.sender, *(office.another_worker() for _ in range(4))]
    office.box.received.clear()
    await asyncio.gather(*(worker.send_due() for worker in workers))
    # Whoever had the lease may have ended before others had a look.
    identifiers = [each.message["Message-ID"] for each in office.box.received]
    assert len(identifiers) == len(set(identifiers)) == 4


async def test_another_worker_takes_over_from_one_that_died(
    confirmed: Browser, office: PostOffice, clock: FakeClock
) -> None:
    await change_password(confirmed)
    office.box.failures.append(MailDelayed("and then the worker was killed"))
    assert await office.deliver() == []
    clock.advance(60)
    heir = office.another_worker()
    await heir.send_due()
    assert office.box.received == [], "it may still be at work"
    clock.advance(LEASE_MS / 1000)
    await heir.send_due()
    assert len(office.box.received) == 1


async def test_what_waits_for_one_account_is_bounded_and_ends_with_it(
    confirmed: Browser, office: PostOffice
) -> None:
    alice = await account(office)
    for _ in range(MAX_WAITING_FOR_ACCOUNT + 5):
        await office.services.administration.create_sign_in_link(alice.account_id)
    queue = office.sender._queue
    assert await queue.waiting() == MAX_WAITING_FOR_ACCOUNT
    await office.services.administration.act("delete", alice.account_id)
    assert await queue.waiting() == 0
    assert await office.deliver() == []
    assert confirmed.cookies


@pytest.mark.parametrize(
    "address", ["a,bob@example.org", "<x>bob@example.org", "ä@example.org", '"@x', "😀&@["]
)
async def test_a_strange_address_gets_one_message_or_none(
    server: Server, office: PostOffice, address: str
) -> None:
    browser = await sign_in(server)
    page = await whole_account(browser)
    typed = {"email": address, "current": password_of("alice")}
    await browser.send(page, "/idp/account/email", **typed)
    messages = await office.deliver()
    for message in messages:
        assert message.recipient == address
        assert len(message.message["To"].addresses) == 1
        assert message.message["To"].addresses[0].addr_spec.strip('"') != "bob@example.org"


# --- languages ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "word"), [("de", "Passwort"), ("es", "contraseña"), ("nl", "wachtwoord")]
)
@pytest.mark.usefixtures("confirmed")
async def test_messages_are_in_the_language_of_the_page(
    server: Server, office: PostOffice, language: str, word: str
) -> None:
    await ask(server, "alice", accept_language=language)
    [message] = await office.deliver()
    assert word in message.text
    assert message.message["Content-Language"] == language
    assert f'lang="{language}"' in message.html
    assert "the account" not in message.text
    assert not re.search(r"%\(|%s", message.text)


async def test_operators_see_that_mail_is_not_sent(
    confirmed: Browser, office: PostOffice, settings: Settings
) -> None:
    await promote(settings)
    await change_password(confirmed)
    office.box.failures.append(MailDelayed("no"))
    await office.deliver()
    page = await confirmed.get("/.pages/console/health")
    section = page.text.partition('id="mail"')[2].partition("</section>")[0]
    assert "failing" in section
    assert re.findall(r"<dd>([0-9]+)</dd>", section) == ["1", "1"]
    features = page.text.partition('id="features"')[2].partition("</section>")[0]
    assert "Messages are printed on standard error, and reach nobody." in features
    assert "1 message could not be sent yet." in features


# --- requests for access --------------------------------------------------------------------------


async def test_owners_who_want_it_are_told_of_requests_for_access(
    server: Server, confirmed: Browser, office: PostOffice
) -> None:
    """Nobody is unless they have said so; the message contains nothing that the other has typed."""
    bob = await sign_in(server, "bob")

    async def ask_for(name: str) -> None:
        path = f"/.pages/ask/alice/private/{name}"
        page = await bob.send(await bob.get(path), path, role="view", message="buy this")
        assert "Your request was sent to the owner." in page.text

    await ask_for("one")
    assert await office.deliver() == []
    security = "/.pages/security?view=account"
    page = await confirmed.get(security)
    page = await confirmed.send(page, "/idp/account/mail", requests="yes")
    assert "What you are told by mail has been changed." in page.text
    page = await confirmed.get(security)
    assert 'value="yes" checked' in page.text
    await ask_for("two")
    [message] = await office.deliver()
    assert message.recipient == "alice@example.org"
    assert "/bob/#me asks for access to /alice/private/two in your pod alice" in message.text
    assert f"{BASE}/.pages/requests" in message.text
    assert "buy this" not in message.text
    await confirmed.post("/idp/account/mail", {"csrf_token": csrf_token_of(page)})
    await ask_for("three")
    assert await office.deliver() == []
