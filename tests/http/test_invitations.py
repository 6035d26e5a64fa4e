"""``--registration invited``: who gets in with a code, and how often."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from podstead.app.adapters.audit import LogAudit
from podstead.app.adapters.keys import ensure_token_key
from podstead.app.adapters.system import SystemRandomness
from podstead.config import Settings
from podstead.idp.administration.service import InvitationActions
from podstead.storage.keys import KeyFiles
from podstead.storage.layout import RootLayout
from podstead.storage.record_store import RecordStore
from podstead.storage.root import prepare_root
from podstead.storage.sqlite import SqliteStore
from podstead.web.application import Application
from podstead.web.limits import WRONG_INVITATIONS_PER_HOUR
from tests.support.application import BASE, running
from tests.support.asgi import Answer, Client
from tests.support.browser import Browser
from tests.support.clock import FakeClock

PASSWORD = "a few words in a row"
JSON = "application/json"
DAY_S = 24 * 3600

_numbers = itertools.count()


class Host:
    """A server for the invited, and its operator."""

    def __init__(
        self, application: Application, store: SqliteStore, clock: FakeClock, settings: Settings
    ) -> None:
        self.application = application
        self.public = Client(application, host="localhost:3000")
        self.settings = settings
        self.actions = InvitationActions(RecordStore(store, clock, SystemRandomness()), LogAudit())

    async def invite(self, *, uses: int = 1, days: int = 7) -> str:
        return (await self.actions.create(uses=uses, days=days)).code

    async def uses_left(self) -> list[int]:
        return [each.value.uses_left for each in await self.actions.list()]

    async def register(
        self, code: object, *, name: str | None = None, peer: str = "127.0.0.1", **members: object
    ) -> Answer:
        name = name or f"person-{next(_numbers)}"
        sent = {"name": name, "email": f"{name}@example.org", "password": PASSWORD} | members
        if code is not None:
            sent["invitation"] = code
        headers = {"Content-Type": JSON}
        body = json.dumps(sent).encode()
        return await self.public.request("POST", "/.pods", headers=headers, body=body, peer=peer)


@pytest.fixture(params=[False, True], ids=["pods", "accounts"])
async def host(
    request: pytest.FixtureRequest, settings: Settings, clock: FakeClock
) -> AsyncIterator[Host]:
    """With the provider and without it."""
    async with hosting(replace(settings, idp=request.param), clock) as host:
        yield host


class hosting(AsyncExitStack):  # noqa: N801 - used like a function
    """A server that runs while this is open."""

    def __init__(self, settings: Settings, clock: FakeClock) -> None:
        super().__init__()
        self._settings = replace(settings, registration="invited")
        self._clock = clock

    async def __aenter__(self) -> Host:  # type: ignore[override]
        ensure_token_key(KeyFiles(prepare_root(self._settings.root).keys))
        application = await self.enter_async_context(running(self._settings, clock=self._clock))
        store = SqliteStore(self._settings.root)
        await store.open()
        self.push_async_callback(store.close)
        return Host(application, store, self._clock, self._settings)


# --- who gets in ------------------------------------------------------------------------------


async def test_nobody_registers_without_an_invitation(host: Host) -> None:
    for code in (None, "", "  "):
        answer = await host.register(code)
        assert answer.status == 403
        assert answer.json()["error"] == "Invitation required"
    answer = await host.register("0123-4567-89ab-cdef")
    assert (answer.status, answer.json()["error"]) == (403, "Invalid invitation")
    assert (await host.register(7)).status == 400


async def test_a_code_works_as_often_as_it_says(host: Host) -> None:
    code = await host.invite(uses=2)
    assert (await host.register(code)).status == 201
    assert await host.uses_left() == [1]
    assert (await host.register(code.upper().replace("-", " "))).status == 201, "as people type it"
    assert (await host.register(code)).json()["error"] == "Invalid invitation"


async def test_a_registration_that_fails_uses_nothing_up(host: Host) -> None:
    code = await host.invite(uses=2)
    assert (await host.register(code, name="alice")).status == 201
    for name in ("alice", "ALICE", "a b", "idp"):
        assert (await host.register(code, name=name)).status in (400, 409)
    assert await host.uses_left() == [1]


async def test_an_invitation_ends(host: Host, clock: FakeClock) -> None:
    code = await host.invite(days=2)
    clock.advance(2 * DAY_S - 1)
    other = await host.register(code, name="a b")
    assert other.status == 400, "the code is still good"
    clock.advance(2)
    assert (await host.register(code)).json()["error"] == "Invalid invitation"
    assert await host.uses_left() == []


async def test_an_operator_revokes_an_invitation(host: Host) -> None:
    code = await host.invite()
    [kept] = await host.actions.list()
    await host.actions.revoke(kept.value.invitation_id)
    assert (await host.register(code)).status == 403


async def test_of_a_code_only_the_hash_is_stored(host: Host) -> None:
    code = await host.invite()
    written = RootLayout(host.settings.root)
    content = b"".join(
        each.read_bytes() for each in written.root.rglob("*") if each.is_file()
    ).lower()
    assert code.encode() not in content
    assert code.replace("-", "").encode() not in content


# --- races and guesses ------------------------------------------------------------------------


async def test_no_race_of_two_workers_gives_more_uses_than_there_are(
    host: Host, clock: FakeClock
) -> None:
    code = await host.invite(uses=5)
    async with running(host.settings, clock=clock) as application:
        other = Host(application, SqliteStore(host.settings.root), clock, host.settings)
        answers = await asyncio.gather(
            *((host, other)[number % 2].register(code) for number in range(16))
        )
    assert sorted(answer.status for answer in answers) == [201] * 5 + [403] * 11
    assert await host.uses_left() == [0]


async def test_who_guesses_codes_is_slowed_down_and_nobody_else(host: Host) -> None:
    code = await host.invite(uses=2)
    guesses = [
        await host.register(f"guess-{number}", peer="198.51.100.7")
        for number in range(WRONG_INVITATIONS_PER_HOUR + 1)
    ]
    assert [guess.status for guess in guesses] == [403] * WRONG_INVITATIONS_PER_HOUR + [429]
    assert (await host.register(code, peer="198.51.100.7")).status == 429, "also if it is right"
    assert (await host.register(code, peer="198.51.100.8")).status == 201


async def test_guesses_at_once_get_no_more_answers(host: Host) -> None:
    attempts = (host.register(f"at-once-{number}") for number in range(40))
    answers = await asyncio.gather(*attempts)
    assert [answer.status for answer in answers].count(403) == WRONG_INVITATIONS_PER_HOUR


# --- what the server says -----------------------------------------------------------------------


async def test_the_first_page_says_that_one_needs_an_invitation(host: Host) -> None:
    page = await Browser(host.application).get("/")
    assert "you need an invitation" in page.text
    facts = (await host.public.get("/", accept=JSON)).json()
    assert facts["registration"] == "invited"
    assert facts["createPod"] == f"{BASE}/.pods"


async def test_where_anybody_may_register_a_code_is_not_used(
    settings: Settings, clock: FakeClock
) -> None:
    async with hosting(settings, clock) as host:
        await host.invite()
        async with running(replace(host.settings, registration="open"), clock=clock) as application:
            host.public = Client(application, host="localhost:3000")
            assert (await host.register("whatever")).status == 201
            assert await host.uses_left() == [1]


# --- the registration page ------------------------------------------------------------------------


@pytest.fixture
async def provider(settings: Settings, clock: FakeClock) -> AsyncIterator[Host]:
    async with hosting(replace(settings, idp=True), clock) as host:
        yield host


async def test_a_link_fills_in_the_code(provider: Host) -> None:
    code = await provider.invite()
    browser = Browser(provider.application)
    page = await browser.get(f"/idp/register?invitation={code}")
    assert page.form("/idp/register").fields["invitation"] == code
    typed = {"username": "carol", "password": PASSWORD, "confirmPassword": PASSWORD}
    page = await browser.send(page, "/idp/register", **typed)
    assert (page.status, page.path) == (200, "/.pages/welcome")
    assert await provider.uses_left() == [0]


async def test_a_wrong_code_is_reported_at_its_field(provider: Host) -> None:
    browser = Browser(provider.application)
    page = await browser.get("/idp/register?invitation=%22%3E%3Cscript%3E")
    assert "<script>" not in page.text
    typed = {"username": "carol", "password": PASSWORD, "confirmPassword": PASSWORD}
    page = await browser.send(page, "/idp/register", invitation="wrong", **typed)
    assert page.status == 403
    assert 'id="invitation-error"' in page.text
    fields = page.form("/idp/register").fields
    assert (fields["invitation"], fields["username"]) == ("wrong", "carol")
    assert re.search(r'autofocus[^>]*aria-invalid="true"', page.text)


async def test_pages_elsewhere_cannot_use_up_the_guesses(provider: Host) -> None:
    code = await provider.invite()
    browser = Browser(provider.application)
    for _ in range(WRONG_INVITATIONS_PER_HOUR):
        # As an <img> asks.
        page = await browser.get("/idp/register?invitation=wrong", Sec_Fetch_Dest="image")
        assert page.status == 200
    typed = {"username": "carol", "password": PASSWORD, "confirmPassword": PASSWORD}
    page = await browser.get("/idp/register")
    # One wrong code that is sent counts once.
    for _ in range(WRONG_INVITATIONS_PER_HOUR - 1):
        page = await browser.send(page, "/idp/register", invitation="wrong", **typed)
    page = await browser.send(page, "/idp/register", invitation=code, **typed)
    assert (page.status, page.path) == (200, "/.pages/welcome")


async def test_the_log_says_who_used_which_invitation(
    provider: Host, caplog: pytest.LogCaptureFixture
) -> None:
    code = await provider.invite()
    [kept] = await provider.actions.list()
    with caplog.at_level("INFO", logger="podstead.audit"):
        await provider.register("wrong")
        await provider.register(code)
    noted = [(each.getMessage(), getattr(each, "invitation", None)) for each in caplog.records]
    assert ("invitation refused", None) in noted
    assert ("account created", kept.value.invitation_id) in noted
    assert code not in caplog.text
