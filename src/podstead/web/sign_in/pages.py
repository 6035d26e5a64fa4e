"""The pages for everybody: signing in and out, here or at another provider, the choice of a
language, the first page of the server, its terms, and the parts that pages are made of.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Protocol
from urllib.parse import urlsplit

from markupsafe import Markup

from podstead.authn.relying_party.providers import ExternalSignInFailed, SignInProblem
from podstead.authn.relying_party.sign_ins import VISIT_S, ExternalSignIns, OwnClient
from podstead.core.errors import BadRequest, NotAuthenticated, NotFound, RateLimited
from podstead.core.identity import Identity
from podstead.core.media_types import JSON_LD
from podstead.web.browsers import FORGET_STORAGE, see_other
from podstead.web.codes import WebCodes
from podstead.web.description_endpoints import public_document
from podstead.web.forms import read_submission
from podstead.web.limits import InvalidCredentialLimit, address_key
from podstead.web.pages import addresses
from podstead.web.pages.cookies import LANGUAGE, VISIT, FlashMessage
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import LANGUAGES, N_, _
from podstead.web.request import Request
from podstead.web.response import HeaderField, Response
from podstead.web.routes import route
from podstead.web.sign_in.people import PeopleByExternalSession


class TokenSignIn(Protocol):
    """Begins sessions by pod tokens."""

    async def __call__(self, token: str, *, user_agent: str) -> Sequence[HeaderField]: ...


"""Begins a session with a pod token; the headers store it. Raises NotAuthenticated, StorageError,
Overloaded."""


@dataclass(frozen=True, slots=True)
class SignInPage:
    """Offers the ways of signing in, and accepts a pod token.

    ``by_token`` is ``None`` without simple tokens. Where people ``have_accounts`` whose sessions
    are valid for these pages, the page is the form of the provider, and the other ways are one link
    away, if it ``has_other_ways``. ``account_provider`` is the issuer of this server's provider at
    another origin, to which ``external`` leads.
    """

    site: Site
    by_token: TokenSignIn | None
    invalid_credentials: InvalidCredentialLimit
    have_accounts: bool = False
    has_other_ways: bool = True
    account_provider: str | None = None
    external: "ExternalProviderPage | None" = None

    @route(addresses.SIGN_IN, "GET", needs_terms=False)
    async def get(self, page: PageRequest) -> Response:
        """The page. People who are signed in are led on, and others straight to the form of this
        server's provider, unless they ask for all ways, as after signing out."""
        afterwards = _afterwards(page)
        if page.person is not None:
            return see_other(afterwards)
        shows_ways = self.has_other_ways and page.query_text("ways") == "all"
        if self.have_accounts and not shows_ways:
            return see_other(addresses.login_url(afterwards))
        if self.external and self.account_provider and not shows_ways and _is_opened(page):
            # The page below has the button for people who have been led there too often.
            with suppress(RateLimited):
                return await self.external.leave(page, self.account_provider, afterwards)
        return self.site.page(
            page,
            "sign_in/sign_in.html",
            afterwards=afterwards,
            action=addresses.sign_in_url(afterwards),
            shows_ways=shows_ways,
            have_accounts=self.have_accounts,
            account_sign_in=addresses.login_url(afterwards),
            account_provider=self.account_provider,
            with_token=self.by_token is not None,
        )

    @route(addresses.SIGN_IN, "POST", needs_terms=False)
    async def post(self, page: PageRequest) -> Response:
        """Sign in by a pod token. Raises RateLimited."""
        sent = await read_submission(page.request)
        afterwards = _afterwards(page)
        if self.by_token is None:
            return see_other(addresses.sign_in_url(afterwards))
        try:
            token = "".join(sent.text("token").split())
            cookies = await self.by_token(token, user_agent=page.user_agent)
        except NotAuthenticated:
            await self.invalid_credentials.count(page.request.client_address)
            notice = self.site.cookies.set_flash_message(FlashMessage("wrong-token"))
            return see_other(addresses.other_ways_url(afterwards), notice)
        return see_other(afterwards, *cookies)

    @route(addresses.SIGN_OUT, "POST", needs_terms=False)
    async def sign_out(self, page: PageRequest) -> Response:
        """End the session. Raises WrongFormToken."""
        await page.form()
        ended = await self.site.people.sign_out(page.request)
        if self.site.forgetting_page is not None:
            return self.site.signed_out(page, *ended)
        at = addresses.SIGN_IN if self.external is None else addresses.other_ways_url(None)
        return self.site.see_other(at, FlashMessage("signed-out"), FORGET_STORAGE, *ended)


