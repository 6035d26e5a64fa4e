"""Notices: who gets which, how many are kept, what pages show, and what is sent by mail."""

from __future__ import annotations

import random
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import ExitStack
from html import unescape
from pathlib import Path

import pytest
from msgspec.structs import replace

from podstead.app.adapters.root import prepared_root
from podstead.app.operator.administration import rename_pod
from podstead.app.services import Services
from podstead.config import Settings
from podstead.core.errors import StorageError
from podstead.features.notices.box import (
    DIGESTS,
    MAX_NOTICES,
    MAX_OF_SENDER,
    NOTICE_BOXES,
    KeptNotice,
    MailMode,
    NoticeBox,
    sender_of,
    with_notice,
    with_read,
)
from podstead.features.notices.delivery import (
    MAILS_PER_DAY,
    MAX_LINES,
    NOTICES,
    TOLD_PER_DAY,
    NoticeBoxes,
    next_digest_ms,
)
from podstead.features.notices.worker import NEARLY_FULL, NoticesInWorker
from podstead.idp.records import ACCOUNTS
from podstead.storage.layout import RootLayout
from podstead.storage.records import Precondition, Record
from podstead.storage.sqlite import SqliteFacts
from podstead.web.pages.notifier import (
    NEW_BROWSER,
    SHARED,
    PersonNotice,
    PersonNoticeKind,
    person_notice_kind,
)
from tests.support.application import BASE, Server, Start, running
from tests.support.browser import Browser, Page
from tests.support.clock import FakeClock
from tests.support.console import administering
from tests.support.mail import Postbox, PostOffice, Received
from tests.support.pod_pages import sign_in_by_token, sign_in_to_account
from tests.support.postgresql import new_database

ALICE, BOB = f"{BASE}/alice/#me", f"{BASE}/bob/#me"
PHOTO = "/alice/photos/sea.txt"
ASK, REQUESTS = f"/.pages/ask{PHOTO}", "/.pages/requests"
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def words(page: Page) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page.text)).split())


def shared(name: str = "sea.txt", *, by: str = BOB, message: str = "") -> PersonNotice:
    return PersonNotice(SHARED, f"/.pages/files/bob/{name}", name, by, message)


def badge(page: Page) -> int:
    """How many notices the head of a page says are not read."""
    found = re.search(r'class="visually-hidden">(\d+) not read<', page.text)
    return int(found[1]) if found else 0


@pytest.fixture
async def server(start: Start, clock: FakeClock) -> Server:
    server = await start(clock=clock)
    assert (await server.alice.put(PHOTO, "content", "text/plain")).status == 201
    return server


@pytest.fixture
async def services(server: Server, settings: Settings, clock: FakeClock) -> AsyncIterator[Services]:
    """Another worker of the same server."""
    other = Services(settings, clock)
    await other.store.open()
    yield other
    await other.store.close()


@pytest.fixture
async def alice(server: Server) -> Browser:
    return await sign_in_by_token(server, server.alice)


@pytest.fixture
async def bob(server: Server) -> Browser:
    return await sign_in_by_token(server, server.bob)


# --- the box --------------------------------------------------------------------------------------


def notice(number: int, by: str = "/bob/#me", *, is_read: bool = False) -> KeptNotice:
    return KeptNotice(f"{number:x}", "shared", number, f"/x{number}", "x", by, is_read=is_read)


def test_what_is_said_again_takes_the_place_of_what_was_said() -> None:
    box = with_notice(with_notice(NoticeBox(), notice(1)), notice(2, "/carol/#me"))
    again = KeptNotice("new", "shared", 3, "/x1", "x", "/bob/#me", "please")
    box = with_notice(with_read(box), again)
    assert [each.notice_id for each in box.notices] == ["new", "2"]
    assert [each.notice_id for each in box.unread] == ["new"]


def test_one_sender_never_has_more_than_a_few_and_drives_out_nobody() -> None:
    box = with_notice(NoticeBox(), notice(0, "/carol/#me"))
    for number in range(1, 100):
        box = with_notice(box, notice(number))
    of_bob = [each.at_ms for each in box.notices if each.by == "/bob/#me"]
    assert of_bob == list(range(99, 99 - MAX_OF_SENDER, -1))
    assert box.notices[-1] == notice(0, "/carol/#me")


