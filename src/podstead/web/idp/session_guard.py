"""Who requests a page of the provider, and is the request allowed? (A-46, A-57, A-60)

Every request to a page passes the guard. It checks where the request comes from, gives the browser
the secret that its sign-ins are bound to, looks up its session, and turns errors raised later into
a page that says what to do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from msgspec.structs import replace

from podstead.core.clock import Randomness
from podstead.core.errors import BadRequest, NotAuthenticated, RateLimited, RequestRefused
from podstead.core.identifiers import ResourcePath
from podstead.core.identity import Identity
from podstead.idp.audit import RequestSource
from podstead.idp.oauth.authorization import UnusableClient
from podstead.idp.sessions import OpenSession, Sessions
from podstead.idp.token_issuing import AUTHORIZATION_PATH, END_SESSION_PATH
from podstead.web.browsers import check_form_token, check_origin, see_other
from podstead.web.codes import WebCodes
from podstead.web.cors import Sharing
from podstead.web.errors import status_of
from podstead.web.forms import FormSubmission, only, read_query, read_submission
from podstead.web.idp.cookies import Cookies, FlashMessage, Header
from podstead.web.idp.rendering import Renderer, use_address
from podstead.web.idp.sources import request_source
from podstead.web.idp.step_up import SignInAgain
from podstead.web.pod_pages.addresses import NEW_TERMS, local_address, new_terms_url
from podstead.web.pod_pages.languages import use_language_of
from podstead.web.pod_pages.refusals import is_translated, refusal_text
from podstead.web.request import Request
from podstead.web.response import Response
from podstead.web.routes import Access, Endpoint, Route, declared_routes

LOGIN_PATH: Final = "/idp/login"
ACCOUNT_PATH: Final = "/idp/account"
WHOLE_ACCOUNT: Final = f"{ACCOUNT_PATH}?view=all"
"""The provider's own page of an account, also where the pages of pods take its place."""

_WITHOUT_TERMS: Final = frozenset(
    {
        NEW_TERMS,
        LOGIN_PATH,
        AUTHORIZATION_PATH,
        END_SESSION_PATH,
        f"{ACCOUNT_PATH}/delete",
    }
)
"""Pages that people see who have not accepted the terms: above all, they can leave with their
data."""
_SECRET_BYTES: Final = 32
_SAFE: Final = frozenset({"GET", "HEAD"})


class Rule(Enum):
    """The origins from which a state-changing request may come."""

    OURS = "a page of this server, or a client with the cookie that the sign-in began with"
    OURS_OR_NO_COOKIE = "such a page or client, or a client without any cookie of this server"
    ANYWHERE = "anywhere: the request only leads to another one, which is checked again"


@dataclass(frozen=True, slots=True)
class BrowserRequest:
    """A request, with the browser and the session that it comes from."""

    request: Request
    browser: str
    """The secret of the browser; a new one if it had none."""
    open_session: OpenSession | None
    flash_message: FlashMessage | None
    wants_page: bool
    """Whether the response is for a person."""

    @property
    def segment(self) -> str:
        """The last segment of the path."""
        return self.request.path.rpartition("/")[2]

    @property
    def user_agent(self) -> str:
        """The ``User-Agent`` of the browser."""
        return self.request.fields.get(b"user-agent") or ""

    @property
    def source(self) -> RequestSource:
        """The source of the request, recorded with what it changes."""
        return request_source(self.request)

    @property
    def back(self) -> str | None:
        """The page of pods whose form this request comes from, if it names one. Raises
        BadRequest."""
        return local_address(only(read_query(self.request), "next"))

    @property
    def account_address(self) -> str:
        """The page that shows the account after an action. Raises BadRequest."""
        return self.back or WHOLE_ACCOUNT

    def owner(self) -> OpenSession:
        """The session. Raises NotAuthenticated."""
        if self.open_session is None:
            raise NotAuthenticated(WebCodes.SIGN_IN_FIRST)
        return self.open_session

    async def submission(self) -> FormSubmission:
        """The submission of a person who is signed in. Raises NotAuthenticated, WrongFormToken, and
        what :func:`read_submission` raises."""
        owner = self.owner()
        sent = await read_submission(self.request)
        token = self.request.fields.get(b"x-csrf-token") or sent.fields.get("csrf_token")
        check_form_token(token, expected=owner.session.csrf_token)
        return sent


Handler = Callable[[BrowserRequest], Awaitable[Response]]


