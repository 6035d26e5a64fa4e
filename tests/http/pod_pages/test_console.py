"""The operator's console: who gets in, and what operators do with accounts."""

from __future__ import annotations

import json
import logging
import math
import re
import secrets

import pytest

from podstead.config import Settings, read_settings
from podstead.core.errors import NotFound
from podstead.idp.administration.audit_log import MAX_KEPT, SlowRequests
from podstead.idp.administration.pods import PodActions
from podstead.web import application
from tests.support.application import Server, Start, password_of
from tests.support.browser import FORM, Browser
from tests.support.clock import FakeClock
from tests.support.console import (
    ACCOUNTS,
    CONSOLE,
    LOG,
    administering,
    forget_sign_ins,
    new_pod_alone,
    promote,
    restrict_sessions,
    sign_in_operator,
)
from tests.support.pod_pages import sign_in_to_account

BOB = f"{ACCOUNTS}/bob"
HEALTH = "/.pages/console/health"
SETTINGS = "/.pages/console/settings"
INVITATIONS = "/.pages/console/invitations"
PAGES = [CONSOLE, ACCOUNTS, INVITATIONS, LOG, HEALTH, SETTINGS, BOB, f"{BOB}/delete", f"{BOB}/link"]


@pytest.fixture
async def server(start: Start, monkeypatch: pytest.MonkeyPatch) -> Server:
    """One that takes no request for a slow one, however busy the machine is."""
    monkeypatch.setattr(application, "SLOW_REQUEST_S", math.inf)
    return await start(idp=True)


@pytest.fixture
async def operator(server: Server, settings: Settings) -> Browser:
    """The browser of Alice, who is an operator."""
    return await sign_in_operator(server, settings)


# --- who gets in ------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES)
async def test_nobody_else_finds_the_console(server: Server, path: str) -> None:
    stranger, person = Browser(server.application), await sign_in_to_account(server, "bob")
    assert (await stranger.get(path)).status == 404
    assert (await person.get(path)).status == 404


@pytest.mark.parametrize("action", ["delete", "disable", "promote", "link", "sign-out", "enable"])
async def test_nobody_else_does_anything_with_an_account(server: Server, action: str) -> None:
    for browser in (Browser(server.application), await sign_in_to_account(server, "bob")):
        page = await browser.post(f"{ACCOUNTS}/alice/{action}", {"name": "alice"})
        assert page.status == 404
    await sign_in_to_account(server, "alice")


async def test_without_a_provider_there_is_no_console(start: Start) -> None:
    server = await start()
    assert (await Browser(server.application).get(CONSOLE)).status == 404


async def test_pages_lead_operators_to_the_console(server: Server, operator: Browser) -> None:
    page = await operator.get("/.pages/files/alice/")
    assert f'href="{CONSOLE}"' in page.text
    person = await sign_in_to_account(server, "bob")
    assert CONSOLE not in (await person.get("/.pages/files/bob/")).text


async def test_who_is_demoted_is_out_at_once(
    server: Server, operator: Browser, settings: Settings
) -> None:
    assert (await operator.get(ACCOUNTS)).status == 200
    await promote(settings, "bob")
    async with administering(settings) as services:
        kept = await services.accounts.find("alice")
        assert kept is not None
        await services.administration.act("demote", kept.value.account_id)
    assert (await operator.get(ACCOUNTS)).status == 404


# --- accounts ---------------------------------------------------------------------------------


async def test_accounts_are_listed_and_found(operator: Browser) -> None:
    page = await operator.get(CONSOLE)
    page = await operator.get(ACCOUNTS)
    assert "bob@example.org" in page.text
    assert "2 pods" in page.text
    for query in ("BO", "ob@EXAMPLE"):
        page = await operator.get(f"{ACCOUNTS}?q={query.replace('@', '%40')}")
        assert "1 pod<" in page.text
        assert f'href="{BOB}"' in page.text
    assert "No pod was found" in (await operator.get(f"{ACCOUNTS}?q=carol")).text


async def test_the_last_sign_in_is_shown(
    server: Server, operator: Browser, settings: Settings
) -> None:
    await forget_sign_ins(settings, "bob")
    assert "never" in (await operator.get(BOB)).text
    await sign_in_to_account(server, "bob")
    assert "never" not in (await operator.get(BOB)).text


async def test_a_sign_in_of_a_script_is_a_sign_in(
    server: Server, operator: Browser, settings: Settings
) -> None:
    await forget_sign_ins(settings, "bob")
    assert "never" in (await operator.get(BOB)).text
    sent = {"username": "bob", "password": password_of("bob")}
    answer = await server.public.request(
        "POST",
        "/idp/credentials",
        headers={"Content-Type": "application/json"},
        body=json.dumps(sent).encode(),
    )
    assert answer.status == 200
    assert "never" not in (await operator.get(BOB)).text


