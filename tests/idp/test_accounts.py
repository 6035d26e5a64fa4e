"""An account and its pod come, change and go as one (A-90 to A-97, W-14)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from podstead.core.errors import BadRequest, Conflict, NotFound, Overloaded, StorageError
from podstead.core.identifiers import ResourcePath
from podstead.idp.accounts import LastOperator, issue_time_s
from podstead.idp.administration.audit_log import Operator
from podstead.idp.audit import OPERATOR
from podstead.idp.records import (
    ACCOUNTS,
    CODES,
    CREDENTIALS,
    EMAILS,
    GRANTS,
    REFRESH_TOKENS,
    SESSIONS,
    USERNAMES,
    Account,
    AuthorizationCode,
    BrowserSession,
    EmailTaken,
    Grant,
    RefreshToken,
)
from podstead.idp.sign_in import AccountDisabled, SignInFailed
from podstead.pods.names import PodNameTaken
from podstead.storage.pods import new_name_of, put_tombstone
from podstead.storage.record_store import RecordKind, Versioned
from podstead.storage.records import CommitOutcome, EntryId, TokenRecord, Version, Write
from tests.support.accounts import ADDRESS, BASE, Office, office, password_of

NEW_PASSWORD = "another password"


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Office]:
    async with office(tmp_path / "root") as desk:
        yield desk


async def signs_in(desk: Office, login: str, password: str) -> bool:
    try:
        await desk.services.sign_in.verify(login, password, address=ADDRESS)
    except SignInFailed:
        return False
    return True


# --- operators --------------------------------------------------------------------------------


async def operators(desk: Office) -> list[str]:
    page = await ACCOUNTS.page(desk.store, now_ms=desk.clock.now_ms())
    return [each.value.pod for each in page if each.value.operator and not each.value.disabled]


@pytest.mark.parametrize("action", ["demote", "disable", "delete"])
async def test_two_operators_who_end_each_other_leave_one(tmp_path: Path, action: str) -> None:
    async with office(tmp_path / "root") as one, office(tmp_path / "root") as other:
        ids = [(await one.new_account(name)).value.account_id for name in ("alice", "bob", "carol")]
        for each in ids[:2]:
            await one.services.administration.act("promote", each)

        async def end(desk: Office, account_id: str) -> bool:
            by = Operator(next(each for each in ids if each != account_id), "", OPERATOR)
            try:
                await desk.services.administration.act(action, account_id, by)
            except LastOperator:
                return False
            return True

        ended = await asyncio.gather(end(one, ids[0]), end(other, ids[1]))
        assert sorted(ended) == [False, True]
        assert len(await operators(one)) == 1


@pytest.mark.parametrize("action", ["demote", "disable", "delete"])
async def test_the_last_operator_stays_one_while_there_are_others(
    desk: Office, action: str
) -> None:
    alice, act = (await desk.new_account()).value, desk.services.administration.act
    bob = (await desk.new_account("bob")).value
    await act("promote", alice.account_id)
    await act("promote", bob.account_id)
    await act("disable", bob.account_id)
    with pytest.raises(LastOperator):
        await act(action, alice.account_id)
    assert await operators(desk) == ["alice"]
    await act("enable", bob.account_id)
    await act(action, alice.account_id)
    assert await operators(desk) == ["bob"]


async def test_who_is_alone_can_delete_everything(desk: Office) -> None:
    alice = (await desk.new_account()).value
    await desk.services.administration.act("promote", alice.account_id)
    await desk.services.accounts.delete(alice.account_id)
    assert await desk.services.accounts.find("alice") is None


# --- making ------------------------------------------------------------------------------------


async def test_an_account_comes_with_its_pod_and_the_names_that_lead_to_it(desk: Office) -> None:
    """A-94"""
    account = (await desk.new_account("Alice")).value
    assert (account.pod, account.web_id) == ("Alice", f"{BASE}/Alice/#me")
    assert account.email == "Alice@example.org"
    pod = await desk.store.read_pod("alice")
    assert pod is not None
    assert pod.owner == account.web_id
    for login in ("alice", "ALICE", "alice@example.org", "ALICE@EXAMPLE.ORG", " alice "):
        found = await desk.services.accounts.find(login)
        assert found is not None
        assert found.value == account
    for login in ("alic", "bob", "alice@example.com", "", "@", "a" * 300):
        assert await desk.services.accounts.find(login) is None


async def test_the_password_is_nowhere_in_the_store(desk: Office) -> None:
    """A-185"""
    await desk.new_account()
    await desk.store.close()
    stored = b"".join(path.read_bytes() for path in desk.root.rglob("*") if path.is_file())
    assert b"alice@example.org" in stored
    assert password_of("alice").encode() not in stored
    await desk.store.open()


@pytest.mark.parametrize(
    ("name", "email", "password", "known_text"),
    [
        # Everything is wrong: the name is told first, then the address, then the password.
        (None, None, None, "Pod name required"),
        ("idp", None, None, "Reserved pod name"),
        ("a b", "x", "1", "Invalid pod name. Use alphanumeric, dash, or underscore only."),
        ("bob", None, None, "Email required for account creation"),
        ("bob", "x", "1", "Invalid email"),
        ("bob", "bob@example.org", None, "Password required"),
        ("bob", "bob@example.org", "1234567", "Password must be at least 8 characters"),
        # What is taken is told last, the name before the address.
        ("ALICE", "alice@example.org", "12345678", "Pod already exists"),
        ("bob", "ALICE@example.org", "12345678", "Email already registered"),
        ("ALICE", "alice@example.org", "1234567", "Password must be at least 8 characters"),
    ],
)
async def test_one_reason_is_given_in_the_order_of_the_table(
    desk: Office, name: object, email: object, password: object, known_text: str
) -> None:
    """A-90"""
    await desk.new_account()
    before = desk.rows()
    with pytest.raises((BadRequest, Conflict)) as refusal:
        await desk.services.accounts.create(name=name, email=email, password=password)
    assert refusal.value.known_text == known_text
    assert desk.rows() == before


async def test_of_twenty_creations_of_one_name_one_succeeds_whole(tmp_path: Path) -> None:
    """A-94, W-14: also by several workers."""
    async with office(tmp_path / "root") as one, office(tmp_path / "root") as other:
        desks = [one, other] * 10

        async def make(index: int, desk: Office) -> bool:
            try:
                await desk.services.accounts.create(
                    name=("alice", "Alice")[index % 3 == 0],
                    email=f"{index}@example.org",
                    password=f"password {index}",
                )
            except PodNameTaken:
                return False
            return True

        made = await asyncio.gather(*(make(*each) for each in enumerate(desks)))
        assert sum(made) == 1
        winner = made.index(True)
        account = await other.services.accounts.find("alice")
        assert account is not None
        assert account.value.email == f"{winner}@example.org"
        assert await signs_in(one, "alice", f"password {winner}")
        pod = await one.store.read_pod("alice")
        assert pod is not None
        assert pod.owner == account.value.web_id
        emails = await EMAILS.page(one.store, now_ms=one.clock.now_ms())
        assert [kept.key for kept in emails] == [f"{winner}@example.org"]


async def test_of_twenty_creations_with_one_address_one_succeeds_whole(tmp_path: Path) -> None:
    """A-90, A-94: the losers leave no pod."""
    async with office(tmp_path / "root") as one, office(tmp_path / "root") as other:

        async def make(index: int) -> bool:
            try:
                await (one, other)[index % 2].services.accounts.create(
                    name=f"pod{index}",
                    email=("a@example.org", "A@example.org")[index % 2],
                    password="password123",
                )
            except EmailTaken:
                return False
            return True

        made = await asyncio.gather(*map(make, range(20)))
        assert sum(made) == 1
        pods = await one.store.list_pods(limit=10)
        assert [pod.name for pod in pods] == [f"pod{made.index(True)}"]
        found = [each async for each in one.services.accounts.records.each(ACCOUNTS)]
        assert len(found) == 1


async def test_a_failure_leaves_nothing(desk: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """A-94"""
    before = desk.rows()

    async def fail(_: Write) -> CommitOutcome:
        raise StorageError("The disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(desk.store, "commit", fail)
        with pytest.raises(StorageError):
            await desk.new_account()
    assert desk.rows() == before
    assert await signs_in(desk, "alice", password_of("alice")) is False
    await desk.new_account()
    assert await signs_in(desk, "alice", password_of("alice")) is True


async def test_an_account_can_be_without_an_address_if_none_is_needed(desk: Office) -> None:
    """A-95"""
    made = await desk.services.accounts.create(
        name="alice", email=None, password="password123", needs_email=False
    )
    assert made.account.email is None
    assert await signs_in(desk, "alice", "password123")
    assert list(await EMAILS.page(desk.store, now_ms=desk.clock.now_ms())) == []


async def test_a_pod_without_an_account_gets_one(desk: Office) -> None:
    """Of a server that became a provider later."""
    alice = await desk.new_account()
    await desk.services.records.commit(
        [
            kind.drop(key)
            for kind, key in (
                (ACCOUNTS, alice.key),
                (USERNAMES, "alice"),
                (EMAILS, "alice@example.org"),
            )
        ],
    )
    accounts = desk.services.accounts
    made = await accounts.create_for_pod("ALICE", email=None, password="password123")
    assert (made.pod, made.web_id) == ("alice", alice.value.web_id)
    assert await signs_in(desk, "alice", "password123")
    with pytest.raises(Conflict, match="already has an account"):
        await accounts.create_for_pod("alice", email=None, password="password456")
    with pytest.raises(NotFound):
        await accounts.create_for_pod("bob", email=None, password="password456")
    assert await signs_in(desk, "alice", "password123")


# --- changing ----------------------------------------------------------------------------------


async def fill(desk: Office, account_id: str) -> None:
    """Give an account a session, a grant, a refresh token, a code and client credentials."""
    now_s = desk.clock.now_s()
    grant = Grant("g1", account_id, "w", "c", None, (), now_s, "s", now_s, now_s)
    code = AuthorizationCode("g1", "c", "r", "x", now_s + 60)
    session = BrowserSession(account_id, now_s, now_s, "password", "t", lasting=False)
    await desk.services.records.commit(
        [
            SESSIONS.put("s1", session, owner=account_id),
            GRANTS.put("g1", grant, owner=account_id),
            REFRESH_TOKENS.put("r1", RefreshToken("g1", "c", (), None), owner=account_id),
            CODES.put("c1", code, owner=account_id),
        ],
    )
    await desk.services.credentials.create(await desk.read(account_id), name="backup")


async def owned_by(desk: Office, account_id: str) -> set[str]:
    kinds: list[RecordKind[Any]] = [
        ACCOUNTS, EMAILS, USERNAMES, SESSIONS, GRANTS, REFRESH_TOKENS, CODES, CREDENTIALS,
    ]  # fmt: skip
    now_ms = desk.clock.now_ms()
    return {
        kind.kind for kind in kinds if await kind.of_owner(desk.store, account_id, now_ms=now_ms)
    }


async def test_a_new_password_ends_what_began_with_the_old_one(desk: Office) -> None:
    """A-76: of this account and of no other."""
    alice, bob = await desk.new_account("alice"), await desk.new_account("bob")
    await fill(desk, alice.key)
    await desk.services.accounts.set_password(alice.key, NEW_PASSWORD)
    assert await owned_by(desk, alice.key) == {"account", "email", "username", "credential"}
    assert not await signs_in(desk, "alice", password_of("alice"))
    assert await signs_in(desk, "alice", NEW_PASSWORD)
    assert await signs_in(desk, "bob", password_of("bob"))
    assert (await desk.read(bob.key)).value.valid_after_s == 0


async def test_what_was_made_in_the_second_of_a_change_does_not_outlive_it(desk: Office) -> None:
    """A-76: times are whole seconds, and changes are not."""
    alice = await desk.new_account()
    now_s = desk.clock.now_s()
    before_s = issue_time_s(alice.value, now_s)
    changed = await desk.services.accounts.set_password(alice.key, NEW_PASSWORD)
    after_s = issue_time_s(changed, now_s)
    assert before_s < changed.valid_after_s <= after_s
    signed_in = await desk.services.sign_in.verify("alice", NEW_PASSWORD, address=ADDRESS)
    assert signed_in.at_s == after_s
    desk.clock.advance(5)
    assert issue_time_s(changed, desk.clock.now_s()) == now_s + 5


async def test_the_address_changes_and_the_old_one_is_free(desk: Office) -> None:
    alice, bob = await desk.new_account("alice"), await desk.new_account("bob")
    accounts = desk.services.accounts
    await accounts.set_email(alice.key, " New@example.org ")
    assert (await desk.read(alice.key)).value.email == "New@example.org"
    assert await accounts.find("alice@example.org") is None
    found = await accounts.find("NEW@example.org")
    assert found is not None
    assert found.key == alice.key
    for taken in ("bob@example.org", "BOB@example.org"):
        with pytest.raises(EmailTaken):
            await accounts.set_email(alice.key, taken)
    await accounts.set_email(bob.key, "alice@example.org")
    await accounts.set_email(alice.key, "NEW@EXAMPLE.ORG")  # the same in other letters
    assert (await desk.read(alice.key)).value.email == "NEW@EXAMPLE.ORG"
    with pytest.raises(BadRequest):
        await accounts.set_email(alice.key, "nowhere")


async def test_of_concurrent_registrations_of_one_address_one_succeeds(desk: Office) -> None:
    """A-92"""
    kept = [await desk.new_account(f"pod{index}") for index in range(5)]

    async def change(each: Versioned[Account]) -> bool:
        try:
            await desk.services.accounts.set_email(each.key, "one@example.org")
        except (EmailTaken, Overloaded):
            return False
        return True

    changed = await asyncio.gather(*map(change, kept))
    assert sum(changed) == 1
    found = await desk.services.accounts.find("one@example.org")
    assert found is not None
    assert found.key == kept[changed.index(True)].key
    emails = await EMAILS.page(desk.store, now_ms=desk.clock.now_ms())
    assert len(emails) == 5


async def test_a_disabled_account_is_of_no_use_until_it_is_enabled(desk: Office) -> None:
    alice = await desk.new_account()
    await fill(desk, alice.key)
    await desk.services.accounts.disable(alice.key)
    with pytest.raises(AccountDisabled):
        await desk.services.sign_in.verify("alice", password_of("alice"), address=ADDRESS)
    with pytest.raises(SignInFailed) as refusal:
        await desk.services.sign_in.verify("alice", "a wrong password", address=ADDRESS)
    assert not isinstance(refusal.value, AccountDisabled)  # whoever guesses is not told
    assert "session" not in await owned_by(desk, alice.key)
    changed = await desk.services.accounts.enable(alice.key)
    assert changed.valid_after_s > alice.value.created_s
    assert await signs_in(desk, "alice", password_of("alice"))


async def test_disabling_an_account_revokes_the_tokens_of_its_pod_of_all_kinds(
    desk: Office,
) -> None:
    """The operator's ``podstead token create`` makes such tokens, also beside a provider (A-34)."""
    alice, bob = await desk.new_account("alice"), await desk.new_account("bob")
    tokens = [
        TokenRecord(name, name, each.value.web_id, 1, None)
        for name, each in (("alice", alice), ("bob", bob))
    ]
    await desk.store.commit(Write(Version("1"), 1, records=tuple(tokens)))
    await desk.services.accounts.disable(alice.key)
    revoked = {each.pod: each.revoked_s is not None for each in await desk.store.list_tokens()}
    assert revoked == {"alice": True, "bob": False}