def test_all_people_of_another_server_are_one_sender() -> None:
    people = [f"https://evil.example/{number}#me" for number in range(50)]
    assert {sender_of(each) for each in people} == {"evil.example"}
    box = with_notice(NoticeBox(), notice(0))
    for number, each in enumerate(people, start=1):
        box = with_notice(box, notice(number, each))
    assert len(box.notices) == MAX_OF_SENDER + 1


@pytest.mark.parametrize("seed", range(20))
def test_a_full_box_gives_up_what_was_read_then_what_the_busiest_sender_said(seed: int) -> None:
    chance = random.Random(seed)
    box = NoticeBox()
    for number in range(300):
        sender = f"/{chance.choice('abcdefghijkl')}/#me"
        before, new = box, notice(number, sender, is_read=chance.random() < 0.1)
        box = with_notice(box, new)
        assert box.notices[0] == new
        assert len(box.notices) <= MAX_NOTICES
        gone = set(before.notices) - set(box.notices)
        assert len(gone) <= 1
        of_sender = [each for each in before.notices if each.by == sender]
        for each in gone:
            if len(of_sender) == MAX_OF_SENDER:
                assert each == of_sender[-1]
            elif any(other.is_read for other in before.notices):
                assert each == [other for other in before.notices if other.is_read][-1]
            else:
                numbers = [sum(o.by == n.by for o in before.notices) for n in before.notices]
                assert numbers[before.notices.index(each)] == max(numbers)


# --- who is told what -----------------------------------------------------------------------------


async def test_an_answer_to_a_request_is_told_once_and_read_when_it_is_opened(
    server: Server, alice: Browser, bob: Browser
) -> None:
    await bob.send(await bob.get(ASK), ASK, role="view", message="Please")
    assert badge(await bob.get("/.pages/")) == 0
    await alice.send(await alice.get(REQUESTS), REQUESTS)
    home = await bob.get("/.pages/")
    assert badge(home) == 1
    assert "New for you" in words(home)
    assert "alice declined your request for “sea.txt”" in words(home)
    page = await bob.get(NOTICES)
    [address] = re.findall(rf'href="({NOTICES}/[0-9a-f]+)"', page.text)
    assert (await alice.get(address)).path == NOTICES, "it is not hers"
    assert badge(await bob.get("/.pages/")) == 1
    assert (await bob.get(address)).path == REQUESTS
    home = await bob.get("/.pages/")
    assert badge(home) == 0
    assert "New for you" not in words(home)
    page = await bob.get(NOTICES)
    assert "alice declined your request" in words(page)
    assert "Mark as read" not in words(page)
    assert badge(await alice.get("/.pages/")) == 0
    assert "alice gave you" not in words(await alice.get(NOTICES))


async def test_whoever_gets_something_is_told_with_what_the_giver_wrote(
    alice: Browser, bob: Browser
) -> None:
    share = "/.pages/share/alice/photos/"
    typed = {"who": "bob", "kind": "agent", "role": "view", "scope": "both"}
    preview = await alice.send(await alice.get(share), share, **typed, message="from the sea")
    assert badge(await bob.get("/.pages/")) == 0, "nothing is saved yet"
    await alice.send(preview, share)
    page = await bob.get(NOTICES)
    assert badge(page) == 1
    assert "alice shared “photos” with you from the sea" in words(page)
    [address] = re.findall(rf'href="({NOTICES}/[0-9a-f]+)"', page.text)
    opened = await bob.get(address)
    assert opened.path == "/.pages/files/alice/photos/"
    assert "sea.txt" in words(opened)
    assert badge(opened) == 0
    page = await alice.get(share)
    entry = next(each for each in page.forms if each.fields.get("grantee") == BOB)
    preview = await alice.post(share, {**entry.fields, "change": "remove"})
    await alice.send(preview, share)
    assert (await bob.get(opened.path)).status == 403
    assert badge(await bob.get(NOTICES)) == 0, "nobody is told of what they lose"


async def test_requests_that_wait_are_counted_and_not_stored_again(
    alice: Browser, bob: Browser
) -> None:
    await bob.send(await bob.get(ASK), ASK, role="view", message="Please")
    page = await alice.get(NOTICES)
    assert "1 request for access" in words(page)
    assert badge(page) == 0


