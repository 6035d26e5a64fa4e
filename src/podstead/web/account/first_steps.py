"""What people do first with a new account: which of it is done, and whether Home reminds of it.

What is done follows from what there is: a file, a way back in without the password, something that
is shared. Only that a person wants no reminder is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from podstead.core.identifiers import ResourcePath
from podstead.idp.sign_in_methods import SignInMethod, entry_to_sign_in
from podstead.resources.activity import PodActivity
from podstead.resources.sharing.shared import SharedBy, SharedLists
from podstead.storage.record_store import RecordKind, RecordStore
from podstead.wac.sharing.rules import GranteeKind
from podstead.web.account.home import recent_files
from podstead.web.pages.addresses import is_for_apps
from podstead.web.pages.request import PageRequest, Person

if TYPE_CHECKING:  # loaded for the provider only
    from podstead.idp.sessions import OpenSession
    from podstead.web.sign_in.browser_sign_in import PasswordRecovery


class HiddenReminder(msgspec.Struct, frozen=True):
    """A person has hidden the reminder of the first steps."""

    hidden_s: int


NO_REMINDERS: Final = RecordKind("no-first-steps", HiddenReminder)


class Steps(NamedTuple):
    """What of the first steps is done."""

    has_files: bool
    has_way_back: bool
    shares: bool

    @property
    def done(self) -> int:
        """How many."""
        return sum(self)


@dataclass(frozen=True, slots=True)
class FirstSteps:
    """Finds out what a person who is signed in to an account has done.

    ``sends_mail`` tells whether a confirmed address is a way to a new password.
    """

    records: RecordStore
    activity: PodActivity
    shared: SharedLists
    methods: Sequence[SignInMethod]
    recoveries: Sequence[PasswordRecovery]
    sends_mail: Callable[[], bool]

    async def of(self, page: PageRequest) -> Steps:
        """The steps. Raises NotAuthenticated, StorageError."""
        person = page.signed_in()
        found = [await recent_files(self.activity, page.identity, pod) for pod in person.pods]
        return await self._steps(page, has_files=any(found))

    async def reminder(self, page: PageRequest, *, has_files: bool) -> Steps | None:
        """The steps, unless all are done, or the person wants to see no reminder or has no account.
        Raises NotAuthenticated, StorageError."""
        account_id = page.signed_in().account_id
        if account_id is None or await self.records.read(NO_REMINDERS, account_id) is not None:
            return None
        steps = await self._steps(page, has_files=has_files)
        return None if all(steps) else steps

    async def hide(self, page: PageRequest) -> None:
        """Show no reminder any more. Raises NotAuthenticated, StorageError, Overloaded."""
        account_id = page.owner().account.account_id
        hidden = HiddenReminder(self.records.now_s())
        await self.records.commit([NO_REMINDERS.put(account_id, hidden, owner=account_id)])

    async def _steps(self, page: PageRequest, *, has_files: bool) -> Steps:
        has_way_back = await self._has_way_back(page.owner())
        return Steps(has_files, has_way_back, await self._shares(page.signed_in()))

    async def _has_way_back(self, owner: OpenSession) -> bool:
        """Whether the person could sign in after the loss of what they sign in with now."""
        account = owner.account
        if self.sends_mail() and account.email_verified_s:
            return True
        for each in self.recoveries:
            if await each.is_ready(owner):
                return True
        method = await entry_to_sign_in(self.records, self.methods, account.account_id)
        if method is None or account.password_hash is not None:
            return method is not None
        other = await entry_to_sign_in(
            self.records, self.methods, account.account_id, without=method.entry
        )
        return other is not None

    async def _shares(self, person: Person) -> bool:
        for pod in person.pods:
            shared, _after = await self.shared.shared_by(person.identity, pod)
            if any(not _is_of_new_pod(each, pod) for each in shared):
                return True
        return False


def _is_of_new_pod(shared: SharedBy, pod: ResourcePath) -> bool:
    """Whether the access is what every new pod gives to everyone."""
    resource = shared.resource
    if resource not in {pod, f"{pod}public/"} and not is_for_apps(resource):
        return False
    return all(each.grantee.kind is GranteeKind.EVERYONE for each in shared.entries)
