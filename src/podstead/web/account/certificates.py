"""``/idp/account/certificates``: creating client certificates and removing their keys (A-160)."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from podstead.authn.web_ids import UnusableDocument
from podstead.core.errors import Conflict, RemoteUnavailable
from podstead.idp.certificates import CertificateKeys, NewCertificate
from podstead.idp.codes import IdpCodes
from podstead.idp.sessions import OpenSession
from podstead.rdf.rsa_keys import OwnKey
from podstead.web.account.collections import Collection, Removed, format_day, machine_time
from podstead.web.browsers import json_response
from podstead.web.codes import WebCodes
from podstead.web.pages.addresses import ACCOUNT
from podstead.web.pages.request import PageRequest
from podstead.web.response import Response
from podstead.web.routes import route

CERTIFICATES_PATH: Final = f"{ACCOUNT}/certificates"
_PASSWORD_BYTES: Final = 8


@dataclass(frozen=True)
class CertificateCollection(Collection[OwnKey]):
    """The keys of client certificates, which the profile names."""

    below = CERTIFICATES_PATH
    name = "keys"
    shown_as = "certificate_keys"
    missing = IdpCodes.KEY_NOT_IN_PROFILE
    purpose = "certificates"
    credential = "Client certificate"

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
            "new_certificate.html",
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
    return Conflict(WebCodes.OWN_KEYS_UNKNOWN)


def _download(content: bytes, media_type: str) -> str:
    """A data URL that contains the certificate, so that the server does not store it."""
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"
