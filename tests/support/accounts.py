"""Accounts of a store in this process, with cheap hashes and a clock that is moved."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from podstead.app.accounts import AccountServices, build_accounts
from podstead.app.adapters.passwords import Argon2Passwords, HashCost
from podstead.app.adapters.system import SystemRandomness
from podstead.config import Settings
from podstead.idp.passwords import PasswordHasher
from podstead.idp.records import Account
from podstead.idp.sign_in import FailureLimits
from podstead.storage.layout import RootLayout
from podstead.storage.record_store import Versioned
from podstead.storage.root import prepare_root
from podstead.storage.sqlite import SqliteStore
from tests.support.clock import FakeClock

CHEAP = HashCost(memory_kib=8, passes=1)
BASE = "http://localhost:3000"
ADDRESS = "192.0.2.1"


@dataclass
class Office:
    """The services of one worker, and its store."""

    store: SqliteStore
    services: AccountServices
    clock: FakeClock
    root: Path
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    async def new_account(self, name: str = "alice") -> Versioned[Account]:
        """An account with the address and password that belong to the name."""
        made = await self.services.accounts.create(
            name=name, email=f"{name}@example.org", password=password_of(name)
        )
        return await self.read(made.account.account_id)

    async def read(self, account_id: str) -> Versioned[Account]:
        kept = await self.services.accounts.read(account_id)
        assert kept is not None
        return kept

    def rows(self) -> Mapping[str, int]:
        """How many rows each table of the database has, but for the log of changes.

        To it belong the access rules that went: those who are told of that are judged by them, for
        a day (N-18).
        """
        connection = apsw.Connection(str(RootLayout(self.root).database))
        try:
            tables = [
                name
                for (name,) in connection.execute(
                    "SELECT name FROM sqlite_schema WHERE type = 'table'"
                )
                if name not in ("changes", "deleted_acls", "counters")
                and not name.startswith("sqlite")
            ]
            return {
                name: connection.execute(f'SELECT count(*) FROM "{name}"').get for name in tables
            }
        finally:
            connection.close()


def password_of(name: str) -> str:
    return f"the password of {name}"


@asynccontextmanager
async def office(
    root: Path,
    *,
    clock: FakeClock | None = None,
    passwords: PasswordHasher | None = None,
    limits: FailureLimits | None = None,
) -> AsyncIterator[Office]:
    """Open the services of one worker."""
    prepare_root(root)
    clock = clock or FakeClock()
    store = SqliteStore(root)
    await store.open()
    settings = Settings(root=root, base_url=BASE, idp=True)
    services = build_accounts(
        settings,
        store=store,
        clock=clock,
        randomness=SystemRandomness(),
        passwords=passwords or Argon2Passwords(CHEAP),
        limits=limits,
    )
    try:
        yield Office(store, services, clock, root)
    finally:
        await store.close()