async def test_notices_are_marked_one_by_one_and_all_together(
    services: Services, alice: Browser
) -> None:
    for name in ("a.txt", "b.txt", "c.txt"):
        await services.notifier.tell(ALICE, shared(name, message=f"look <b> {name}"))
    page = await alice.get(NOTICES)
    assert badge(page) == 3
    assert "look <b> b.txt" in words(page)
    assert "look <b>" not in page.text
    [one] = re.findall(
        r'value="([0-9a-f]+)" aria-label="Mark as read: bob shared “b.txt”', page.text
    )
    token = page.form(NOTICES).fields["csrf_token"]
    assert badge(await alice.post(NOTICES, {"csrf_token": token, "read": one})) == 2
    assert (await alice.post(NOTICES, {"read": "all"})).status == 403, "without the token"
    assert badge(await alice.get(NOTICES)) == 2
    assert badge(await alice.post(NOTICES, {"csrf_token": token, "read": "all"})) == 0
    assert (await Browser(alice.application).get(NOTICES)).path == "/.pages/sign-in"


async def test_what_a_notice_is_about_is_read_by_opening_it(
    server: Server, services: Services, alice: Browser, bob: Browser
) -> None:
    await server.put_acl(PHOTO, (f"acl:agent <{server.bob_web_id}>", "Read"))
    about = f"/.pages/files{PHOTO}"
    await services.notifier.tell(BOB, PersonNotice(SHARED, about, "sea.txt", ALICE))
    await services.notifier.tell(BOB, PersonNotice(SHARED, f"{about}.old", "old", ALICE))
    await services.notifier.tell(BOB, PersonNotice(NEW_BROWSER, about, "Firefox"))
    await services.notifier.tell(ALICE, shared())
    assert badge(await bob.get("/.pages/files/bob/")) == 3
    assert badge(await bob.get(about)) == 2
    assert badge(await bob.get("/.pages/files/bob/")) == 2
    assert badge(await alice.get(about)) == 1


async def test_the_same_again_is_one_notice_and_nobody_else_is_told(
    services: Services, alice: Browser, bob: Browser
) -> None:
    for _ in range(3):
        await services.notifier.tell(ALICE, shared())
    for nobody in (f"{BASE}/nobody/#me", "https://elsewhere.example/#me", f"{BASE}/alice/#other"):
        await services.notifier.tell(nobody, shared())
    assert badge(await alice.get("/.pages/")) == 1
    assert badge(await bob.get("/.pages/")) == 0
    stored = await NOTICE_BOXES.page(services.store, now_ms=services.clock.now_ms())
    assert [each.key for each in stored] == ["/alice/"]


async def test_one_sender_tells_a_person_so_much_in_a_day(
    services: Services, alice: Browser, clock: FakeClock
) -> None:
    for number in range(TOLD_PER_DAY + 5):
        await services.notifier.tell(ALICE, shared(f"{number}.txt"))
    await services.notifier.tell(ALICE, shared("late.txt", by="https://carol.example/#me"))
    text = words(await alice.get(NOTICES))
    assert f"“{TOLD_PER_DAY - 1}.txt”" in text
    assert f"“{TOLD_PER_DAY}.txt”" not in text
    assert "carol.example shared “late.txt”" in text
    clock.advance(2 * 86_400)
    await services.notifier.tell(ALICE, shared("later.txt"))
    [stored] = await NOTICE_BOXES.page(services.store, now_ms=clock.now_ms())
    assert stored.value.notices[0].name == "later.txt"


async def test_the_server_itself_always_gets_through(services: Services, alice: Browser) -> None:
    for number in range(TOLD_PER_DAY + 1):
        await services.notifier.tell(ALICE, PersonNotice(NEW_BROWSER, "/", f"Browser {number}"))
    assert f"account: Browser {TOLD_PER_DAY}" in words(await alice.get(NOTICES))


