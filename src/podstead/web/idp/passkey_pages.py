"""``/idp/account/passkeys``: a person views and changes their passkeys (A-124)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from podstead.idp.codes import IdpCodes
from podstead.idp.passkeys.service import Passkeys
from podstead.idp.records import Passkey
from podstead.idp.sessions import OpenSession
from podstead.idp.two_factor.service import TwoFactors
from podstead.storage.record_store import Versioned
from podstead.web.idp.collections import Collection, Removed
from podstead.web.idp.display import machine_time
from podstead.web.pages.addresses import ACCOUNT
from podstead.web.pages.request import PageRequest
from podstead.web.response import Response
from podstead.web.routes import route

_KEY_SEGMENT: Final = 4


@dataclass(frozen=True)
class PasskeyCollection(Collection[Versioned[Passkey]]):
    """The passkeys of the account."""

    below = f"{ACCOUNT}/passkeys"
    name = "passkeys"
    shown_as = "passkeys"
    missing = IdpCodes.NO_SUCH_PASSKEY
    purpose = "passkeys"
    credential = "Passkey"

    passkeys: Passkeys
    two_factors: TwoFactors

    async def entries(self, owner: OpenSession) -> Sequence[Versioned[Passkey]]:
        return await self.passkeys.of_account(owner.account.account_id)

    def key(self, entry: Versioned[Passkey]) -> str:
        return entry.key

    def title(self, entry: Versioned[Passkey]) -> str:
        return entry.value.name

    def as_json(self, entry: Versioned[Passkey]) -> dict[str, object]:
        passkey = entry.value
        used_s, suspected_s = passkey.last_used_s, passkey.suspected_s
        return {
            "id": entry.key,
            "name": passkey.name,
            "created": machine_time(passkey.created_s),
            "lastUsed": None if used_s is None else machine_time(used_s),
            "synced": passkey.backup_eligible,
            "suspected": None if suspected_s is None else machine_time(suspected_s),
        }

    @route("/{id}", "PATCH", is_page=False)
    @route("/{id}/name", "POST")
    async def rename(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, WrongFormToken, NotFound, BadRequest."""
        sent = await page.submission()
        account_id = page.owner().account.account_id
        await self.passkeys.rename(account_id, page.path_segment(_KEY_SEGMENT), sent.text("name"))
        return self.site.done(page, "passkey-renamed")

    async def remove(self, page: PageRequest, key: str) -> Removed:
        owner = page.owner()
        preconditions = await self.two_factors.passkey_removal(owner.account, key)
        method = await self.passkeys.remove(
            owner.owner, key, page.source, preconditions=preconditions
        )
        return Removed("passkey-removed", method)
