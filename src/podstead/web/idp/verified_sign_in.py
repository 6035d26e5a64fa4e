"""How does a sign-in continue after a factor sent by a script was verified? (A-118, A-125)

Without an application, the session begins at once. In an interaction, the verified account is
recorded in the interaction, which belongs to one browser, and the script sends that browser to a
URL that reads the record. A request to that URL without the record gets nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from podstead.core.clock import Clock
from podstead.core.errors import AccessDenied
from podstead.idp.accounts import Accounts, issue_time_s
from podstead.idp.authorizations import Authorizations, PendingAuthorization
from podstead.idp.records import Account, VerifiedFactor
from podstead.storage.record_store import Versioned
from podstead.web.browsers import see_other
from podstead.web.codes import WebCodes
from podstead.web.idp.browser_sign_in import BrowserSignIn
from podstead.web.idp.interaction_pages import UID_SEGMENT, resumption
from podstead.web.pages.request import PageRequest
from podstead.web.response import Response


@dataclass(frozen=True, slots=True)
class VerifiedSignIn:
    """Records what was verified and reads it again."""

    accounts: Accounts
    authorizations: Authorizations
    sign_in: BrowserSignIn
    clock: Clock

    async def note(
        self,
        pending: PendingAuthorization,
        account: Versioned[Account],
        *,
        factor: str,
        lasting: bool,
        amr: tuple[str, ...] = (),
        restricted: bool = False,
        sign_in_method: str,
    ) -> None:
        """Record it in the interaction; ``amr`` is what tokens say about it. Raises Overloaded,
        StorageError."""
        verified = VerifiedFactor(
            account.value.account_id,
            issue_time_s(account.value, self.clock.now_ms() // 1000),
            lasting=lasting,
            factor=factor,
            amr=amr,
            restricted=restricted,
            sign_in_method=sign_in_method,
        )
        await self.authorizations.factor_verified(pending, verified)

    async def complete(self, page: PageRequest, *, factor: str) -> Response:
        """Continue the interaction of the URL, in which a factor of this browser was verified.
        Raises AccessDenied without that, NotFound, BadRequest."""
        uid = page.path_segment(UID_SEGMENT)
        verified = await self.authorizations.use_verified(
            await self.authorizations.pending(uid, browser=page.browser), factor
        )
        account = await self.accounts.read(verified.account_id)
        if (
            account is None
            or account.value.disabled
            or verified.verified_s < account.value.valid_after_s
        ):
            raise AccessDenied(WebCodes.ACCOUNT_CHANGED)
        signed_in = await self.sign_in.begin(
            page,
            account,
            lasting=verified.lasting,
            factor=factor,
            amr=verified.amr,
            restricted=verified.restricted,
            sign_in_method=verified.sign_in_method,
        )
        pending = await self.authorizations.pending(uid, browser=page.browser)
        await self.authorizations.signed_in(pending, signed_in.session)
        return see_other(resumption(pending), *signed_in.cookies)