async def test_what_is_not_told_again_does_not_count(services: Services, alice: Browser) -> None:
    rare = PersonNoticeKind(SHARED.name, SHARED.text, again_ms=DAY_MS)
    for _ in range(TOLD_PER_DAY):
        await services.notifier.tell(ALICE, PersonNotice(rare, "/", "sea.txt", BOB))
    await services.notifier.tell(ALICE, shared("new.txt"))
    assert "“new.txt”" in words(await alice.get(NOTICES))


def test_each_kind_has_a_name_of_its_own() -> None:
    with pytest.raises(ValueError, match="shared"):
        person_notice_kind(SHARED.name, "another text")


async def test_trouble_with_a_notice_does_not_undo_what_it_is_about(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise StorageError("the disk is on fire")

    monkeypatch.setattr(services.store, "read_pod", fail)
    await services.notifier.tell(ALICE, shared())


async def test_a_nearly_full_pod_is_told_once_a_week(
    start: Start, settings: Settings, clock: FakeClock
) -> None:
    server = await start(clock=clock, quota_bytes=200_000)
    alice = await sign_in_by_token(server, server.alice)
    services = Services(settings.with_values(quota_bytes=200_000), clock)
    [feature] = [each for each in services.features if isinstance(each, NoticesInWorker)]
    await services.store.open()
    try:
        for size, expected in ((10_000, 0), (170_000, 1), (100, 1)):
            path = f"/alice/{size}.txt"
            assert (await server.alice.put(path, "x" * size, "text/plain")).status == 201
            await feature.space._check("/alice/")  # type: ignore[arg-type]
            assert badge(await alice.get("/.pages/")) == expected
        page = await alice.get(NOTICES)
        assert "Your pod “alice” is nearly full" in words(page)
        await alice.send(page, NOTICES, read="all")
        await feature.space._check("/alice/")  # type: ignore[arg-type]
        assert badge(await alice.get(NOTICES)) == 0
        clock.advance(8 * 86_400)
        alice = await sign_in_by_token(server, server.alice)
        await feature.space._check("/alice/")  # type: ignore[arg-type]
        assert badge(await alice.get(NOTICES)) == 1
        assert NEARLY_FULL.again_ms == 7 * DAY_MS
    finally:
        await services.store.close()


# --- both engines ---------------------------------------------------------------------------------


@pytest.fixture(params=["sqlite", "postgresql"])
def root(request: pytest.FixtureRequest, settings: Settings, tmp_path: Path) -> Iterator[Settings]:
    """A new data root, on each engine."""
    with ExitStack() as stack:
        changed = settings.with_values(root=tmp_path / "workers")
        if request.param == "postgresql":
            changed = changed.with_values(database=stack.enter_context(new_database()))
        stack.enter_context(prepared_root(changed))
        yield changed


async def test_each_engine_keeps_boxes_and_they_go_with_their_pods(
    root: Settings, clock: FakeClock
) -> None:
    async with running(root, clock=clock):
        services = Services(root, clock)
        await services.store.open()
        try:
            for name in ("alice", "bob"):
                await services.provisioner.create(name)
            await services.notifier.tell(ALICE, shared("a.txt"))
            await services.notifier.tell(ALICE, shared("b.txt"))
            [stored] = await NOTICE_BOXES.page(services.store, now_ms=clock.now_ms())
            assert (stored.key, stored.owner) == ("/alice/", "/alice/")
            assert [each.name for each in stored.value.notices] == ["b.txt", "a.txt"]
            assert {each.by for each in stored.value.notices} == {"/bob/#me"}
        finally:
            await services.store.close()


# --- mail -----------------------------------------------------------------------------------------


@pytest.fixture
async def mailing(
    start: Start, clock: FakeClock, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Server, NoticeBoxes, PostOffice]]:
    """A server that sends mail when the test says so; Alice has confirmed her address."""
    destination = pytest.importorskip("podstead.features.mail.destination")

    async def send_nothing(_sender: object, _current: object) -> None:
        """The post office of the test does it."""

    monkeypatch.setattr("podstead.features.mail.sending.MailSender.run", send_nothing)
    console = destination.parse_mail_destination("console")
    server = await start(clock=clock, idp=True, mail=console)
    async with administering(settings, clock=clock) as accounts:
        office = PostOffice(accounts, Postbox())
        await office.deliver()
        stored = await accounts.accounts.find("alice")
        assert stored is not None
        now_s = clock.now_s()
        await accounts.records.update(
            ACCOUNTS, stored.key, lambda each: replace(each, email_verified_s=now_s)
        )
        services = Services(settings, clock)
        boxes = NoticeBoxes(
            accounts.records, services.local_web_ids, BASE, lambda: accounts.accounts
        )
        yield server, boxes, office


