"""Notices that push services deliver: who gets them, what they say, and what becomes of them."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from podstead.app.adapters import root
from podstead.app.adapters.audit import LogAudit
from podstead.app.operator.administration import rename_pod
from podstead.app.services import Services
from podstead.config import Settings
from podstead.core.identifiers import ResourcePath
from podstead.features.web_push import delivery
from podstead.features.web_push.devices import (
    DEVICES,
    MAX_DEVICES,
    PUSHES,
    PUSHES_PER_DAY,
    ServerKey,
    push_due_ms,
)
from podstead.features.web_push.encryption import encrypted
from podstead.features.web_push.worker import TESTS_PER_HOUR, WebPushInWorker
from podstead.idp.administration.pods import PodActions
from podstead.outbound import requests
from podstead.storage.pods import revocations
from podstead.storage.record_store import RecordKind
from podstead.web.pages.notifier import SHARED, PersonNotice
from tests.support.application import BASE, Server, Start, password_of
from tests.support.browser import Browser
from tests.support.clock import FakeClock
from tests.support.pod_pages import csrf_token_of, sign_in_by_token, sign_in_to_account
from tests.support.push_subscription import (
    InvalidSignature,
    Subscription,
    decode,
    encode,
    private_key,
    vapid_claims,
)
from tests.support.webhook_receiver import Delivered, Receiver, running_receiver

ALICE, BOB = f"{BASE}/alice/#me", f"{BASE}/bob/#me"
NOTICES = "/.pages/notices"
PUSH = "/.pages/push"
OF_SCRIPTS = {
    "Accept": "application/json",
    "Content-Type": "application/json",
    "Origin": BASE,
    "Sec-Fetch-Site": "same-origin",
}
DEADLINE_S = 60


@pytest.fixture(autouse=True)
def looking_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "LOOK_S", 0.05)


@pytest.fixture
async def server(start: Start, clock: FakeClock) -> Server:
    return await start(clock=clock)


@pytest.fixture
async def services(server: Server, settings: Settings, clock: FakeClock) -> AsyncIterator[Services]:
    """Another worker of the same server."""
    other = Services(settings, clock)
    await other.store.open()
    yield other
    await other.foreign.close()
    await other.store.close()


@pytest.fixture
async def alice(server: Server) -> Browser:
    return await sign_in_by_token(server, server.alice)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with running_receiver() as receiver:
        yield receiver


async def call(browser: Browser, address: str, body: dict[str, str]) -> Any:  # noqa: ANN401
    """What the script of the page does."""
    token = csrf_token_of(await browser.get(NOTICES))
    headers = {**OF_SCRIPTS, "X-CSRF-Token": token}
    return await browser.ask("POST", address, body=json.dumps(body).encode(), headers=headers)


async def subscribe(browser: Browser, receiver: Receiver, mark: str = "") -> Subscription:
    subscription = Subscription(f"{receiver.url}/{mark or encode(browser_secret())}")
    assert (await call(browser, PUSH, subscription.sent)).status == 204
    return subscription


def browser_secret() -> bytes:
    return Subscription("").auth


async def tell(services: Services, name: str = "sea.txt", person: str = ALICE) -> None:
    await services.notifier.tell(person, PersonNotice(SHARED, "/.pages/files/bob/", name, BOB))


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not await condition():  # noqa: ASYNC110 - the database says so
            await asyncio.sleep(0.02)


async def until_empty(services: Services, kind: RecordKind[Any]) -> None:
    async def is_empty() -> bool:
        return not await kind.page(services.store, now_ms=services.clock.now_ms())

    await until(is_empty)


async def waiting(services: Services) -> int:
    return len(await PUSHES.page(services.store, now_ms=services.clock.now_ms()))


def said(subscription: Subscription, delivered: Delivered) -> Any:  # noqa: ANN401 - JSON
    return json.loads(subscription.decrypted(delivered.body))


def answering(head: str) -> Any:  # noqa: ANN401 - what the receiver takes
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 {head}\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()

    return answer


# --- encryption -----------------------------------------------------------------------------------

# RFC 8291, section 5 and appendix A.
CONTENT = b"When I grow up, I want to be a watermelon"
SENDER = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
RECEIVER = "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"
RECEIVER_PUBLIC = (
    "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
)
AUTH = "BTBZMqHH6r4Tts7J_aSIgg"
SALT = "DGv6ra1nlYgDCS1FRnbzlw"
MESSAGE = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6T"
    "lzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4"
    "a-fN"
)


def test_the_example_of_the_standard_comes_out_as_it_says() -> None:
    made = encrypted(
        CONTENT,
        key=decode(RECEIVER_PUBLIC),
        secret=decode(AUTH),
        sender=private_key(SENDER),
        salt=decode(SALT),
    )
    assert encode(made) == MESSAGE


def test_the_browser_of_these_tests_understands_the_example() -> None:
    subscription = Subscription("", private_key(RECEIVER), decode(AUTH))
    assert subscription.sent["p256dh"] == RECEIVER_PUBLIC
    assert subscription.decrypted(decode(MESSAGE)) == CONTENT


def test_what_does_not_fit_in_a_record_is_refused() -> None:
    with pytest.raises(ValueError, match="too long"):
        encrypted(
            b"x" * 4080,
            key=decode(RECEIVER_PUBLIC),
            secret=decode(AUTH),
            sender=private_key(SENDER),
            salt=decode(SALT),
        )


# --- delivery -------------------------------------------------------------------------------------


async def test_a_notice_reaches_the_browser_and_only_that_can_read_it(
    services: Services, alice: Browser, receiver: Receiver, clock: FakeClock
) -> None:
    key = json.loads((await call(alice, f"{PUSH}/key", {})).body)["key"]
    subscription = await subscribe(alice, receiver)
    await tell(services)
    delivered = await receiver.next()
    assert said(subscription, delivered) == {
        "title": "localhost:3000",
        "text": "bob shared “sea.txt” with you",
        "id": delivered.headers["topic"],
        "address": NOTICES,
    }
    assert b"sea.txt" not in delivered.body
    assert delivered.headers["content-encoding"] == "aes128gcm"
    assert int(delivered.headers["ttl"]) > 0
    assert delivered.headers["urgency"] == "normal"
    claims = vapid_claims(delivered.headers["authorization"], key)
    assert claims["aud"] == f"http://localhost:{receiver.port}"
    assert 0 < claims["exp"] - clock.now_ms() // 1000 <= 24 * 3600
    assert claims["sub"].startswith(BASE)
    await until_empty(services, PUSHES)


async def test_the_owner_of_an_account_has_signed_in_recently(
    start: Start, receiver: Receiver, clock: FakeClock
) -> None:
    """Who finds an open session does not get the notices for good."""
    server = await start(idp=True, clock=clock)
    browser = await sign_in_to_account(server)
    await subscribe(browser, receiver, "first")
    assert "data-signs-in-first" not in (await browser.get(NOTICES)).text
    clock.advance(11 * 60)
    refused = await call(browser, PUSH, Subscription(f"{receiver.url}/second").sent)
    assert refused.status == 403
    page = await browser.get(NOTICES)
    assert 'data-again="/idp/login?again=push" data-signs-in-first' in page.text
    assert page.text.count('name="device"') == 1
    again = await browser.get("/idp/login?again=push")
    assert "Confirm that it is you before your notices are shown" in again.text
    page = await browser.send(again, "/idp/login", password=password_of("alice"))
    assert page.path == NOTICES
    await subscribe(browser, receiver, "second")


async def test_a_name_that_looks_like_an_address_is_left_out(
    services: Services, alice: Browser, receiver: Receiver
) -> None:
    subscription = await subscribe(alice, receiver)
    await tell(services, "www.evil.example/login")
    assert said(subscription, await receiver.next())["text"] == "bob shared “…” with you"


async def test_nobody_else_is_told_and_nobody_twice(
    server: Server, services: Services, alice: Browser, receiver: Receiver
) -> None:
    bob = await sign_in_by_token(server, server.bob)
    of_alice, of_bob = await subscribe(alice, receiver), await subscribe(bob, receiver)
    for _ in range(3):
        await tell(services)
    assert "sea.txt" in said(of_alice, await receiver.next())["text"]
    await tell(services, "other.txt", BOB)
    assert "other.txt" in said(of_bob, await receiver.next())["text"]
    await until_empty(services, PUSHES)
    assert receiver.is_quiet


async def test_one_of_all_workers_sends_and_another_one_goes_on(
    services: Services, settings: Settings, clock: FakeClock, alice: Browser, receiver: Receiver
) -> None:
    subscription = await subscribe(alice, receiver)
    [feature] = [each for each in services.features if isinstance(each, WebPushInWorker)]
    await feature.start()
    try:
        for number in range(6):
            await tell(services, f"{number}.txt")
        texts = {said(subscription, await receiver.next())["text"] for _ in range(6)}
        await until_empty(services, PUSHES)
    finally:
        await feature.stop()
    assert len(texts) == 6
    assert receiver.is_quiet
    later = Services(settings, clock)
    await later.store.open()
    first, second = ServerKey(services.records), ServerKey(later.records)
    assert await first.public() == await second.public(), "one key for all, also later"
    await later.store.close()


async def test_what_the_service_does_not_take_is_sent_again_later(
    services: Services, alice: Browser, receiver: Receiver, clock: FakeClock
) -> None:
    receiver.answers = [503, answering("429 X\r\nRetry-After: 600")]
    subscription = await subscribe(alice, receiver)
    await tell(services)
    first = await receiver.next()
    clock.advance(31)
    again = await receiver.next()
    assert again.headers["topic"] == first.headers["topic"]

    await until_paused(services)
    await tell(services, "second.txt")
    clock.advance(590)
    assert await until_postponed(services) == 2
    assert receiver.is_quiet, "the service wants nothing yet"
    clock.advance(400)
    texts = {said(subscription, await receiver.next())["text"] for _ in range(2)}
    assert len(texts) == 2
    await until_empty(services, PUSHES)


async def devices_of(services: Services) -> Any:  # noqa: ANN401 - records
    return await DEVICES.page(services.store, now_ms=services.clock.now_ms())


async def until_paused(services: Services) -> None:
    """Wait until nothing is sent to the only browser for some time."""

    async def is_paused() -> bool:
        [device] = await devices_of(services)
        return bool(device.value.paused_until_ms > services.clock.now_ms())

    await until(is_paused)


async def until_postponed(services: Services) -> int:
    """Wait until no message is due; how many wait."""
    store, now_ms = services.store, services.clock.now_ms()

    async def is_later() -> bool:
        page = await PUSHES.page(store, now_ms=now_ms)
        return all(push_due_ms(each) > now_ms for each in page)

    await until(is_later)
    return len(await PUSHES.page(store, now_ms=now_ms))


async def test_a_service_that_fails_is_left_alone_with_all_messages_to_the_browser(
    services: Services, alice: Browser, receiver: Receiver, clock: FakeClock
) -> None:
    receiver.answers = [503]
    subscription = await subscribe(alice, receiver)
    await tell(services)
    await receiver.next()
    await until_paused(services)
    await tell(services, "second.txt")
    assert await until_postponed(services) == 2
    assert receiver.is_quiet
    clock.advance(31)
    texts = {said(subscription, await receiver.next())["text"] for _ in range(2)}
    assert len(texts) == 2


async def test_nobody_waits_for_push_services_of_others_that_do_not_answer(
    server: Server,
    services: Services,
    alice: Browser,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without_end = functools.partial(requests.PostLimits, total_timeout_s=600)
    monkeypatch.setattr(requests, "PostLimits", without_end)
    released = asyncio.Event()

    async def hanging(_: asyncio.StreamWriter) -> None:
        await released.wait()

    receiver.answers = [hanging] * MAX_DEVICES
    for number in range(MAX_DEVICES):
        await subscribe(alice, receiver, f"{number}")
    await tell(services)
    try:
        for _ in range(delivery.AT_ONCE):
            await receiver.next()
        bob = await sign_in_by_token(server, server.bob)
        async with running_receiver() as other:
            of_bob = await subscribe(bob, other)
            await tell(services, "other.txt", BOB)
            assert "other.txt" in said(of_bob, await other.next())["text"]
        assert receiver.is_quiet, "only some are sent to one person at the same time"
    finally:
        released.set()


async def test_what_nobody_takes_is_given_up_after_a_day(
    services: Services, alice: Browser, receiver: Receiver, clock: FakeClock
) -> None:
    receiver.answers = [500] * 50
    await subscribe(alice, receiver)
    await tell(services)
    await receiver.next()
    await until_postponed(services)
    clock.advance(24 * 3600)
    await until_empty(services, PUSHES)
    assert len(await devices_of(services)) == 1


@pytest.mark.parametrize("status", [404, 410])
async def test_a_subscription_that_has_ended_is_forgotten(
    services: Services, alice: Browser, receiver: Receiver, status: int
) -> None:
    receiver.answers = [status]
    await subscribe(alice, receiver)
    await tell(services)
    await receiver.next()
    await until_empty(services, DEVICES)
    assert await waiting(services) == 0


async def test_a_refused_message_is_dropped_and_nothing_follows_a_redirect(
    services: Services, alice: Browser, receiver: Receiver
) -> None:
    receiver.answers = [413, answering(f"307 X\r\nLocation: {receiver.url}/elsewhere")]
    await subscribe(alice, receiver)
    for name in ("a.txt", "b.txt"):
        await tell(services, name)
        await receiver.next()
    await until_empty(services, PUSHES)
    assert receiver.is_quiet
    assert len(await devices_of(services)) == 1


async def test_only_so_many_are_sent_in_a_day(
    services: Services, alice: Browser, receiver: Receiver
) -> None:
    await subscribe(alice, receiver)
    channels = [each.notice_channel for each in services.features if each.notice_channel]
    root = ResourcePath("/alice/")
    queued = [
        await channels[0].joining(root, f"{number:x}", str) for number in range(PUSHES_PER_DAY + 5)
    ]
    assert [len(each) for each in queued] == [1] * PUSHES_PER_DAY + [0] * 5


# --- devices --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changed",
    [
        {"endpoint": "http://push.example/1"},
        {"endpoint": "https://10.0.0.1/1"},
        {"endpoint": f"{BASE}/alice/inbox/"},
        {"endpoint": "javascript:alert(1)"},
        {"endpoint": "https://push.example/" + "x" * 2048},
        {"endpoint": ""},
        {"p256dh": encode(b"\x04" + b"\x01" * 64)},
        {"p256dh": "not a key"},
        {"auth": encode(b"short")},
        {"auth": "ä"},
    ],
)
async def test_what_is_no_subscription_is_refused(
    services: Services, alice: Browser, changed: dict[str, str]
) -> None:
    sent = Subscription("https://push.example/1").sent
    assert (await call(alice, PUSH, {**sent, **changed})).status == 400
    assert await devices_of(services) == []


async def test_a_stranger_adds_and_removes_nothing(
    server: Server, services: Services, alice: Browser, receiver: Receiver
) -> None:
    await subscribe(alice, receiver)
    [stored] = await devices_of(services)
    bob = await sign_in_by_token(server, server.bob)
    page = await bob.get(NOTICES)
    assert stored.key not in page.text
    await bob.post(f"{PUSH}/remove", {"csrf_token": csrf_token_of(page), "device": stored.key})
    assert (await alice.post(f"{PUSH}/remove", {"device": stored.key})).status == 403
    body = json.dumps(Subscription(receiver.url).sent).encode()
    for browser in (alice, Browser(server.application)):
        answer = await browser.ask("POST", PUSH, body=body, headers=OF_SCRIPTS)
        assert answer.status in (401, 403), "without the token, or signed in as nobody"
    assert [each.key for each in await devices_of(services)] == [stored.key]


async def test_a_browser_belongs_to_whoever_switched_it_on_last(
    server: Server, services: Services, alice: Browser, receiver: Receiver
) -> None:
    await subscribe(alice, receiver, "shared")
    bob = await sign_in_by_token(server, server.bob)
    await subscribe(bob, receiver, "shared")
    assert [each.owner for each in await devices_of(services)] == ["/bob/"]


async def test_only_the_newest_browsers_are_kept(
    services: Services, alice: Browser, receiver: Receiver, clock: FakeClock
) -> None:
    for number in range(MAX_DEVICES + 2):
        await subscribe(alice, receiver, f"{number}")
        clock.advance(1)
    marks = {each.value.endpoint.rpartition("/")[2] for each in await devices_of(services)}
    assert marks == {str(number) for number in range(2, MAX_DEVICES + 2)}


async def test_the_page_lists_them_tries_them_out_and_removes_them_without_scripts(
    services: Services, alice: Browser, receiver: Receiver
) -> None:
    page = await alice.get(NOTICES)
    assert "allow scripts in your browser" in page.text
    assert f"{PUSH}/try" not in page.text
    subscription = await subscribe(alice, receiver)
    page = await alice.send(await alice.get(NOTICES), f"{PUSH}/try")
    assert "A notice is on its way" in page.text
    assert said(subscription, await receiver.next())["text"] == "Notices arrive here."
    for _ in range(TESTS_PER_HOUR):
        page = await alice.send(page, f"{PUSH}/try")
    assert "You have tried this often" in page.text
    [stored] = await devices_of(services)
    token = csrf_token_of(page)
    page = await alice.post(f"{PUSH}/remove", {"csrf_token": token, "device": stored.key})
    assert "no longer shows notices" in page.text
    assert await devices_of(services) == []


async def test_they_go_with_all_sessions_and_with_a_new_password(
    start: Start, settings: Settings, clock: FakeClock, receiver: Receiver
) -> None:
    server = await start(clock=clock, idp=True)
    other = Services(settings.with_values(idp=True), clock)
    await other.store.open()
    try:
        for end in ("sessions", "password"):
            alice = await sign_in_to_account(server)
            await subscribe(alice, receiver)
            assert len(await devices_of(other)) == 1
            provider = other.provider
            assert provider is not None
            stored = await provider.accounts.accounts.find("alice")
            assert stored is not None
            clock.advance(5)
            if end == "sessions":
                await provider.sessions.end_all(stored.value)
            else:
                await provider.accounts.accounts.set_password(
                    stored.value.account_id, "a new one, and long"
                )
                await tell(other)
                await until_empty(other, PUSHES)
            assert await devices_of(other) == []
            assert receiver.is_quiet
    finally:
        await other.foreign.close()
        await other.store.close()


async def test_they_follow_a_renamed_pod_and_go_with_it(
    services: Services, settings: Settings, alice: Browser, receiver: Receiver, clock: FakeClock
) -> None:
    receiver.answers = [503, 503]
    subscription = await subscribe(alice, receiver)
    [device] = await devices_of(services)
    # As if signed in to an account: a new name revokes all tokens.
    without = replace(device.value, token_id=None)
    await services.records.commit([DEVICES.put(device.key, without, owner=device.owner)])
    await tell(services)
    await receiver.next()
    assert await until_postponed(services) == 1
    root.finish_move(settings, settings.base_url)  # as a start remembers it
    await rename_pod(settings, "alice", "alicia", on_step=lambda *_: None)
    assert [each.owner for each in await devices_of(services)] == ["/alicia/"]
    clock.advance(31)
    assert "sea.txt" in said(subscription, await receiver.next())["text"]
    assert await until_postponed(services) == 1
    await PodActions(services.records, LogAudit()).delete("alicia")
    assert await devices_of(services) == []
    assert await waiting(services) == 0


async def test_a_browser_gets_nothing_after_its_token_was_revoked(
    services: Services, alice: Browser, receiver: Receiver, clock: FakeClock
) -> None:
    await subscribe(alice, receiver)
    tokens = await services.store.list_tokens(pod="alice")
    assert await services.records.try_commit(revocations(tokens, now_s=clock.now_ms() // 1000))
    await tell(services)
    await until_empty(services, PUSHES)
    assert await devices_of(services) == []
    assert receiver.is_quiet


async def test_they_go_with_the_account(
    start: Start, settings: Settings, clock: FakeClock, receiver: Receiver
) -> None:
    receiver.answers = [503]
    server = await start(clock=clock, idp=True)
    other = Services(settings.with_values(idp=True), clock)
    await other.store.open()
    try:
        await subscribe(await sign_in_to_account(server), receiver)
        await tell(other)
        await receiver.next()
        assert await until_postponed(other) == 1
        assert other.provider is not None
        accounts = other.provider.accounts.accounts
        stored = await accounts.find("alice")
        assert stored is not None
        await accounts.delete(stored.value.account_id)
        assert await devices_of(other) == []
        assert await waiting(other) == 0
    finally:
        await other.foreign.close()
        await other.store.close()


def test_another_key_has_not_signed() -> None:
    header, claims = encode(b'{"alg":"ES256"}'), encode(b"{}")
    token = f"vapid t={header}.{claims}.{encode(b'x' * 64)}, k={RECEIVER_PUBLIC}"
    with pytest.raises(InvalidSignature):
        vapid_claims(token, RECEIVER_PUBLIC)
