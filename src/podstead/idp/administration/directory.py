"""Finds pods and accounts by name, e-mail address or WebID, page by page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from podstead.idp.accounts import Accounts
from podstead.idp.administration.pods import existing_pod
from podstead.idp.records import EMAILS, LAST_SIGN_INS, Account, LastSignIn
from podstead.storage.pods import each_pod
from podstead.storage.record_store import RecordStore
from podstead.storage.records import PodRecord

PAGE_SIZE: Final = 50
_BATCH: Final = 1000


@dataclass(frozen=True, slots=True)
class Listed:
    """A pod with the account that it belongs to, if it has one."""

    pod: PodRecord
    account: Account | None
    used_bytes: int
    last_sign_in: LastSignIn | None


@dataclass(frozen=True, slots=True)
class AccountListing:
    """One page; ``next_after`` is the name to continue after, empty on the last page."""

    rows: Sequence[Listed]
    next_after: str
    total: int
    """The number of pods that were found."""


@dataclass(frozen=True, slots=True)
class Directory:
    """Lists pods and accounts. Every method raises StorageError."""

    records: RecordStore
    accounts: Accounts

    async def search(self, text: str, *, after: str = "", limit: int = PAGE_SIZE) -> AccountListing:
        """The pods whose name, e-mail address or WebID contains ``text``, ignoring case, by
        name."""
        wanted = text.strip().casefold()
        store = self.records.store
        if wanted:
            page, total = await self._matching(wanted, after, limit + 1)
        else:
            page = await store.list_pods(after=after, limit=limit + 1)
            total = (await store.pod_totals(default_quota_bytes=0)).pods
        rows = [await self._listed(pod) for pod in page[:limit]]
        return AccountListing(rows, page[limit - 1].name if len(page) > limit else "", total)

    async def _matching(
        self, wanted: str, after: str, limit: int
    ) -> tuple[Sequence[PodRecord], int]:
        """Up to ``limit`` pods that are found, after ``after``, and the number of all of them."""
        by_email = await self._accounts_by_email(wanted)
        page: list[PodRecord] = []
        total, start = 0, after.casefold()
        async for pod in each_pod(self.records.store):
            name = pod.name.casefold()
            if wanted in name or wanted in pod.owner.casefold() or name in by_email:
                total += 1
                if name > start and len(page) < limit:
                    page.append(pod)
        return page, total

    async def find(self, name: str) -> Listed:
        """The pod of that name. Raises NotFound."""
        return await self._listed(await existing_pod(self.records.store, name))

    async def _listed(self, pod: PodRecord) -> Listed:
        stored = await self.accounts.find(pod.name)
        last = None
        if stored is not None:
            last = await self.records.read(LAST_SIGN_INS, stored.value.account_id)
        return Listed(
            pod=pod,
            account=None if stored is None else stored.value,
            used_bytes=await self.records.store.used_bytes(pod.name),
            last_sign_in=None if last is None else last.value,
        )

    async def _accounts_by_email(self, wanted: str) -> frozenset[str]:
        """The folded names of the pods whose accounts have a matching address."""
        found: set[str] = set()
        after = ""
        while page := await EMAILS.page(
            self.records.store, after=after, now_ms=self.records.now_ms(), limit=_BATCH
        ):
            for each in page:
                if wanted in each.key:
                    stored = await self.accounts.read(each.value.account_id)
                    if stored is not None:
                        found.add(stored.value.pod.casefold())
            after = page[-1].key
        return frozenset(found)