async def choose(browser: Browser, mode: str) -> Page:
    return await browser.send(await browser.get(NOTICES), NOTICES, mail=mode)


Mailing = tuple[Server, NoticeBoxes, PostOffice]


async def delivered(office: PostOffice) -> list[Received]:
    """The messages about notices; there are others about sign-ins."""
    return [each for each in await office.deliver() if each.message["List-Unsubscribe"]]


async def to_the_next_digest(boxes: NoticeBoxes, clock: FakeClock) -> None:
    clock.advance((next_digest_ms(clock.now_ms()) - clock.now_ms()) / 1000 + 1)
    await boxes.send_digests()


async def test_the_notices_of_a_day_are_one_message(mailing: Mailing, clock: FakeClock) -> None:
    _server, boxes, office = mailing
    for number in range(MAX_LINES + 4):
        by = f"https://{number}.example/#me"
        await boxes.tell(ALICE, shared(f"{number}.txt", by=by, message="buy this"))
    await boxes.tell(BOB, shared(by=ALICE))
    assert await delivered(office) == []
    await boxes.send_digests()
    assert await delivered(office) == [], "it is not due"
    await to_the_next_digest(boxes, clock)
    await boxes.send_digests()
    [message] = await delivered(office)
    assert message.recipient == "alice@example.org", "Bob has not confirmed his address"
    assert "23.example shared “23.txt” with you" in message.text
    assert message.text.count(" shared “") == MAX_LINES
    assert "And 4 more." in message.text
    assert "buy this" not in message.text + message.html
    assert f"{BASE}{NOTICES}#mail" in message.text
    assert message.message["List-Unsubscribe"] == f"<{BASE}{NOTICES}#mail>"
    await to_the_next_digest(boxes, clock)
    assert await delivered(office) == [], "there is nothing new"


async def test_what_was_read_meanwhile_is_not_sent(mailing: Mailing, clock: FakeClock) -> None:
    server, boxes, office = mailing
    alice = await sign_in_to_account(server)
    await boxes.tell(ALICE, shared())
    await alice.send(await alice.get(NOTICES), NOTICES, read="all")
    await to_the_next_digest(boxes, clock)
    assert await delivered(office) == []
    assert await DIGESTS.page(boxes.records.store, now_ms=clock.now_ms()) == []


async def test_no_name_becomes_a_link_in_a_message(mailing: Mailing, clock: FakeClock) -> None:
    """Strangers choose the names of what they share."""
    _server, boxes, office = mailing
    await boxes.tell(ALICE, shared("Locked: https%3A%2F%2Fevil.example%2Flogin"))
    await to_the_next_digest(boxes, clock)
    [message] = await delivered(office)
    assert "bob shared “…” with you" in message.text
    assert "evil.example" not in message.text + message.html + message.subject


async def test_people_choose_each_at_once_or_never(mailing: Mailing, clock: FakeClock) -> None:
    server, boxes, office = mailing
    alice = await sign_in_to_account(server)
    assert "Your choice was saved." in words(await choose(alice, "each"))
    await boxes.tell(ALICE, shared())
    await boxes.tell(ALICE, shared())  # the same again
    [message] = await delivered(office)
    assert message.subject == "New for you in your pod alice"
    assert "bob shared “sea.txt” with you" in message.text
    await to_the_next_digest(boxes, clock)
    assert await delivered(office) == [], "it was sent"
    alice = await sign_in_to_account(server)
    await choose(alice, "never")
    await boxes.tell(ALICE, shared("other.txt"))
    await to_the_next_digest(boxes, clock)
    assert await delivered(office) == []
    alice = await sign_in_to_account(server)
    assert (
        'id="mail-never" type="radio" name="mail" value="never" checked'
        in (await choose(alice, "whenever")).text
    )


