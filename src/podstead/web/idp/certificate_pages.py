"""``/idp/account/certificates``: creating client certificates and removing their keys (A-160)."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Final

from podstead.authn.web_ids import UnusableDocument
from podstead.core.clock import Randomness
from podstead.core.errors import Conflict, NotFound
from podstead.idp.certificates import CertificateKeys, NewCertificate
from podstead.idp.codes import IdpCodes
from podstead.idp.sessions import OpenSession, Sessions
from podstead.rdf.rsa_keys import OwnKey
from podstead.web.browsers import json_response, see_other
from podstead.web.codes import WebCodes
from podstead.web.idp.display import format_day, machine_time
from podstead.web.pages.addresses import ACCOUNT, SECURITY
from podstead.web.pages.cookies import Cookies, Notice
from podstead.web.pages.rendering import PageRenderer
from podstead.web.pages.request import PageRequest
from podstead.web.response import Response
from podstead.web.routes import route

CERTIFICATES_PATH: Final = f"{ACCOUNT}/certificates"
_PASSWORD_BYTES: Final = 8


class CertificatePages:
    """Creates certificates, and lists and removes keys, for the account page and for programs."""

    def __init__(
        self,
        *,
        certificates: CertificateKeys,
        sessions: Sessions,
        cookies: Cookies,
        renderer: PageRenderer,
        randomness: Randomness,
        base_url: str,
        pods_url: str,
    ) -> None:
        self._certificates = certificates
        self._sessions = sessions
        self._cookies = cookies
        self._renderer = renderer
        self._randomness = randomness
        self._base_url = base_url
        self._pods_url = pods_url

    @route(CERTIFICATES_PATH, "GET", is_page=False)
    async def list(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, Conflict if the profile cannot be read."""
        return json_response(200, {"keys": [_as_json(each) for each in await self._keys(page)]})

    @route(CERTIFICATES_PATH + "/{id}", "GET", is_page=False)
    async def get(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, NotFound, Conflict."""
        for each in await self._keys(page):
            if each.mark == page.segment:
                return json_response(200, _as_json(each))
        raise NotFound(IdpCodes.KEY_NOT_IN_PROFILE)

    @route(CERTIFICATES_PATH, "POST", is_page=False)
    async def create(self, page: PageRequest) -> Response:
        """Requires a recent sign-in, because a certificate outlasts the session and the password.

        Raises NotAuthenticated, WrongFormToken, SignInAgain, Conflict, and what changing the
        profile raises.
        """
        owner = await self._recent_owner(page)
        try:
            new = await self._certificates.create(owner.account, page.source)
        except UnusableDocument as error:
            raise _unreadable() from error
        if not page.wants_page:
            return self._given(new)
        return self._page(page, new)

    @route(CERTIFICATES_PATH + "/{id}", "POST", "DELETE", is_page=False)
    async def remove(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, WrongFormToken, SignInAgain, NotFound, Conflict, and what
        changing the profile raises."""
        owner = await self._recent_owner(page)
        try:
            await self._certificates.remove(owner.account, page.segment, page.source)
        except UnusableDocument as error:
            raise _unreadable() from error
        if page.wants_page:
            return see_other(
                page.back or SECURITY,
                self._cookies.set_notice(Notice("certificate-removed")),
            )
        return json_response(204, None)

    # --- parts --------------------------------------------------------------------------------

    async def _keys(self, page: PageRequest) -> Sequence[OwnKey]:
        try:
            return await self._certificates.of(page.owner().account)
        except UnusableDocument as error:
            raise _unreadable() from error

    async def _recent_owner(self, page: PageRequest) -> OpenSession:
        """Raises NotAuthenticated, WrongFormToken, SignInAgain."""
        await page.submission()
        return page.recent_owner("certificates")

    def _given(self, new: NewCertificate) -> Response:
        resource = f"{self._base_url}{CERTIFICATES_PATH}/{new.mark}"
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
        password = self._randomness.token_hex(_PASSWORD_BYTES)
        issued = new.issued
        return self._renderer.account_page(
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
            base_url=self._pods_url,
            back=page.back or f"{ACCOUNT}?view=programs#certificates",
            machine_time=machine_time,
            format_day=format_day,
        )


def _unreadable() -> Conflict:
    return Conflict(WebCodes.OWN_KEYS_UNKNOWN)


def _download(content: bytes, media_type: str) -> str:
    """A data URL that contains the certificate, so that the server does not store it."""
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"


def _as_json(key: OwnKey) -> dict[str, object]:
    return {"id": key.mark, "bits": key.modulus.bit_length()}
