"""Plans the accounts of people who come from another server.

The records are committed with the pod (:mod:`podstead.idp.account_creation`). The password is known
by its hash only, which is replaced at the first sign-in (:mod:`podstead.idp.sign_in`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from podstead.core.errors import BadRequest
from podstead.idp.account_creation import records_of_new
from podstead.idp.names import check_email, name_key
from podstead.idp.passwords import is_usable_bcrypt
from podstead.idp.records import CREDENTIALS, EMAILS, Account, ClientCredential
from podstead.storage.record_store import RecordKind, RecordStore, secret_key
from podstead.storage.records import Precondition, Record

_ID_BYTES: Final = 16
_MAX_ID_CHARACTERS: Final = 200
_MAX_LABEL_CHARACTERS: Final = 100


class PlannedAccount(msgspec.Struct, frozen=True):
    """An account that does not exist yet, and the parts of it that cannot be imported."""

    account: Account
    records: Sequence[Record]
    preconditions: Sequence[Precondition]
    left_out: Sequence[str]


class ImportedAccounts:
    """Plans accounts. With ``planned``, names of accounts that were planned before are taken."""

    def __init__(self, records: RecordStore, planned: set[tuple[str, str]] | None = None) -> None:
        self._records = records
        self._planned = planned

    async def plan(
        self,
        *,
        pod: str,
        web_id: str,
        email: str | None,
        password_hash: str | None,
        secrets: Sequence[tuple[str, str, str]] = (),
    ) -> PlannedAccount:
        """The account of a new pod. Each of ``secrets`` is the id, the secret and the label of
        client credentials."""
        left_out: list[str] = []
        account = Account(
            account_id=self._records.randomness.token_hex(_ID_BYTES),
            pod=pod,
            web_id=web_id,
            email=await self._email(email, left_out),
            password_hash=_usable(password_hash, pod, left_out),
            created_s=self._records.now_s(),
        )
        records, preconditions = records_of_new(account)
        for credential_id, secret, label in secrets:
            if len(credential_id) > _MAX_ID_CHARACTERS or not credential_id.isprintable():
                left_out.append("Client credentials have an id that cannot be used")
                continue
            if await self._is_taken(CREDENTIALS, credential_id):
                left_out.append(f"The client credentials {credential_id} exist already")
                continue
            credential = ClientCredential(
                credential_id=credential_id,
                name=label[:_MAX_LABEL_CHARACTERS],
                account_id=account.account_id,
                web_id=web_id,
                secret_hash=secret_key(secret),
                created_s=account.created_s,
            )
            records.append(CREDENTIALS.put(credential_id, credential, owner=account.account_id))
            preconditions.append(CREDENTIALS.absent(credential_id))
        return PlannedAccount(account, records, preconditions, left_out)

    async def _email(self, email: str | None, left_out: list[str]) -> str | None:
        if email is None:
            return None
        try:
            address = check_email(email)
        except BadRequest as error:
            left_out.append(f"{error}: the account has no e-mail address")
            return None
        if await self._is_taken(EMAILS, name_key(address)):
            left_out.append("Another account has its e-mail address: it has none")
            return None
        return address

    async def _is_taken(self, kind: RecordKind[Any], key: str) -> bool:
        if self._planned is not None:
            if (kind.kind, key) in self._planned:
                return True
            self._planned.add((kind.kind, key))
        return await self._records.read(kind, key) is not None


def _usable(password_hash: str | None, pod: str, left_out: list[str]) -> str | None:
    if password_hash is not None and is_usable_bcrypt(password_hash):
        return password_hash
    problem = "has no password" if password_hash is None else "has a password hash of another kind"
    left_out.append(
        f"The account {problem}: create a link for its owner with "
        f"'podstead account sign-in-link {pod}'"
    )
    return None