async def test_an_operator_disables_and_enables_an_account(
    server: Server, operator: Browser
) -> None:
    bob = await sign_in_to_account(server, "bob")
    page = await operator.get(f"{BOB}/disable")
    page = await operator.send(page, f"{BOB}/disable")
    assert (page.status, page.path) == (200, BOB)
    assert "is disabled" in page.text
    assert (await bob.get("/.pages/files/")).path == "/idp/login"
    page = await operator.send(page, f"{BOB}/enable")
    assert "enabled again" in page.text
    await sign_in_to_account(server, "bob")


async def test_an_operator_signs_somebody_out(
    server: Server, operator: Browser, caplog: pytest.LogCaptureFixture
) -> None:
    bob = await sign_in_to_account(server, "bob")
    page = await operator.get(BOB)
    with caplog.at_level(logging.INFO, "podstead.audit"):
        page = await operator.send(page, f"{BOB}/sign-out")
    assert "signed out everywhere" in page.text
    assert "signed out everywhere" in caplog.messages
    assert (await bob.get("/.pages/files/")).path == "/idp/login"


@pytest.mark.parametrize("action", ["sign-out", "disable", "promote", "delete"])
async def test_nothing_is_done_to_an_account_that_is_not_there(
    operator: Browser, settings: Settings, action: str
) -> None:
    async with administering(settings) as services:
        with pytest.raises(NotFound):
            await services.administration.act(action, "0" * 32)


async def test_deletion_requires_the_name(operator: Browser) -> None:
    page = await operator.get(f"{BOB}/delete")
    page = await operator.send(page, f"{BOB}/delete", name="alice")
    assert page.status == 400
    page = await operator.send(page, f"{BOB}/delete", name="bob")
    assert (page.status, page.path) == (200, ACCOUNTS)
    assert (await operator.get(BOB)).status == 404
    assert (await operator.get("/bob/")).status == 403


async def test_operators_cannot_lock_themselves_out(server: Server, operator: Browser) -> None:
    own = f"{ACCOUNTS}/alice"
    for action in ("disable", "demote", "delete"):
        page = await operator.send(
            await operator.get(f"{own}/{action}"), f"{own}/{action}", name="alice"
        )
        assert "with your own account" in page.text
    assert (await operator.get(own)).status == 200


async def test_an_operator_makes_another_one(server: Server, operator: Browser) -> None:
    bob = await sign_in_to_account(server, "bob")
    page = await operator.send(await operator.get(f"{BOB}/promote"), f"{BOB}/promote")
    assert "is an operator now" in page.text
    assert (await bob.get(ACCOUNTS)).status == 200
    await operator.send(await operator.get(f"{BOB}/demote"), f"{BOB}/demote")
    assert (await bob.get(ACCOUNTS)).status == 404


async def test_a_pod_without_an_account_is_listed_and_deleted(
    operator: Browser, settings: Settings
) -> None:
    carol = f"{ACCOUNTS}/carol"
    await new_pod_alone(settings, "carol")
    assert "no account" in (await operator.get(ACCOUNTS)).text
    page = await operator.send(
        await operator.get(f"{carol}/delete"), f"{carol}/delete", name="carol"
    )
    assert (page.status, page.path) == (200, ACCOUNTS)
    assert (await operator.get(carol)).status == 404


async def test_an_operator_sets_the_quota_of_a_pod(server: Server, operator: Browser) -> None:
    assert (await server.bob.put("/bob/a", b"x" * 900_000, "text/plain")).status == 201
    page = await operator.get(BOB)
    page = await operator.send(page, f"{BOB}/quota", quota="own", megabytes="1")
    assert "The quota of bob is set" in page.text
    assert "of 1" in page.text
    assert (await server.bob.put("/bob/b", b"x" * 200_000, "text/plain")).status == 507
    assert (await server.alice.put("/alice/b", b"x" * 1_200_000, "text/plain")).status == 201
    await operator.send(page, f"{BOB}/quota", quota="none")
    assert (await server.bob.put("/bob/b", b"x" * 200_000, "text/plain")).status == 201


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "٣", "9" * 12])
async def test_a_quota_is_a_number(operator: Browser, text: str) -> None:
    page = await operator.get(BOB)
    page = await operator.send(page, f"{BOB}/quota", quota="own", megabytes=text)
    assert page.status == 400


async def test_a_pods_own_quota_replaces_that_of_the_setting(
    start: Start, settings: Settings
) -> None:
    server = await start(idp=True, quota_bytes=100_000)
    operator = await sign_in_operator(server, settings)
    large = b"x" * 200_000
    assert (await server.bob.put("/bob/b", large, "text/plain")).status == 507
    page = await operator.get(BOB)
    page = await operator.send(page, f"{BOB}/quota", quota="own", megabytes="1")
    assert (await server.bob.put("/bob/b", large, "text/plain")).status == 201
    assert (await server.alice.put("/alice/b", large, "text/plain")).status == 507
    page = await operator.send(page, f"{BOB}/quota", quota="default")
    assert (await server.bob.put("/bob/c", large, "text/plain")).status == 507


