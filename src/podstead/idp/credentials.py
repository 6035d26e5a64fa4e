"""Client credentials, with which scripts act as a person without their password (A-67, A-86).

A person creates an id and a secret, and deletes them when they are no longer needed. The secret is
shown once and stored as its SHA-256. Both consist of letters and digits, so that no client can
encode them wrongly in a Basic header (A-62). When they are deleted, the tokens issued for them
become invalid.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from podstead.core.errors import BadRequest, Conflict, NotFound
from podstead.idp.audit import OPERATOR, Audit, AuditEvent, RequestSource
from podstead.idp.codes import IdpCodes
from podstead.idp.records import CREDENTIALS, Account, ClientCredential
from podstead.idp.security_events import event_records
from podstead.storage.pods import revocations, valid_tokens
from podstead.storage.record_store import RecordStore, Versioned, secret_key
from podstead.storage.records import Record, TokenRecord

MAX_PER_ACCOUNT: Final = 100
MAX_NAME_CHARACTERS: Final = 100
_ID_BYTES: Final = 16
_SECRET_BYTES: Final = 32

RecordsOfCredential = Callable[[ClientCredential], Awaitable[Sequence[Record]]]
"""What is stored together with new client credentials."""


@dataclass(frozen=True, slots=True)
class NewCredential:
    """New client credentials, with the secret that is shown once."""

    credential: ClientCredential
    secret: str


class ClientCredentials:
    """Creates, lists and deletes client credentials."""

    def __init__(self, *, records: RecordStore, audit: Audit) -> None:
        self._records = records
        self._audit = audit

    async def create(
        self,
        account: Versioned[Account],
        *,
        name: str = "",
        web_id: str | None = None,
        source: RequestSource = OPERATOR,
        joined: RecordsOfCredential | None = None,
    ) -> NewCredential:
        """Create credentials that act as the account's WebID; ``name`` is a label for people, and
        ``joined`` gives what is stored with them.

        Raises BadRequest for another WebID or a name that is too long, Conflict if there are too
        many, Overloaded if the account has changed meanwhile.
        """
        value = account.value
        if web_id not in (None, value.web_id):
            raise BadRequest(IdpCodes.OTHER_WEB_ID)
        label = name.strip()
        if len(label) > MAX_NAME_CHARACTERS:
            raise BadRequest(IdpCodes.NAME_TOO_LONG, number=MAX_NAME_CHARACTERS)
        if len(await self.of(value.account_id)) >= MAX_PER_ACCOUNT:
            raise Conflict(IdpCodes.TOO_MANY_CREDENTIALS, number=MAX_PER_ACCOUNT)
        now_ms = self._records.now_ms()
        secret = self._records.randomness.token_hex(_SECRET_BYTES)
        credential = ClientCredential(
            credential_id=self._records.randomness.token_hex(_ID_BYTES),
            name=label,
            account_id=value.account_id,
            web_id=value.web_id,
            secret_hash=secret_key(secret),
            created_s=now_ms // 1000,
        )
        record = CREDENTIALS.put(credential.credential_id, credential, owner=value.account_id)
        noted = await self._noting(AuditEvent.CREDENTIAL_CREATED, credential, source)
        further = () if joined is None else await joined(credential)
        await self._records.commit([record, *further, *noted], [account.unchanged])
        self._audit.note(
            AuditEvent.CREDENTIAL_CREATED,
            account_id=value.account_id,
            credential_id=credential.credential_id,
        )
        return NewCredential(credential, secret)

    async def of(self, account_id: str) -> Sequence[ClientCredential]:
        """The client credentials of an account, oldest first."""
        stored = await self._records.of_owner(CREDENTIALS, account_id)
        return sorted((each.value for each in stored), key=lambda each: each.created_s)

    async def delete(
        self, account_id: str, credential_id: str, *, source: RequestSource = OPERATOR
    ) -> None:
        """Delete client credentials; the tokens issued for them become invalid. Raises NotFound if
        the account has no such credentials."""
        stored = await self._records.read(CREDENTIALS, credential_id)
        if stored is None or stored.value.account_id != account_id:
            raise NotFound(IdpCodes.NO_SUCH_CREDENTIALS)
        noted = await self._noting(AuditEvent.CREDENTIAL_DELETED, stored.value, source)
        await self._records.commit([CREDENTIALS.drop(credential_id), *noted], [stored.unchanged])
        self._audit.note(
            AuditEvent.CREDENTIAL_DELETED, account_id=account_id, credential_id=credential_id
        )

    async def _noting(
        self, event: AuditEvent, credential: ClientCredential, source: RequestSource
    ) -> Sequence[Record]:
        return await event_records(
            self._records,
            credential.account_id,
            event,
            source,
            subject=credential.name or credential.credential_id,
        )


# Lists and revokes the simple tokens of a pod.
#
# The owner of the pod creates such tokens, or the operator, and a server without accounts creates
# one with each new pod. They act as the owner of the pod, and a change of the password does not
# affect them.


class PodTokens:
    """Lists and revokes the tokens of an account's pod."""

    def __init__(self, *, records: RecordStore, audit: Audit) -> None:
        self._records = records
        self._audit = audit

    async def of(self, account: Account) -> Sequence[TokenRecord]:
        """The valid tokens, newest first."""
        records = self._records
        return await valid_tokens(records.store, account.pod, now_s=records.now_s())

    async def creation_records(
        self, account: Account, token: TokenRecord, source: RequestSource
    ) -> Sequence[Record]:
        """What is stored with a token that the owner creates, so that they see it later."""
        event = AuditEvent.POD_TOKEN_CREATED
        self._audit.note(event, account_id=account.account_id, pod=token.pod)
        return await event_records(
            self._records, account.account_id, event, source, subject=token.token_id
        )

    async def revoke(self, account: Account, token_id: str, source: RequestSource) -> None:
        """Revoke a token. Raises NotFound."""
        found = [token for token in await self.of(account) if token.token_id == token_id]
        if not found:
            raise NotFound(IdpCodes.NO_SUCH_TOKEN)
        owner, event = account.account_id, AuditEvent.POD_TOKEN_REVOKED
        noted = await event_records(self._records, owner, event, source, subject=token_id)
        await self._records.commit([*revocations(found, now_s=self._records.now_s()), *noted])
        self._audit.note(event, account_id=owner, token=token_id)
