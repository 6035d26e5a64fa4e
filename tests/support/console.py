"""Operators: accounts that use the console, and the service behind it, as a command has it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec.structs import replace

from podstead.app.accounts import AccountServices, build_accounts
from podstead.app.adapters.audit import LogAudit
from podstead.app.adapters.passwords import Argon2Passwords
from podstead.app.adapters.system import SystemClock, SystemRandomness
from podstead.config import Settings
from podstead.core.clock import Clock
from podstead.idp.records import LAST_SIGN_INS, SESSIONS
from podstead.pods.provision import PodProvisioner
from podstead.storage.record_store import RecordStore
from podstead.storage.sqlite import SqliteStore
from tests.support.accounts import CHEAP
from tests.support.application import Server
from tests.support.browser import Browser
from tests.support.pod_pages import sign_in_to_account

CONSOLE = "/.pages/console/"
ACCOUNTS = "/.pages/console/accounts"
LOG = "/.pages/console/log"


@asynccontextmanager
async def administering(
    settings: Settings, *, clock: Clock | None = None
) -> AsyncIterator[AccountServices]:
    """The services for accounts, in another process than the server's."""
    store = SqliteStore(settings.root)
    await store.open()
    try:
        yield build_accounts(
            settings,
            store=store,
            clock=clock or SystemClock(),
            randomness=SystemRandomness(),
            passwords=Argon2Passwords(CHEAP),
            audit=LogAudit(),
        )
    finally:
        await store.close()


async def promote(settings: Settings, name: str = "alice") -> None:
    """Make an account an operator's, as the command does."""
    async with administering(settings) as services:
        kept = await services.accounts.find(name)
        assert kept is not None
        await services.administration.act("promote", kept.value.account_id)


async def forget_sign_ins(settings: Settings, name: str) -> None:
    """Make it as if nobody had signed in to the account yet."""
    async with administering(settings) as services:
        kept = await services.accounts.find(name)
        assert kept is not None
        await services.records.commit([LAST_SIGN_INS.drop(kept.value.account_id)])


async def sign_in_operator(server: Server, settings: Settings, name: str = "alice") -> Browser:
    """A browser in which an operator is signed in."""
    await promote(settings, name)
    return await sign_in_to_account(server, name)


async def new_pod_alone(settings: Settings, name: str) -> None:
    """A pod as a server without a provider creates it: without an account."""
    async with administering(settings) as services:
        provisioner = PodProvisioner(
            base_url=settings.base_url,
            store=services.records.store,
            tokens=None,
            clock=services.records.clock,
            randomness=services.records.randomness,
        )
        await provisioner.create(name)


async def restrict_sessions(records: RecordStore, account_id: str) -> None:
    """Make the sessions of an account such as begin with a key that the profile names."""
    for kept in await records.of_owner(SESSIONS, account_id):
        restricted = replace(kept.value, restricted=True, sign_in_method="nostr-key/of-a-test")
        await records.commit([SESSIONS.replace(kept, restricted)])