def _is_opened(page: PageRequest) -> bool:
    """Whether a person opens the page in a browser, and no program or browser fetches it ahead:
    each look at the form of a provider begins a sign-in. The fields that say that it is a
    navigation do not outlast the service worker. No other site begins one in a frame."""
    fields = page.request.fields
    is_page = "text/html" in (fields.get(b"accept") or "")
    is_browser = fields.get(b"sec-fetch-site") is not None
    is_whole = fields.get(b"sec-fetch-dest") in (None, "document", "empty")
    return is_page and is_browser and is_whole and fields.get(b"sec-purpose") is None


def _afterwards(page: PageRequest) -> str:
    return addresses.local_address(page.query_text("next")) or addresses.HOME


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
            return see_other(addresses.local_address(page.query_text("next")) or addresses.SHARED)
        return self._form(page, addresses.local_address(page.query_text("next")))

    @route(addresses.ELSEWHERE, "POST", needs_terms=False)
    async def post(self, page: PageRequest) -> Response:
        """Begin a sign-in. Raises RateLimited."""
        sent = await read_submission(page.request)
        typed = sent.text("identity").strip()[:MAX_ADDRESS_CHARACTERS]
        return await self.leave(page, typed, addresses.local_address(page.query_text("next")))

    async def leave(self, page: PageRequest, typed: str, afterwards: str | None) -> Response:
        """Begin a sign-in with the provider that ``typed`` means: a page that leads there. A
        redirect would not: browsers follow none to other origins from a form. Raises
        RateLimited."""
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
        back = addresses.local_address(finished.afterwards) or addresses.SHARED
        # People from elsewhere have no files of their own here.
        return see_other(
            addresses.SHARED if back == f"{addresses.FILES}/" else back, *before, *session
        )

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


_KEPT_S: Final = 365 * 24 * 3600


@dataclass(frozen=True, slots=True)
class LanguageChoice:
    """Stores the choice in the browser. It changes nothing else, so it needs no token."""

    site: Site

    @route(addresses.LANGUAGE, "POST", needs_terms=False)
    async def post(self, page: PageRequest) -> Response:
        sent = await read_submission(page.request)
        language = sent.text("language")
        if language not in LANGUAGES:
            raise BadRequest(WebCodes.NO_SUCH_LANGUAGE)
        chosen = self.site.cookies.set(LANGUAGE, language, _KEPT_S)
        asked = sent.text("next")
        if asked == "/":
            return see_other("/", chosen)
        # Also the pages of the identity provider have the choice.
        address = addresses.local_address(asked) or addresses.local_address(asked, below="/idp/")
        return see_other(address or addresses.HOME, chosen)


@dataclass(frozen=True, slots=True)
class FirstPage:
    """Explains the server to visitors, and leads people to their pods.

    ``provider`` is the URL of the identity provider, if there is one, and ``at_provider``
    precedes the addresses of its pages.
    """

    site: Site
    version: str
    provider: str | None
    at_provider: str

    async def get(self, page: PageRequest) -> Response:
        """The page; people who are signed in are led to their own first page."""
        if page.person is not None or self.site.cookies.says_signed_in(page.request):
            return see_other(addresses.HOME)
        return self.site.page(
            page,
            "first_page.html",
            version=self.version,
            provider=self.provider,
            at_provider=self.at_provider,
            registration=self.site.registration.mode,
            operator=self.site.registration.about,
        )


@dataclass(slots=True)
class TermsPage:
    """Shows the terms.

    ``text`` is empty if there are no terms; ``markdown`` makes safe HTML of it.
    """

    site: Site
    text: str
    is_markdown: bool
    markdown: Callable[[str, str, PageRequest], Awaitable[str | None]]
    _rendered: Markup | None = field(init=False, default_factory=lambda: None)

    @route(addresses.TERMS, "GET", needs_terms=False)
    async def get(self, page: PageRequest) -> Response:
        """The page. Raises NotFound, Overloaded."""
        if not self.text:
            raise NotFound(WebCodes.NO_SUCH_PAGE)
        return self.site.page(
            page,
            "terms.html",
            text=self.text,
            rendered=await self._markup(page) if self.is_markdown else None,
            operator=self.site.registration.about,
        )

    async def _markup(self, page: PageRequest) -> Markup | None:
        """The terms as safe HTML, ``None`` if it cannot be made."""
        if self._rendered is None:
            made = await self.markdown(self.text, addresses.TERMS, page)
            if made is not None:
                self._rendered = Markup(made)  # noqa: S704 - sanitised by the renderer
        return self._rendered


@dataclass(frozen=True, slots=True)
class ComponentsPage:
    """Shows the components."""

    site: Site

    @route(addresses.COMPONENTS, "GET")
    async def get(self, page: PageRequest) -> Response:
        """The page, which is the same for everybody."""
        return self.site.page(page, "components_page.html")