class SessionGuard:
    """Creates the routes of the provider's pages, each with all the checks."""

    def __init__(
        self,
        *,
        origin: str,
        sessions: Sessions,
        cookies: Cookies,
        renderer: Renderer,
        randomness: Randomness,
        terms_hash: str = "",
    ) -> None:
        """``origin`` is the server's base URL, and ``terms_hash`` that of the terms that people
        must have accepted."""
        self._terms_hash = terms_hash
        self._origin = origin
        self._sessions = sessions
        self._cookies = cookies
        self._renderer = renderer
        self._randomness = randomness

    def routes(self, *pages: object) -> tuple[Route, ...]:
        """The routes that the methods of the pages declare."""
        declared = declared_routes(*pages)
        return tuple(self.route(each.path, **each.options, **each.handlers) for each in declared)

    def route(
        self,
        path: str,
        *,
        rule: Rule = Rule.OURS,
        is_page: bool = True,
        **handlers: Handler,
    ) -> Route:
        """A path with the endpoint for each method; that for GET also answers HEAD.

        ``is_page`` if the response is a page unless the request asks for something else.
        """
        # No page repeats what an application sends, or gives it an answer twice.
        is_shown_again = "GET" in handlers and not path.startswith(AUTHORIZATION_PATH)
        endpoints = {
            method: self._guarded(handler, rule, is_page=is_page, is_shown_again=is_shown_again)
            for method, handler in handlers.items()
        }
        if "GET" in endpoints:
            endpoints["HEAD"] = endpoints["GET"]
        return Route(ResourcePath(path), endpoints, Access.OWN, Sharing.NOBODY)

    def _guarded(
        self, handler: Handler, rule: Rule, *, is_page: bool, is_shown_again: bool
    ) -> Endpoint:
        async def endpoint(request: Request, _: Identity | None) -> Response:
            query = f"?{request.query.decode('latin-1')}" if request.query else ""
            use_address(
                request.path + query if is_shown_again else None,
                is_form_sent=request.method not in _SAFE,
            )
            browser_request = await self._browser_request(
                request, wants_page=_wants_page(request, is_page=is_page)
            )
            try:
                if request.method not in _SAFE:
                    self._check(request, rule)
                response = self._new_terms(browser_request) or await handler(browser_request)
            except (RequestRefused, UnusableClient) as error:
                response = self._refused(error, browser_request)
            response.headers = [*response.headers, *self._cookies_to_set(browser_request)]
            return response if request.method != "HEAD" else replace(response, body=b"")

        return endpoint

    def _new_terms(self, browser_request: BrowserRequest) -> Response | None:
        """Where a person goes first who has not accepted the present terms. Only pages wait for
        that, so the authorization request of an application is answered where it needs none."""
        owner, request = browser_request.open_session, browser_request.request
        if owner is None or self._terms_hash in ("", owner.account.terms_hash):
            return None
        is_page = request.method in _SAFE and browser_request.wants_page
        if not is_page or _is_without_terms(request.path):
            return None
        query = request.query.decode("latin-1")
        return see_other(new_terms_url(request.path + (f"?{query}" if query else "")))

    async def _browser_request(self, request: Request, *, wants_page: bool) -> BrowserRequest:
        use_language_of(request, secure=self._cookies.secure)
        browser = self._cookies.browser(request)
        return BrowserRequest(
            request=request,
            browser=browser or self._randomness.token_hex(_SECRET_BYTES),
            open_session=await self._sessions.read(self._cookies.session(request)),
            flash_message=self._cookies.flash_message(request) if request.method == "GET" else None,
            wants_page=wants_page,
        )

    def _check(self, request: Request, rule: Rule) -> None:
        if rule is Rule.ANYWHERE:
            return
        has_binding = self._cookies.browser(request) is not None or (
            rule is Rule.OURS_OR_NO_COOKIE and not self._cookies.any_of_ours(request)
        )
        check_origin(request, origin=self._origin, has_binding=has_binding)

    def _cookies_to_set(self, browser_request: BrowserRequest) -> list[Header]:
        if browser_request.request.method not in _SAFE:
            return []
        headers = []
        if self._cookies.browser(browser_request.request) is None:
            headers.append(self._cookies.set_browser(browser_request.browser))
        if browser_request.flash_message is not None:
            headers.append(self._cookies.clear_flash_message())
        return headers

    def _refused(
        self, error: RequestRefused | UnusableClient, browser_request: BrowserRequest
    ) -> Response:
        """A page that describes the error; programs get JSON."""
        if isinstance(error, NotAuthenticated) and browser_request.wants_page:
            return see_other(
                LOGIN_PATH, self._cookies.set_flash_message(FlashMessage("sign-in-first"))
            )
        if (
            isinstance(error, SignInAgain)
            and error.again_at is not None
            and browser_request.wants_page
        ):
            return see_other(error.again_at)
        if isinstance(error, UnusableClient):
            return self._problem(400, error, unusable_client=True)
        if not browser_request.wants_page:
            error.args = (refusal_text(error),)  # a script of a page shows it
            raise error
        status, _ = status_of(error)
        retry_after_s = error.retry_after_s if isinstance(error, RateLimited) else None
        return self._problem(status, error, retry_after_s=retry_after_s)

    def _problem(
        self,
        status: int,
        error: RequestRefused | UnusableClient,
        *,
        retry_after_s: int | None = None,
        unusable_client: bool = False,
    ) -> Response:
        headers: list[Header] = []
        if retry_after_s is not None:
            headers.append((b"retry-after", str(retry_after_s).encode("ascii")))
        return self._renderer.page(
            "problem.html",
            status=status,
            headers=headers,
            message=refusal_text(error),
            is_translated=is_translated(error),
            unusable_client=unusable_client,
        )


def _is_without_terms(path: str) -> bool:
    return path in _WITHOUT_TERMS or path.startswith(f"{ACCOUNT_PATH}/export")


def _wants_page(request: Request, *, is_page: bool) -> bool:
    """Whether the client accepts HTML, or reads a page and does not request JSON."""
    accept = (request.fields.get(b"accept") or "").lower()
    if "text/html" in accept:
        return True
    return is_page and request.method in _SAFE and "json" not in accept


def path_segment(browser_request: BrowserRequest, index: int) -> str:
    """A segment of the path, counted from 1."""
    segments = browser_request.request.path.split("/")
    if index >= len(segments):
        raise BadRequest(WebCodes.ADDRESS_TOO_SHORT)
    return segments[index]
