"""Makes the records of an authorization: a grant, and a code for its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from podstead.idp.consents import Consents
from podstead.idp.interactions import granted_scopes, remembered_scopes
from podstead.idp.records import (
    CODES,
    GRANTS,
    Account,
    AuthorizationCode,
    Client,
    Consent,
    Grant,
    Interaction,
)
from podstead.idp.redirects import redirect_host
from podstead.idp.token_minting import GRANT_S
from podstead.storage.record_store import RecordStore, secret_key
from podstead.storage.records import Record

CODE_S: Final = 120
USED_CODE_S: Final = 3600
"""How long a used code is kept, so that a second use is noticed."""
SHORT_GRANT_S: Final = 2 * 3600
"""How long a grant without refresh tokens is kept: longer than its last access token lives."""
MAX_GRANTS: Final = 400
"""How many grants an account has at most; those not used for the longest time are removed."""
_ID_BYTES: Final = 16


class Grants:
    """Creates the records of new grants."""

    def __init__(self, records: RecordStore, consents: Consents) -> None:
        self._records = records
        self._consents = consents

    async def issued(
        self,
        interaction: Interaction,
        client: Client,
        account: Account,
        *,
        session_id: str,
        code: str,
    ) -> Sequence[Record]:
        """The grant of a finished interaction, its code, and the consent to remember; and what is
        removed to make room for them."""
        request, owner = interaction.request, account.account_id
        before = await self._consents.find(owner, client, request.redirect_uri)
        now_ms = self._records.now_ms()
        now_s = now_ms // 1000
        scopes = granted_scopes(interaction, before)
        grant = Grant(
            grant_id=self._records.randomness.token_hex(_ID_BYTES),
            account_id=owner,
            web_id=account.web_id,
            client_id=client.client_id,
            client_name=client.client_name,
            scopes=scopes,
            authenticated_s=interaction.authenticated_s or now_s,
            session_id=session_id,
            began_s=now_s,
            last_used_s=now_s,
            nonce=request.nonce,
            amr=interaction.amr,
            sign_in_method=interaction.sign_in_method,
        )
        lasts_s = GRANT_S if "offline_access" in scopes else SHORT_GRANT_S
        consent = Consent(
            client_id=client.client_id,
            client_name=client.client_name,
            redirect_host=redirect_host(request.redirect_uri),
            scopes=remembered_scopes(interaction, before, scopes),
            given_s=before.given_s if before else now_s,
            redirect_uri=request.redirect_uri,
            last_used_s=now_s,
        )
        issued_code = AuthorizationCode(
            grant_id=grant.grant_id,
            client_id=client.client_id,
            redirect_uri=request.redirect_uri,
            code_challenge=request.code_challenge,
            expires_s=now_s + CODE_S,
            dpop_jkt=request.dpop_jkt,
        )
        code_expires_ms = now_ms + USED_CODE_S * 1000
        return [
            GRANTS.put(grant.grant_id, grant, owner=owner, expires_ms=now_ms + lasts_s * 1000),
            CODES.put(secret_key(code), issued_code, owner=owner, expires_ms=code_expires_ms),
            *await self._consents.changes(owner, client, request.redirect_uri, consent),
            *await self._surplus(owner),
        ]

    async def _surplus(self, account_id: str) -> list[Record]:
        """The grants to remove so that an account has at most :data:`MAX_GRANTS`: an application
        may get one every time its page is loaded."""
        grants = await self._records.of_owner(GRANTS, account_id, limit=2 * MAX_GRANTS)
        oldest = sorted(grants, key=lambda each: each.value.last_used_s)
        return [GRANTS.drop(each.key) for each in oldest[: max(0, len(grants) + 1 - MAX_GRANTS)]]
