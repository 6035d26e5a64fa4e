"""Finds pods and accounts for operators, and does with pods what they ask for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

import msgspec

from podstead.core.errors import NotFound
from podstead.idp.account_creation import PodPlan, PodPlanner, renaming_account
from podstead.idp.accounts import Accounts
from podstead.idp.administration.audit_log import Actions, Operator
from podstead.idp.audit import AuditEvent
from podstead.idp.records import ACCOUNTS, EMAILS, LAST_SIGN_INS, Account, LastSignIn
from podstead.storage import codes, protocol, record_store
from podstead.storage import records as storage_records
from podstead.storage.pods import each_pod

# What operators do with pods, in the console and by command.
#
# ``by`` is the operator who acts in the console, ``None`` for a command; see
# :mod:`podstead.idp.administration.service`.


def quota_text(quota_bytes: int | None) -> str:
    """A quota as commands take and print it."""
    if quota_bytes is None:
        return "default"
    return str(quota_bytes) if quota_bytes else "none"


class RenamedPod(Protocol):
    """A pod before and after it was renamed."""

    @property
    def before(self) -> storage_records.PodRecord: ...

    @property
    def after(self) -> storage_records.PodRecord: ...


RenamedT_co = TypeVar("RenamedT_co", bound=RenamedPod, covariant=True)


class PodRenames(Protocol[RenamedT_co]):
    """Renames pods with everything in them; ``resources.pod_renaming`` has the implementation."""

    async def rename(
        self,
        pod: storage_records.PodRecord,
        name: str,
        *,
        joined: Callable[
            [storage_records.PodRecord],
            tuple[Sequence[storage_records.Record], Sequence[storage_records.Precondition]],
        ],
        progress: Callable[[int, int], None],
    ) -> RenamedT_co:
        """Raises Conflict, QuotaExceeded, StorageError."""


async def existing_pod(pods: protocol.PodRegistry, name: str) -> storage_records.PodRecord:
    """The pod of that name. Raises NotFound, StorageError."""
    pod = await pods.read_pod(name)
    if pod is None:
        raise NotFound(codes.StorageCodes.NO_SUCH_POD, name=name)
    return pod


class PodActions(Actions):
    """Changes pods for an operator. Every method raises NotFound, Overloaded, StorageError."""

    async def create(self, planner: PodPlanner, name: str, by: Operator | None = None) -> PodPlan:
        """Create a pod without an account. Raises BadRequest, Conflict."""
        pod = planner.plan(name)
        acted = self._log.action(AuditEvent.POD_CREATED, by, pod=pod.name)
        write = msgspec.structs.replace(pod.write, records=(*pod.write.records, *acted))
        if not isinstance(await self._records.store.commit(write), storage_records.Committed):
            raise planner.name_taken()
        self._note(AuditEvent.POD_CREATED, by, pod=pod.name)
        return pod

    async def rename(
        self,
        renames: PodRenames[RenamedT_co],
        name: str,
        new_name: str,
        *,
        by: Operator | None = None,
        progress: Callable[[int, int], None] = lambda _, __: None,
    ) -> RenamedT_co:
        """Give a pod another valid name, and its account with it. Raises Conflict,
        QuotaExceeded."""
        pod = await existing_pod(self._records.store, name)
        event, facts = AuditEvent.POD_RENAMED, {"pod": pod.name, "new_name": new_name}
        account = await renaming_account(self._records, pod)

        def joined(
            after: storage_records.PodRecord,
        ) -> tuple[Sequence[storage_records.Record], Sequence[storage_records.Precondition]]:
            of_account = account(after)
            acted = self._log.action(event, by, **facts)
            return [*of_account.records, *acted], of_account.preconditions

        renamed = await renames.rename(pod, new_name, joined=joined, progress=progress)
        self._note(event, by, **facts)
        return renamed

    async def delete(self, name: str, by: Operator | None = None) -> None:
        """Delete a pod that has no account, which the caller has checked. Its name stays reserved.

        This is logged before it is done, because the deletion consists of several writes.
        """
        pod = await existing_pod(self._records.store, name)
        await self._records.commit(self._log.action(AuditEvent.POD_DELETED, by, pod=pod.name))
        removal = storage_records.PodRemoval(
            name=pod.name, version=self._records.new_version(), at_ms=self._records.now_ms()
        )
        if not await self._records.store.remove_pod(removal):
            raise NotFound(codes.StorageCodes.NO_SUCH_POD, name=name)
        self._note(AuditEvent.POD_DELETED, by, pod=pod.name)

    async def set_quota(
        self, name: str, quota_bytes: int | None, by: Operator | None = None
    ) -> None:
        """Give a pod a quota of its own, 0 for none; ``None`` for that of the settings. It applies
        to the next write."""
        pod = await existing_pod(self._records.store, name)
        event, text = AuditEvent.QUOTA_SET, quota_text(quota_bytes)
        acted = self._log.action(event, by, pod=pod.name, quota=text)
        await self._records.commit([storage_records.PodQuota(pod.name, quota_bytes), *acted])
        self._note(event, by, pod=pod.name, quota=text)


PAGE_SIZE: Final = 50


@dataclass(frozen=True, slots=True)
class PodWithAccount:
    """A pod with the account that it belongs to, if it has one."""

    pod: storage_records.PodRecord
    account: Account | None
    used_bytes: int
    last_sign_in: LastSignIn | None


@dataclass(frozen=True, slots=True)
class AccountListing:
    """One page; ``next_after`` is the name to continue after, empty on the last page."""

    rows: Sequence[PodWithAccount]
    next_after: str
    total: int
    """The number of pods that were found."""


@dataclass(frozen=True, slots=True)
class Directory:
    """Lists pods and accounts. Every method raises StorageError."""

    records: record_store.RecordStore
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
    ) -> tuple[Sequence[storage_records.PodRecord], int]:
        """Up to ``limit`` pods that are found, after ``after``, and the number of all of them."""
        by_email = await self._accounts_by_email(wanted)
        page: list[storage_records.PodRecord] = []
        total, start = 0, after.casefold()
        async for pod in each_pod(self.records.store):
            name = pod.name.casefold()
            if wanted in name or wanted in pod.owner.casefold() or name in by_email:
                total += 1
                if name > start and len(page) < limit:
                    page.append(pod)
        return page, total

    async def find(self, name: str) -> PodWithAccount:
        """The pod of that name. Raises NotFound."""
        return await self._listed(await existing_pod(self.records.store, name))

    async def _listed(self, pod: storage_records.PodRecord) -> PodWithAccount:
        stored = await self.accounts.find(pod.name)
        account = last = None
        if stored is not None:
            account = stored.value
            last = await self.records.value(LAST_SIGN_INS, account.account_id)
        return PodWithAccount(pod, account, await self.records.store.used_bytes(pod.name), last)

    async def _accounts_by_email(self, wanted: str) -> frozenset[str]:
        """The folded names of the pods whose accounts have a matching address."""
        found: set[str] = set()
        async for each in self.records.each(EMAILS):
            if wanted in each.key:
                account = await self.records.value(ACCOUNTS, each.value.account_id)
                if account is not None:
                    found.add(account.pod.casefold())
        return frozenset(found)
