"""``/idp/login``: sign in without an application (A-52)."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from podstead.idp.sign_in import SignInFailed
from podstead.web.browsers import see_other
from podstead.web.forms import only, read_query, read_submission
from podstead.web.idp.browser_sign_in import BrowserSignIn, SecondFactorNeeded
from podstead.web.idp.rendering import Renderer
from podstead.web.idp.session_guard import ACCOUNT_PATH, LOGIN_PATH, BrowserRequest
from podstead.web.pod_pages.addresses import CONSOLE, local_address
from podstead.web.response import Response
from podstead.web.routes import route

TWO_FACTOR_PATH: Final = f"{ACCOUNT_PATH}/two-factor"

AGAIN: Final = {
    "delete": f"{ACCOUNT_PATH}/delete",
    "credentials": f"{ACCOUNT_PATH}?view=programs#scripts",
    "passkeys": f"{ACCOUNT_PATH}#sign-in",
    "nostr": f"{ACCOUNT_PATH}#nostr-keys",
    "certificates": f"{ACCOUNT_PATH}?view=programs#certificates",
    "export": f"{ACCOUNT_PATH}?view=account#export",
    "issuer": f"{ACCOUNT_PATH}?view=account#you",
    "console": CONSOLE,
    "two-factor": TWO_FACTOR_PATH,
}
"""The paths that signing in again leads to, by its purpose."""


def again_path(purpose: str, afterwards: str | None = None) -> str:
    """The URL for signing in again for a purpose in ``AGAIN``; it may lead to another page of pods
    or of the console ``afterwards``."""
    path = f"{LOGIN_PATH}?again={purpose}"
    return path if afterwards is None else f"{path}&next={quote(afterwards, safe='/')}"


class LoginPage:
    """Shows and accepts the form."""

    def __init__(
        self,
        *,
        sign_in: BrowserSignIn,
        renderer: Renderer,
        registration_open: bool,
        passkeys: bool,
        nostr: bool,
    ) -> None:
        self._sign_in = sign_in
        self._passkeys = passkeys
        self._nostr = nostr
        self._renderer = renderer
        self._registration_open = registration_open

    @route(LOGIN_PATH, "GET")
    async def get(self, browser_request: BrowserRequest) -> Response:
        """The form. A person who is signed in is sent to their account, unless they have to sign in
        again."""
        purpose, page = _purpose(browser_request), _next_page(browser_request)
        session = browser_request.open_session
        if session is not None and purpose is None:
            return see_other(page or ACCOUNT_PATH)
        typed = browser_request.flash_message.typed if browser_request.flash_message else ""
        return self._renderer.page(
            "sign_in.html",
            flash_message=browser_request.flash_message.name
            if browser_request.flash_message
            else None,
            typed=typed or (session.account.pod if session else ""),
            action=_path(purpose, page),
            again=purpose,
            client=None,
            registration=self._registration_open and purpose is None,
            uid=None,
            passkeys=self._passkeys,
            nostr=self._nostr,
            nostr_address=None,
            afterwards=page if purpose is None else page or AGAIN[purpose],
        )

    @route(LOGIN_PATH, "POST")
    async def post(self, browser_request: BrowserRequest) -> Response:
        """Sign in. Raises RateLimited, BadRequest."""
        sent = await read_submission(browser_request.request)
        purpose, page = _purpose(browser_request), _next_page(browser_request)
        path = page or (ACCOUNT_PATH if purpose is None else AGAIN[purpose])
        try:
            signed_in = await self._sign_in.by_password(browser_request, sent, path=path)
        except SecondFactorNeeded as needed:
            return self._sign_in.second_step(browser_request, needed)
        except SignInFailed as error:
            back = _path(purpose, page)
            return self._sign_in.failed(browser_request, sent, error, path=back)
        return self._sign_in.succeeded(browser_request, signed_in, path=path)


def _path(purpose: str | None, page: str | None) -> str:
    """The address of this form."""
    if purpose is not None:
        return again_path(purpose, page)
    return LOGIN_PATH if page is None else f"{LOGIN_PATH}?next={quote(page, safe='/')}"


def _next_page(browser_request: BrowserRequest) -> str | None:
    """The page of pods that the person wanted to see."""
    return local_address(only(read_query(browser_request.request), "next"))


def _purpose(browser_request: BrowserRequest) -> str | None:
    asked = only(read_query(browser_request.request), "again")
    return asked if asked in AGAIN else None
