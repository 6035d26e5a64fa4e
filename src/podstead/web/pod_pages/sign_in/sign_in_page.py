"""``/.pages/sign-in`` and ``/.pages/sign-out``: the session in which people use the pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from podstead.core.errors import NotAuthenticated
from podstead.web.browsers import see_other
from podstead.web.forms import read_submission
from podstead.web.limits import InvalidCredentialLimit
from podstead.web.pages import addresses
from podstead.web.pages.addresses import FILES, HOME, SIGN_IN, local_address, sign_in_url
from podstead.web.pages.cookies import Notice
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.response import HeaderField, Response
from podstead.web.routes import route

AFTERWARDS: Final = f"{FILES}/"
"""Where people are led who have asked for no page."""


class TokenSignIn(Protocol):
    """Begins sessions by pod tokens."""

    async def __call__(self, token: str, *, user_agent: str) -> Sequence[HeaderField]: ...


"""Begins a session with a pod token; the headers store it. Raises NotAuthenticated, StorageError,
Overloaded."""


@dataclass(frozen=True, slots=True)
class SignInPage:
    """Offers the ways of signing in, and accepts a pod token.

    ``by_token`` is ``None`` without simple tokens. ``account_sign_in`` is the address of
    the provider's sign-in page, if its sessions are valid for these pages; ``account_provider``
    is the issuer of this server's provider at another origin.
    """

    site: Site
    by_token: TokenSignIn | None
    account_sign_in: str | None
    invalid_credentials: InvalidCredentialLimit
    account_provider: str | None = None

    @route(addresses.SIGN_IN, "GET", needs_terms=False)
    async def get(self, page: PageRequest) -> Response:
        """The page. People who are signed in are led on."""
        afterwards = _afterwards(page)
        if page.person is not None:
            return see_other(afterwards)
        return self.site.page(
            page,
            "sign_in/sign_in.html",
            afterwards=afterwards,
            action=sign_in_url(afterwards),
            account_sign_in=self.account_sign_in,
            account_provider=self.account_provider,
            with_token=self.by_token is not None,
        )

    @route(addresses.SIGN_IN, "POST", needs_terms=False)
    async def post(self, page: PageRequest) -> Response:
        """Sign in by a pod token. Raises RateLimited."""
        sent = await read_submission(page.request)
        afterwards = _afterwards(page)
        if self.by_token is None:
            return see_other(sign_in_url(afterwards))
        try:
            token = "".join(sent.text("token").split())
            cookies = await self.by_token(token, user_agent=page.user_agent)
        except NotAuthenticated:
            await self.invalid_credentials.count(page.request.client_address)
            notice = self.site.cookies.set_notice(Notice("wrong-token"))
            return see_other(sign_in_url(afterwards), notice)
        return see_other(afterwards, *cookies)

    @route(addresses.SIGN_OUT, "POST", needs_terms=False)
    async def sign_out(self, page: PageRequest) -> Response:
        """End the session. Raises WrongFormToken."""
        await page.form()
        ended = await self.site.people.sign_out(page.request)
        return self.site.see_other(SIGN_IN, Notice("signed-out"), *ended)


def _afterwards(page: PageRequest) -> str:
    asked = local_address(page.query_text("next"))
    return AFTERWARDS if asked in (None, HOME) or asked is None else asked