async def test_a_quota_set_by_another_process_applies(server: Server, settings: Settings) -> None:
    assert (await server.bob.put("/bob/a", b"x" * 200_000, "text/plain")).status == 201
    async with administering(settings) as services:
        await PodActions(services.records, services.audit).set_quota("bob", 100_000)
    answer = await server.bob.put("/bob/b", b"x", "text/plain")
    assert answer.status == 507
    assert "100000" in answer.text
    async with administering(settings) as services:
        await PodActions(services.records, services.audit).set_quota("bob", None)
    assert (await server.bob.put("/bob/b", b"x", "text/plain")).status == 201


# --- health and settings ----------------------------------------------------------------------


async def test_the_health_page_counts(operator: Browser) -> None:
    page = await operator.get(HEALTH)
    assert page.status == 200
    # A busy machine may have been slow.
    assert ("None in the last week" in page.text) is (">Seconds</th>" not in page.text)


async def test_the_first_page_says_what_needs_attention(
    start: Start, settings: Settings, clock: FakeClock
) -> None:
    server = await start(idp=True, clock=clock)
    operator = await sign_in_operator(server, settings)
    for page in (ACCOUNTS, HEALTH):
        assert "There is no backup yet." in (await operator.get(page)).text
    assert "There is no backup yet." not in (await operator.get(f"{ACCOUNTS}?q=bob")).text
    for days, said in ((8, True), (1, False)):
        finished_s = clock.now_ms() / 1000 - days * 24 * 3600
        made = {"place": "/backups", "moment": "", "finished": "", "finished_s": finished_s}
        numbers = ("copied_files", "copied_bytes", "linked_files", "linked_bytes", "faults")
        record = {**made, "duration_s": 1.0, **dict.fromkeys(numbers, 0)}
        (settings.root / "last-backup.json").write_text(json.dumps(record))
        text = (await operator.get(ACCOUNTS)).text
        assert ("The last backup is older than a week." in text) is said
        assert "There is no backup yet." not in text


async def test_no_invitation_is_made_where_it_has_no_effect(operator: Browser) -> None:
    assert "Create the invitation" in (await operator.get(INVITATIONS)).text
    setting = f"{SETTINGS}/registration"
    await operator.send(await operator.get(setting), setting, value="closed")
    page = await operator.get(INVITATIONS)
    assert "Invitations have no effect." in page.text
    assert "Create the invitation" not in page.text


async def test_slow_requests_are_shown_without_secrets(start: Start, settings: Settings) -> None:
    server = await start(idp=True)
    operator = await sign_in_operator(server, settings)
    async with administering(settings) as services:
        slow = SlowRequests(services.records)
        slow.note("GET", "/bob/large.ttl", 200, 2345)
        slow.note("GET", "/.pages/link/a-secret", 200, 1234)
        await slow.store()
    page = await operator.get(HEALTH)
    assert "GET /bob/large.ttl" in page.text
    assert "2.3" in page.text
    assert "GET /.pages/link/…" in page.text
    assert "a-secret" not in page.text


async def test_only_the_newest_slow_requests_are_kept(server: Server, settings: Settings) -> None:
    async with administering(settings) as services:
        slow = SlowRequests(services.records)
        for number in range(130):
            slow.note("GET", f"/bob/{number}", 200, 2000)
            if number % 10 == 9:
                await slow.store()
        assert len(await slow.newest()) == MAX_KEPT
        assert await services.records.store.count_entries("slow-request", at_most=999) == MAX_KEPT


async def test_settings_are_shown_with_their_sources_and_without_secrets(
    start: Start, settings: Settings
) -> None:
    secret = secrets.token_hex(32)
    changed = read_settings(
        {"quota_bytes": "123456789"},
        {"PODSTEAD_GIT": "true", "PODSTEAD_TOKEN_SECRET": secret},
        folder=settings.root,
    )
    server = await start(
        idp=True, quota_bytes=123456789, token_secret=changed.token_secret, set_by=changed.set_by
    )
    operator = await sign_in_operator(server, settings)
    text = (await operator.get(SETTINGS)).text
    assert "123456789" in text
    assert "--quota-bytes" in text
    assert "PODSTEAD_GIT" in text
    assert secret not in text
    assert "PODSTEAD_TOKEN_SECRET" in text


# --- fresh authentication and forged requests -------------------------------------------------