# --- ending ------------------------------------------------------------------------------------


async def test_an_account_goes_with_its_pod_and_all_that_belongs_to_it(desk: Office) -> None:
    """A-97: and the address is free again."""
    await desk.new_account("bob")
    before = desk.rows()
    alice = await desk.new_account("alice")
    await fill(desk, alice.key)
    assert not await signs_in(desk, "alice", "a wrong password")  # which is noted
    await desk.services.accounts.delete(alice.key, agent=alice.value.web_id)
    # The name stays taken.
    assert desk.rows() == {**before, "entries": before["entries"] + 1}
    path = ResourcePath("/alice/profile/card")
    assert (await desk.store.read_metadata([path]))[path] is None
    assert not await signs_in(desk, "alice", password_of("alice"))
    assert await signs_in(desk, "bob", password_of("bob"))
    again = await desk.services.accounts.create(
        name="alice2", email="alice@example.org", password=NEW_PASSWORD
    )
    assert again.account.email == alice.value.email
    with pytest.raises(NotFound):
        await desk.services.accounts.delete(alice.key)


async def test_the_name_of_a_former_pod_is_given_again_only_if_the_operator_says_so(
    desk: Office,
) -> None:
    """Its WebID is that of another person, whom access rules may still name."""
    accounts = desk.services.accounts
    with pytest.raises(NotFound):
        await accounts.free_name("alice")
    alice = await desk.new_account("alice")
    with pytest.raises(NotFound):
        await accounts.free_name("alice")  # it is not a former one
    await accounts.delete(alice.key, agent=alice.value.web_id)
    for name in ("alice", "Alice"):
        with pytest.raises(PodNameTaken):
            await desk.new_account(name)
    await accounts.free_name("ALICE")
    again = await desk.new_account("alice")
    assert again.value.web_id == alice.value.web_id