async def test_many_notices_at_once_become_the_message_of_the_day(
    mailing: Mailing, clock: FakeClock
) -> None:
    server, boxes, office = mailing
    await choose(await sign_in_to_account(server), "each")
    for number in range(MAILS_PER_DAY + 3):
        await boxes.tell(ALICE, shared(f"{number}.txt", by=f"https://{number}.example/#me"))
    assert len(await delivered(office)) == MAILS_PER_DAY
    await to_the_next_digest(boxes, clock)
    [message] = await delivered(office)
    assert message.text.count(" shared “") == 3


@pytest.mark.parametrize("mode", ["each", "daily"])
async def test_what_finds_no_place_in_the_queue_is_sent_later(
    mailing: Mailing, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    server, boxes, office = mailing
    await choose(await sign_in_to_account(server), mode)
    with monkeypatch.context() as full:
        full.setattr("podstead.idp.mail_queue.MAX_WAITING_FOR_ACCOUNT", 0)
        for _ in range(2):  # the same again
            await boxes.tell(ALICE, shared())
        await to_the_next_digest(boxes, clock)
    assert await delivered(office) == []
    await to_the_next_digest(boxes, clock)
    [message] = await delivered(office)
    assert "“sea.txt”" in message.text
    await to_the_next_digest(boxes, clock)
    assert await delivered(office) == []


async def test_a_notice_that_is_stored_at_the_second_attempt_counts_once(
    mailing: Mailing, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, boxes, office = mailing
    await choose(await sign_in_to_account(server), "each")
    commit, attempts = boxes.records.try_commit, 0

    async def contended(
        records: Iterable[Record], preconditions: Iterable[Precondition] = ()
    ) -> bool:
        nonlocal attempts
        attempts += 1
        return attempts % 2 == 0 and await commit(records, preconditions)

    with monkeypatch.context() as busy:
        busy.setattr(boxes.records, "try_commit", contended)
        for number in range(MAILS_PER_DAY):
            await boxes.tell(ALICE, shared(f"{number}.txt"))
    assert len(await delivered(office)) == MAILS_PER_DAY


async def test_the_message_of_the_day_follows_a_pod_that_is_renamed(
    mailing: Mailing, clock: FakeClock, settings: Settings
) -> None:
    _server, boxes, office = mailing
    await boxes.tell(ALICE, shared())
    SqliteFacts(RootLayout(settings.root).database).write_fact("base-url", settings.base_url)
    await rename_pod(settings, "alice", "alicia", on_step=lambda *_: None)
    await to_the_next_digest(boxes, clock)
    [message] = await delivered(office)
    assert message.recipient == "alice@example.org"
    assert "“sea.txt”" in message.text
    [stored] = await NOTICE_BOXES.page(boxes.records.store, now_ms=clock.now_ms())
    assert (stored.key, stored.owner) == ("/alicia/", "/alicia/")


async def test_two_workers_send_the_message_of_the_day_once(
    mailing: Mailing, clock: FakeClock, settings: Settings
) -> None:
    _server, boxes, office = mailing
    await boxes.tell(ALICE, shared())
    clock.advance(86_400)
    due = await DIGESTS.page(boxes.records.store, now_ms=clock.now_ms())
    async with administering(settings, clock=clock) as other:
        second = NoticeBoxes(other.records, boxes.web_ids, BASE, lambda: other.accounts)
        for each in due:  # both have read that it is due
            await boxes._send_digest(each)
            await second._send_digest(each)
    assert len(await delivered(office)) == 1


async def test_without_a_confirmed_address_the_page_leads_to_it(mailing: Mailing) -> None:
    server, _boxes, _office = mailing
    bob = await sign_in_to_account(server, "bob")
    page = await bob.get(NOTICES)
    assert "that are confirmed" in words(page)
    assert 'name="mail"' not in page.text
    assert MailMode.DAILY is NoticeBox().mail


def test_the_message_of_the_day_is_due_in_the_morning() -> None:
    midnight = 20_000 * DAY_MS
    assert next_digest_ms(midnight) == midnight + 6 * HOUR_MS
    assert next_digest_ms(midnight + 6 * HOUR_MS) == midnight + 30 * HOUR_MS
    assert next_digest_ms(midnight + 7 * HOUR_MS) == midnight + 30 * HOUR_MS
