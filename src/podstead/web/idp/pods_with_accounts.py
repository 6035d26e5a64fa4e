"""What does ``POST /.pods`` create at an identity provider? A pod and its account (A-90)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from podstead.idp import token_issuing
from podstead.idp.accounts import Accounts
from podstead.storage.invitations import Admission
from podstead.web.pages.request import request_source
from podstead.web.registration import CreatedPod
from podstead.web.request import Request


@dataclass(frozen=True, slots=True)
class PodsWithAccounts:
    """Creates pods whose owners sign in; their tokens come from the provider (A-34)."""

    accounts: Accounts
    issuer: str

    async def make(
        self,
        sent: Mapping[str, object],
        request: Request,
        *,
        admitted: Admission | None,
        terms_hash: str,
    ) -> CreatedPod:
        """Create a pod and an account with the name, e-mail address and password sent."""
        made = await self.accounts.create(
            name=sent.get("name"),
            email=sent.get("email"),
            password=sent.get("password"),
            source=request_source(request),
            admitted=admitted,
            terms_hash=terms_hash,
        )
        return CreatedPod(
            name=made.account.pod,
            web_id=made.account.web_id,
            pod_uri=made.pod_uri,
            issuer=self.issuer,
            login_url=f"{self.issuer}{token_issuing.AUTHORIZATION_PATH}",
        )
