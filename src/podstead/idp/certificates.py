"""Creates the client certificates of an account, and lists and removes their keys (A-160).

The keys that its profile states act for an account. The server creates a certificate with its key
for the person to download, and keeps neither; only the profile states that the WebID has the key. A
certificate is therefore valid as long as the profile contains the statement, and removing it means
removing the statement, whoever added it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from podstead.authn.web_ids import ProfileSources, WebIdDocuments
from podstead.core.errors import Conflict, NotFound
from podstead.core.media_types import N3, SPARQL_UPDATE
from podstead.idp.audit import Audit, AuditEvent, RequestSource
from podstead.idp.codes import IdpCodes
from podstead.idp.records import Account
from podstead.idp.security_events import event_records
from podstead.idp.token_issuing import ProfilePatcher
from podstead.rdf.rsa_keys import NewKey, OwnKey, key_label, keys_of, removal
from podstead.storage.record_store import RecordStore
from podstead.x509.issuing import IssuedCertificate

MAX_PER_ACCOUNT: Final = 50
VALID_S: Final = 365 * 24 * 3600

IssueCertificate = Callable[[str, int, int], Awaitable[IssuedCertificate]]
"""Creates a certificate for a WebID, valid from now (Unix seconds) for a number of seconds."""


@dataclass(frozen=True, slots=True)
class NewCertificate:
    """A newly created certificate, with the private key that is shown once."""

    issued: IssuedCertificate
    mark: str
    expires_s: int


class CertificateKeys:
    """Creates certificates, and lists and removes the keys in an account's profile."""

    def __init__(
        self,
        *,
        sources: ProfileSources,
        profiles: ProfilePatcher,
        issue: IssueCertificate,
        records: RecordStore,
        audit: Audit,
    ) -> None:
        self._documents = WebIdDocuments[tuple[OwnKey, ...]](
            sources, extract=keys_of, weigh=_weight
        )
        self._profiles = profiles
        self._issue = issue
        self._records = records
        self._audit = audit

    async def of(self, account: Account) -> Sequence[OwnKey]:
        """The keys of the account's WebID. Raises UnusableDocument if the profile cannot be
        read."""
        return await self._documents.stored(account.web_id) or ()

    async def create(self, account: Account, source: RequestSource) -> NewCertificate:
        """Create a certificate, and add its key to the profile.

        Raises UnusableDocument, Conflict if there are too many, RequestRefused if the owner may not
        change the profile.
        """
        if len(await self.of(account)) >= MAX_PER_ACCOUNT:
            raise Conflict(IdpCodes.TOO_MANY_PROFILE_KEYS, number=MAX_PER_ACCOUNT)
        now_s = self._records.now_s()
        issued = await self._issue(account.web_id, now_s, VALID_S)
        new_key = NewKey(account.web_id, issued.key.modulus, issued.key.exponent)
        await self._profiles.patch(account.web_id, new_key.insertion(), N3)
        mark = key_label(issued.key.modulus)
        await self._note(AuditEvent.CERTIFICATE_MADE, account, mark, source)
        return NewCertificate(issued, mark, now_s + VALID_S)

    async def remove(self, account: Account, mark: str, source: RequestSource) -> None:
        """Remove a key from the profile, and with it every certificate that has the key.

        Raises NotFound, UnusableDocument and RequestRefused.
        """
        for key in await self.of(account):
            if key.mark == mark:
                await self._profiles.patch(
                    account.web_id, removal(account.web_id, key), SPARQL_UPDATE
                )
                await self._note(AuditEvent.CERTIFICATE_REMOVED, account, mark, source)
                return
        raise NotFound(IdpCodes.KEY_NOT_IN_PROFILE)

    async def _note(
        self, event: AuditEvent, account: Account, mark: str, source: RequestSource
    ) -> None:
        owner = account.account_id
        await self._records.commit(
            await event_records(self._records, owner, event, source, subject=mark)
        )
        self._audit.note(event, account_id=owner, key=mark)


def _weight(keys: tuple[OwnKey, ...]) -> int:
    return sum(len(key.literal.value) for key in keys)