@pytest.mark.parametrize("action", ["delete", "disable", "promote", "link"])
async def test_what_cannot_be_undone_requires_a_recent_sign_in(
    start: Start, settings: Settings, action: str
) -> None:
    clock = FakeClock()
    server = await start(idp=True, clock=clock)
    operator = await sign_in_operator(server, settings)
    page = await operator.get(f"{BOB}/{action}")
    clock.advance(11 * 60)
    sent = await operator.send(page, f"{BOB}/{action}", name="bob")
    assert sent.path == "/idp/login"
    page = await operator.get(f"{BOB}/{action}")
    assert page.path == "/idp/login"
    page = await operator.send(page, "/idp/login", username="alice", password=password_of("alice"))
    assert (page.status, page.path) == (200, f"{BOB}/{action}")
    assert "bob" in (await operator.get(ACCOUNTS)).text


@pytest.mark.parametrize("action", ["sign-out", "delete", "link", "promote"])
async def test_a_forged_request_of_an_operator_changes_nothing(
    server: Server, operator: Browser, action: str
) -> None:
    bob = await sign_in_to_account(server, "bob")
    without_token = await operator.post(f"{BOB}/{action}", {"name": "bob"})
    assert without_token.status == 403
    body = b"name=bob"
    headers = {"Content-Type": FORM, "Sec-Fetch-Site": "cross-site"}
    assert (await operator.ask("POST", f"{BOB}/{action}", headers=headers, body=body)).status == 403
    assert (await bob.get("/.pages/files/")).path == "/.pages/files/bob/"
    assert (await bob.get(ACCOUNTS)).status == 404


async def test_a_session_without_an_own_credential_is_no_operators(
    server: Server, settings: Settings
) -> None:
    await promote(settings)
    operator = await sign_in_to_account(server)
    async with administering(settings) as services:
        kept = await services.accounts.find("alice")
        assert kept is not None
        await restrict_sessions(services.records, kept.value.account_id)
    assert (await operator.get(ACCOUNTS)).status == 404


# --- the log ----------------------------------------------------------------------------------


async def test_every_action_is_in_the_log(server: Server, operator: Browser) -> None:
    for action in ("disable", "enable", "sign-out", "promote", "demote", "link", "delete"):
        page = await operator.get(f"{BOB}/{action}" if action not in _DIRECT else BOB)
        await operator.send(page, f"{BOB}/{action}", name="bob")
    log = (await operator.get(LOG)).text
    for text in (
        "Account disabled",
        "Account enabled",
        "Signed out everywhere",
        "Made an operator",
        "No longer an operator",
        "One-time sign-in link created",
        "Account deleted",
    ):
        assert log.count(f"<td>{text}") == 1
    assert log.count('<td class="wide-only">alice</td>') == 7
    assert log.count('<td class="wide-only"><code>127.0.0.1</code>') == 7


_DIRECT = ("enable", "sign-out")


# --- invitations ------------------------------------------------------------------------------


async def test_an_operator_creates_and_revokes_an_invitation(
    server: Server, operator: Browser
) -> None:
    page = await operator.get(INVITATIONS)
    assert "Registration is open" in page.text
    assert "There is no invitation" in page.text
    page = await operator.send(page, INVITATIONS, uses="3", days="2")
    assert page.status == 200
    found = re.search(r"http://localhost:3000/idp/register\?invitation=([0-9a-z-]{19})<", page.text)
    assert found is not None
    page = await operator.get(INVITATIONS)
    assert "3 of 3" in page.text
    assert found[1] not in page.text, "only its hash is stored"
    assert "Invitation created" in (await operator.get(LOG)).text
    invitation = re.search(r"<code>([0-9a-f]{8})</code>", page.text)
    assert invitation is not None
    page = await operator.send(page, f"{INVITATIONS}/{invitation[1]}/revoke")
    assert "is revoked" in page.text
    assert "There is no invitation" in page.text
    page = await operator.get(LOG)
    assert "Invitation revoked" in page.text
    assert invitation[1] in page.text


@pytest.mark.parametrize(("uses", "days"), [("1", "1"), ("10000", "3650")])
async def test_the_bounds_of_an_invitation_are_allowed(
    operator: Browser, uses: str, days: str
) -> None:
    page = await operator.send(await operator.get(INVITATIONS), INVITATIONS, uses=uses, days=days)
    assert page.status == 200
    assert f"{uses} of {uses}" in (await operator.get(INVITATIONS)).text


@pytest.mark.parametrize(
    ("uses", "days"),
    [("0", "7"), ("1", "0"), ("x", "7"), ("10001", "7"), ("1", "3651"), ("-1", "1")],
)
async def test_an_invitation_has_bounds(operator: Browser, uses: str, days: str) -> None:
    page = await operator.send(await operator.get(INVITATIONS), INVITATIONS, uses=uses, days=days)
    assert page.status == 400
    assert "There is no invitation" in (await operator.get(INVITATIONS)).text
