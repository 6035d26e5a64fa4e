"""``/idp/account/certificates``: creating client certificates and removing their keys (A-160).

The keys that its profile states act for an account. The server creates a certificate with its key
for the person to download, and keeps neither; only the profile states that the WebID has the key. A
certificate is therefore valid as long as the profile contains the statement, and removing it means
removing the statement, whoever added it.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from podstead.authn.web_ids import ProfileSources, UnusableDocument, WebIdDocuments
from podstead.core.codes import ErrorCode
from podstead.core.errors import Conflict, NotFound, RemoteUnavailable
from podstead.core.media_types import N3, SPARQL_UPDATE
from podstead.features.webid_tls.certificates import IssuedCertificate, issue_certificate
from podstead.features.webid_tls.keys import OwnKey, key_label, keys_of, removal
from podstead.idp.audit import Audit, EventKind, RequestSource
from podstead.idp.records import Account
from podstead.idp.security_events import event_records
from podstead.idp.sessions import OpenSession
from podstead.idp.token_issuing import ProfilePatcher
from podstead.storage.record_store import RecordStore
from podstead.web.account.collections import Collection, Removed, format_day
from podstead.web.account.event_texts import add_event_texts
from podstead.web.account.security_page import SecuritySection, SecurityView
from podstead.web.browsers import json_response
from podstead.web.pages.addresses import ACCOUNT, AGAIN, AGAIN_REASONS
from podstead.web.pages.cookies import Tone, add_flash_messages
from podstead.web.pages.formats import machine_time
from podstead.web.pages.request import PageRequest
from podstead.web.pages.texts import N_
from podstead.web.response import Response
from podstead.web.routes import route

if TYPE_CHECKING:
    from podstead.app.provider import Provider

AGAIN["certificates"] = f"{ACCOUNT}?view=programs#certificates"
AGAIN_REASONS["certificates"] = N_(
    "Confirm that it is you before you create or remove a certificate. A certificate remains valid "
    "after you sign out."
)
add_flash_messages(
    Tone.DONE,
    certificate_removed=N_(
        "The key has been removed from your profile. Its certificate is no longer valid."
    ),
)

CERTIFICATES_PATH: Final = f"{ACCOUNT}/certificates"
_PASSWORD_BYTES: Final = 8
MAX_PER_ACCOUNT: Final = 50
VALID_S: Final = 365 * 24 * 3600


class CertificateEvents(EventKind):
    """What is recorded about certificates for the operator and the owner of the account."""

    MADE = "client certificate made"
    REMOVED = "key of a client certificate removed"


add_event_texts(
    {
        CertificateEvents.MADE: N_("Client certificate created"),
        CertificateEvents.REMOVED: N_("Key of a client certificate removed"),
    }
)


class CertificateCodes(ErrorCode):
    """What errors of certificates say to people."""

    NOT_IN_PROFILE = "The profile does not state this key; it may have been removed"
    TOO_MANY = "A profile can have at most {number} keys; remove one first"
    PROFILE_UNREADABLE = "Your profile cannot be read, so its keys are not known; repair it first"


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
        records: RecordStore,
        audit: Audit,
    ) -> None:
        self._documents = WebIdDocuments[tuple[OwnKey, ...]](
            sources, extract=keys_of, weigh=_weight
        )
        self._profiles = profiles
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
            raise Conflict(CertificateCodes.TOO_MANY, number=MAX_PER_ACCOUNT)
        now_s = self._records.now_s()
        issued = await asyncio.to_thread(
            issue_certificate, account.web_id, now_s=now_s, valid_s=VALID_S
        )
        await self._profiles.patch(account.web_id, issued.new_key.insertion(), N3)
        mark = key_label(issued.new_key.modulus)
        await self._note(CertificateEvents.MADE, account, mark, source)
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
                await self._note(CertificateEvents.REMOVED, account, mark, source)
                return
        raise NotFound(CertificateCodes.NOT_IN_PROFILE)

    async def _note(
        self, event: CertificateEvents, account: Account, mark: str, source: RequestSource
    ) -> None:
        owner = account.account_id
        await self._records.commit(
            await event_records(self._records, owner, event, source, subject=mark)
        )
        self._audit.note(event, account_id=owner, key=mark)


def _weight(keys: tuple[OwnKey, ...]) -> int:
    return sum(len(key.literal.value) for key in keys)


@dataclass(frozen=True)
class CertificateCollection(Collection[OwnKey]):
    """The keys of client certificates, which the profile names."""

    below = CERTIFICATES_PATH
    name = "keys"
    shown_as = "certificate_keys"
    missing = CertificateCodes.NOT_IN_PROFILE
    purpose = "certificates"
    credential = N_("Client certificate")

    certificates: CertificateKeys

    async def entries(self, owner: OpenSession) -> Sequence[OwnKey]:
        try:
            return await self.certificates.of(owner.account)
        except UnusableDocument as error:
            raise _unreadable() from error

    async def shown(self, owner: OpenSession) -> object:
        try:
            return await self.certificates.of(owner.account)
        except (UnusableDocument, RemoteUnavailable):
            return None

    def key(self, entry: OwnKey) -> str:
        return entry.mark

    def as_json(self, entry: OwnKey) -> dict[str, object]:
        return {"id": entry.mark, "bits": entry.modulus.bit_length()}

    @route("", "POST", is_page=False)
    async def create(self, page: PageRequest) -> Response:
        """Requires a recent sign-in, because a certificate outlasts the session and the password.

        Raises NotAuthenticated, WrongFormToken, SignInAgain, Conflict, and what changing the
        profile raises.
        """
        await page.submission()
        owner = page.recent_owner(self.purpose)
        try:
            new = await self.certificates.create(owner.account, page.source)
        except UnusableDocument as error:
            raise _unreadable() from error
        if not page.wants_page:
            return self._given(new)
        return self._page(page, new)

    async def remove(self, page: PageRequest, key: str) -> Removed:
        owner = page.owner()
        try:
            await self.certificates.remove(owner.account, key, page.source)
        except UnusableDocument as error:
            raise _unreadable() from error
        return Removed("certificate-removed")

    def _given(self, new: NewCertificate) -> Response:
        resource = f"{self.site.base_url}{CERTIFICATES_PATH}/{new.mark}"
        body = {
            "id": new.mark,
            "certificate": new.issued.certificate_pem.decode(),
            "privateKey": new.issued.key_pem.decode(),
            "expires": machine_time(new.expires_s),
            "resource": resource,
        }
        return json_response(201, body, (b"location", resource.encode("ascii")))

    def _page(self, page: PageRequest, new: NewCertificate) -> Response:
        owner = page.owner()
        name = f"{owner.account.pod}-{new.mark}"
        password = self.site.randomness.token_hex(_PASSWORD_BYTES)
        issued = new.issued
        return self.site.account_page(
            page,
            "webid_tls/new_certificate.html",
            name=name,
            mark=new.mark,
            expires_s=new.expires_s,
            pem=_download(issued.key_pem + issued.certificate_pem, "application/x-pem-file"),
            key_store=_download(
                issued.key_store(name=name, password=password), "application/x-pkcs12"
            ),
            password=password,
            base_url=self.site.pods_url,
            back=page.back or f"{ACCOUNT}?view=programs#certificates",
            machine_time=machine_time,
            format_day=format_day,
        )


def _unreadable() -> Conflict:
    return Conflict(CertificateCodes.PROFILE_UNREADABLE)


def _download(content: bytes, media_type: str) -> str:
    """A data URL that contains the certificate, so that the server does not store it."""
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"


SECTION: Final = SecuritySection("pods/webid_tls/section.html", view=SecurityView.PROGRAMS)


def certificate_collection(provider: Provider) -> CertificateCollection:
    """The keys of accounts of the provider."""
    keys = CertificateKeys(
        sources=provider.services.profiles,
        profiles=provider.own_profiles,
        records=provider.records,
        audit=provider.audit,
    )
    return CertificateCollection(provider.pages.site, keys)
