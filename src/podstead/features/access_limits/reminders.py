"""Reminders of limits that end, and about applications that have not been used for a year."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podstead.features.access_limits.enforcement import PAGE, LimitStore, client_key, token_key
from podstead.web.pages import addresses, request, texts
from podstead.web.sharing.reminders import UNUSED_MS, AccessReminder, ReminderKind, reminder_of_end

if TYPE_CHECKING:
    from podstead.app.services import Services


@dataclass(frozen=True, slots=True)
class LimitReminders:
    """Finds them for a person who is signed in to an account, and those of tokens for owners."""

    limits: LimitStore
    services: Services

    async def of(self, person: request.Person, *, now_ms: int) -> Sequence[AccessReminder]:
        """Raises StorageError."""
        owners = filter(None, (person.account_id, person.web_id))
        ends_ms = {
            each.key: each.value.limit.ends_s * 1000
            for owner in owners
            for each in await self.limits.of_owner(owner)
            if each.value.limit.ends_s is not None
        }
        found = list[AccessReminder]()
        async for keys, name, idle_since_ms in self._let_in(person):
            address = f"{PAGE}/{keys[0]}"
            ends = [ends_ms[key] for key in keys if key in ends_ms]
            reminders = reminder_of_end(max(ends, default=None), name, address, now_ms=now_ms)
            found += reminders
            if idle_since_ms is not None and idle_since_ms < now_ms - UNUSED_MS and not reminders:
                found.append(AccessReminder(ReminderKind.UNUSED, name, address, idle_since_ms))
        if not ends_ms:
            return found
        for pod in person.pods:
            for token in await self.services.store.list_tokens(pod=pod.strip("/")):
                end_ms = ends_ms.get(token_key(token.token_id))
                if token.revoked_s is None:
                    address, name = (
                        f"{addresses.SECURITY}?view=programs",
                        texts._("Token of your pod"),
                    )
                    found += reminder_of_end(end_ms, name, address, now_ms=now_ms)
        return found

    async def _let_in(
        self, person: request.Person
    ) -> AsyncIterator[tuple[Sequence[str], str, int | None]]:
        """What has an account's consent or credentials: the keys of its limits, its name, and since
        when it has not been used, if that is known."""
        provider, account_id = self.services.provider, person.account_id
        if provider is None or account_id is None:
            return
        from podstead.web.account.collections import shown_applications

        connected = await provider.connected_clients.of_account(account_id)
        idle_since_s = {each.client_id: each.idle_since_s for each in connected}
        for application in shown_applications(connected, base_url=self.services.base_url):
            ids = application.client_ids
            keys = [client_key(person.web_id, each) for each in ids]
            yield keys, application.name, max(idle_since_s[each] for each in ids) * 1000
        for credential in await provider.accounts.credentials.of(account_id):
            key = client_key(person.web_id, credential.credential_id)
            yield [key], credential.name or credential.credential_id, None