async def test_former_names_do_not_lead_to_whoever_is_given_a_name_they_led_to(
    desk: Office,
) -> None:
    alice, store = await desk.new_account("alice"), desk.store
    first, moved = EntryId("former-pod/alicia"), EntryId("former-pod/ali")
    records = [put_tombstone("Alicia", new_name="Alice"), put_tombstone("ali", new_name="bob")]
    await desk.services.records.commit(records)
    await desk.services.accounts.delete(alice.key, agent=alice.value.web_id)
    await desk.services.accounts.free_name("alice")
    await desk.new_account("alice")
    tombstone = await store.read_entry(first, now_ms=0)
    assert tombstone is not None
    assert new_name_of(tombstone) is None
    tombstone = await store.read_entry(moved, now_ms=0)
    assert tombstone is not None
    assert new_name_of(tombstone) == "bob"
    await desk.services.records.commit([put_tombstone("bob", new_name="bert")])
    await desk.services.accounts.free_name("bob")
    tombstone = await store.read_entry(moved, now_ms=0)
    assert tombstone is not None
    assert new_name_of(tombstone) == "bert"


async def test_changes_of_an_account_that_is_gone_change_nothing(desk: Office) -> None:
    alice = await desk.new_account()
    accounts = desk.services.accounts
    await accounts.delete(alice.key)
    before = desk.rows()
    for change in (
        accounts.set_password(alice.key, NEW_PASSWORD),
        accounts.set_email(alice.key, "x@example.org"),
        accounts.disable(alice.key),
        accounts.enable(alice.key),
    ):
        with pytest.raises(NotFound):
            await change
    with pytest.raises(Overloaded):
        await desk.services.credentials.create(alice)
    assert desk.rows() == before
