"""``/.pages/sign-in/elsewhere``: signing in with an identity of another server.

The form leads to a page that names the provider and continues there by itself; forms of these pages
may not lead to other servers. Each provider sends people back to an address of its own below
``/.pages/sign-in/callback/``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from podstead.authn.relying_party.providers import ExternalSignInFailed, SignInProblem
from podstead.authn.relying_party.sign_ins import VISIT_S, ExternalSignIns, OwnClient
from podstead.core.identity import Identity
from podstead.core.media_types import JSON_LD
from podstead.web.browsers import see_other
from podstead.web.description_endpoints import public_document
from podstead.web.forms import read_submission
from podstead.web.limits import address_key
from podstead.web.pages import addresses
from podstead.web.pages.addresses import FILES, SHARED, local_address
from podstead.web.pages.cookies import VISIT
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_, _
from podstead.web.pod_pages.sign_in.external_sessions import PeopleByExternalSession
from podstead.web.request import Request
from podstead.web.response import Response
from podstead.web.routes import route

_SECRET_BYTES: Final = 32
MAX_ADDRESS_CHARACTERS: Final = 2048

_TEXTS: Final = {
    SignInProblem.NO_ADDRESS: N_(
        "This is not an address. A WebID looks like https://name.example/profile#me, and a "
        "provider like https://login.example."
    ),
    SignInProblem.NO_PROVIDER: N_(
        "There is no provider at this address, and no WebID that names one. Look for a typing "
        "mistake, or type the address of your provider."
    ),
    SignInProblem.UNREACHABLE: N_(
        "The other server does not answer at the moment. Try again later."
    ),
    SignInProblem.UNUSABLE: N_(
        "This provider cannot sign you in here, because it lacks something that this server needs. "
        "Tell the people who run it, or use another one."
    ),
    SignInProblem.NOT_ACCEPTED: N_(
        "The people who run this server do not accept this provider. Ask them, or use another one."
    ),
    SignInProblem.EXPIRED: N_(
        "This sign-in is over, or it began in another browser or too long ago. Begin again."
    ),
    SignInProblem.DECLINED: N_("The provider did not sign you in. Begin again if you want to."),
    SignInProblem.INVALID: N_(
        "The response of the provider is not valid, so you are not signed in. Begin again, and "
        "tell the people who run the provider if it stays like this."
    ),
    SignInProblem.NOT_TRUSTED: N_(
        "The document of your WebID does not name this provider. Add it there as your provider "
        "(solid:oidcIssuer), or sign in with the one that it names."
    ),
}
_STATUS: Final = {SignInProblem.UNREACHABLE: 503}


@dataclass(frozen=True, slots=True)
class ExternalProviderPage:
    """Leads people to their providers, and signs them in when they come back."""

    site: Site
    visits: ExternalSignIns
    people: PeopleByExternalSession

    @route(addresses.ELSEWHERE, "GET", needs_terms=False)
    async def get(self, page: PageRequest) -> Response:
        """The form by itself. People who are signed in are led on."""
        if page.person is not None:
            return see_other(local_address(page.query_text("next")) or SHARED)
        return self._form(page, local_address(page.query_text("next")))

    @route(addresses.ELSEWHERE, "POST", needs_terms=False)
    async def post(self, page: PageRequest) -> Response:
        """Begin a sign-in. Raises RateLimited."""
        sent = await read_submission(page.request)
        afterwards = local_address(page.query_text("next"))
        typed = sent.text("identity").strip()[:MAX_ADDRESS_CHARACTERS]
        secret = self.site.cookies.secret(page.request, VISIT)
        if secret is None:
            secret = self.site.randomness.token_hex(_SECRET_BYTES)
        try:
            begun = await self.visits.begin(
                typed,
                browser_secret=secret,
                afterwards=afterwards or "",
                client_address=address_key(page.request.client_address),
            )
        except ExternalSignInFailed as failure:
            return self._form(page, afterwards, typed=typed, problem=failure.problem)
        return self.site.page(
            page,
            "sign_in/leaving.html",
            headers=[self.site.cookies.set(VISIT, secret, VISIT_S)],
            url=begun.url,
            provider=urlsplit(begun.issuer).netloc,
        )

    @route(addresses.CALLBACK + "{provider}", "GET", needs_terms=False)
    async def callback(self, page: PageRequest) -> Response:
        """Finish a sign-in. Raises RateLimited, BadRequest."""
        answer = {name: page.query_text(name) for name in page.query}
        secret = self.site.cookies.secret(page.request, VISIT)
        try:
            finished = await self.visits.finish(
                answer, key=_last_segment(page.request), browser_secret=secret
            )
        except ExternalSignInFailed as failure:
            return self._form(page, None, problem=failure.problem)
        before = [] if page.person is None else await self.site.people.sign_out(page.request)
        session = await self.people.begin(finished, user_agent=page.user_agent)
        back = local_address(finished.afterwards) or SHARED
        # People from elsewhere have no files of their own here.
        return see_other(SHARED if back == f"{FILES}/" else back, *before, *session)

    def _form(
        self,
        page: PageRequest,
        afterwards: str | None,
        *,
        typed: str = "",
        problem: SignInProblem | None = None,
    ) -> Response:
        return self.site.page(
            page,
            "sign_in/elsewhere.html",
            status=200 if problem is None else _STATUS.get(problem, 400),
            afterwards=afterwards,
            typed=typed,
            problem=None if problem is None else _(_TEXTS[problem]),
        )


@dataclass(frozen=True, slots=True)
class ClientDocument:
    """``/.pages/client/…``: what this server is to a provider (Solid-OIDC section 5.1)."""

    client: OwnClient

    @route(addresses.CLIENT_DOCUMENTS + "{provider}", "GET", "HEAD")
    async def get(self, request: Request, _: Identity | None) -> Response:
        """The document, which is the same for everybody."""
        content = self.client.document(_last_segment(request))
        return public_document(request, content, media_type=JSON_LD)


def _last_segment(request: Request) -> str:
    return request.path.rpartition("/")[2]
