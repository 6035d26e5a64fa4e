"""Signing in to an account: ``/idp/login`` (A-52)."""

from collections.abc import Sequence
from dataclasses import dataclass

from podstead.idp.sign_in import SignInFailed
from podstead.web.browsers import see_other
from podstead.web.forms import only, read_query, read_submission
from podstead.web.pages import addresses
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.response import Response
from podstead.web.routes import route
from podstead.web.sign_in.browser_sign_in import BrowserSignIn, SecondFactorNeeded, SignInForm


@dataclass(frozen=True, slots=True)
class LoginPage:
    """Shows and accepts the form.

    It ``has_other_ways`` if people can also sign in without an account at this origin.
    """

    site: Site
    sign_in: BrowserSignIn
    forms: Sequence[SignInForm]
    has_other_ways: bool

    @route(addresses.LOGIN, "GET", needs_terms=False)
    async def get(self, page: PageRequest) -> Response:
        """The form. A person who is signed in is sent to their account, unless they have to sign in
        again."""
        purpose, afterwards = _purpose(page), page.back
        session = page.open_session
        if session is not None and purpose is None:
            return see_other(afterwards or addresses.ACCOUNT)
        typed = page.flash_message.subject if page.flash_message else ""
        has_other_ways = self.has_other_ways and purpose is None
        return self.site.sign_in_page(
            page,
            "sign_in/login.html",
            typed=typed or (session.account.pod if session else ""),
            action=_path(purpose, afterwards),
            again=purpose,
            reason=None if purpose is None else addresses.AGAIN_REASONS.get(purpose),
            client=None,
            registration=not self.site.registration.is_closed and purpose is None,
            uid=None,
            forms=self.forms,
            other_ways=addresses.other_ways_url(afterwards) if has_other_ways else None,
            afterwards=afterwards if purpose is None else afterwards or addresses.AGAIN[purpose],
        )

    @route(addresses.LOGIN, "POST", needs_terms=False)
    async def post(self, page: PageRequest) -> Response:
        """Sign in. Raises RateLimited, BadRequest."""
        sent = await read_submission(page.request)
        purpose, afterwards = _purpose(page), page.back
        path = afterwards or (addresses.ACCOUNT if purpose is None else addresses.AGAIN[purpose])
        try:
            signed_in = await self.sign_in.by_password(page, sent, path=path)
        except SecondFactorNeeded as needed:
            return self.sign_in.second_step(page, needed)
        except SignInFailed as error:
            back = _path(purpose, afterwards)
            return self.sign_in.failed(page, sent, error, path=back)
        return self.sign_in.succeeded(page, signed_in, path=path)


def _path(purpose: str | None, afterwards: str | None) -> str:
    """The address of this form."""
    if purpose is not None:
        return addresses.again_url(purpose, afterwards)
    return addresses.login_url(afterwards)


def _purpose(page: PageRequest) -> str | None:
    asked = only(read_query(page.request), "again")
    return asked if asked in addresses.AGAIN else None
