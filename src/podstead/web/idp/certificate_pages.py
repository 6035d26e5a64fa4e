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
from podstead.web.idp.cookies import Cookies, FlashMessage
from podstead.web.idp.display import format_day, machine_time
from podstead.web.idp.login_page import again_path
from podstead.web.idp.rendering import Renderer
from podstead.web.idp.session_guard import ACCOUNT_PATH, BrowserRequest
from podstead.web.idp.step_up import check_recent
from podstead.web.response import Response
from podstead.web.routes import route

CERTIFICATES_PATH: Final = f"{ACCOUNT_PATH}/certificates"
_PASSWORD_BYTES: Final = 8


class CertificatePages:
    """Creates certificates, and lists and removes keys, for the account page and for programs."""

    def __init__(
        self,
        *,
        certificates: CertificateKeys,
        sessions: Sessions,
        cookies: Cookies,
        renderer: Renderer,
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
    async def list(self, browser_request: BrowserRequest) -> Response:
        """Raises NotAuthenticated, Conflict if the profile cannot be read."""
        return json_response(
            200, {"keys": [_as_json(each) for each in await self._keys(browser_request)]}
        )

    @route(CERTIFICATES_PATH + "/{id}", "GET", is_page=False)
    async def get(self, browser_request: BrowserRequest) -> Response:
        """Raises NotAuthenticated, NotFound, Conflict."""
        for each in await self._keys(browser_request):
            if each.mark == browser_request.segment:
                return json_response(200, _as_json(each))
        raise NotFound(IdpCodes.KEY_NOT_IN_PROFILE)

    @route(CERTIFICATES_PATH, "POST", is_page=False)
    async def create(self, browser_request: BrowserRequest) -> Response:
        """Requires a recent sign-in, because a certificate outlasts the session and the password.

        Raises NotAuthenticated, WrongFormToken, SignInAgain, Conflict, and what changing the
        profile raises.
        """
        owner = await self._recent_owner(browser_request)
        try:
            new = await self._certificates.create(owner.account, browser_request.source)
        except UnusableDocument as error:
            raise _unreadable() from error
        if not browser_request.wants_page:
            return self._given(new)
        return self._page(browser_request, new)

    @route(CERTIFICATES_PATH + "/{id}", "POST", "DELETE", is_page=False)
    async def remove(self, browser_request: BrowserRequest) -> Response:
        """Raises NotAuthenticated, WrongFormToken, SignInAgain, NotFound, Conflict, and what
        changing the profile raises."""
        owner = await self._recent_owner(browser_request)
        try:
            await self._certificates.remove(
                owner.account, browser_request.segment, browser_request.source
            )
        except UnusableDocument as error:
            raise _unreadable() from error
        if browser_request.wants_page:
            return see_other(
                browser_request.account_address,
                self._cookies.set_flash_message(FlashMessage("certificate-removed")),
            )
        return json_response(204, None)

    # --- parts --------------------------------------------------------------------------------

    async def _keys(self, browser_request: BrowserRequest) -> Sequence[OwnKey]:
        try:
            return await self._certificates.of(browser_request.owner().account)
        except UnusableDocument as error:
            raise _unreadable() from error

    async def _recent_owner(self, browser_request: BrowserRequest) -> OpenSession:
        """Raises NotAuthenticated, WrongFormToken, SignInAgain."""
        await browser_request.submission()
        owner = browser_request.owner()
        check_recent(
            self._sessions, owner, again_at=again_path("certificates", browser_request.back)
        )
        return owner

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

    def _page(self, browser_request: BrowserRequest, new: NewCertificate) -> Response:
        owner = browser_request.owner()
        name = f"{owner.account.pod}-{new.mark}"
        password = self._randomness.token_hex(_PASSWORD_BYTES)
        issued = new.issued
        return self._renderer.page_of_person(
            "new_certificate.html",
            owner,
            name=name,
            mark=new.mark,
            expires_s=new.expires_s,
            pem=_download(issued.key_pem + issued.certificate_pem, "application/x-pem-file"),
            key_store=_download(
                issued.key_store(name=name, password=password), "application/x-pkcs12"
            ),
            password=password,
            base_url=self._pods_url,
            back=browser_request.back or f"{ACCOUNT_PATH}?view=programs#certificates",
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
