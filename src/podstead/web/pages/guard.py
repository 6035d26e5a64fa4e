"""Decides who requests a page, and whether the request is allowed (A-46, A-57, A-60).

Every request to a page passes the guard. It finds the person and the language, checks where a
changing request comes from, gives the browser the secret that its sign-ins are bound to, and turns
errors into pages that say what to do.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from msgspec.structs import replace

from podstead.core.clock import Randomness
from podstead.core.errors import NotAuthenticated, RateLimited, RequestRefused
from podstead.core.identifiers import ResourcePath
from podstead.core.identity import Identity
from podstead.core.media_types import prefers_html
from podstead.web import cors, errors
from podstead.web.browsers import check_origin, see_other
from podstead.web.pages.addresses import CONSOLE, LOGIN, new_terms_url, sign_in_url
from podstead.web.pages.cookies import BROWSER, LANGUAGE, Cookies, FlashMessage
from podstead.web.pages.rendering import PageRenderer, refusal_text
from podstead.web.pages.request import SAFE, PageRequest, People, Person, SignInAgain, Waiting
from podstead.web.pages.texts import LANGUAGES, Texts, preferred_language, texts_in, use_texts
from podstead.web.request import Request
from podstead.web.response import HeaderField, Response
from podstead.web.routes import Access, Endpoint, Route, declared_routes

_ISOLATION: Final = (
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
"""No other origin, and no stored page, which has an origin of its own, may load what a person sees
or hold on to the window: whether something loads would tell that it exists. Applications open the
provider's own pages in windows that they hold on to."""
_SECRET_BYTES: Final = 32

Handler = Callable[[PageRequest], Awaitable[Response]]
WaitingFor = Callable[[Person, str], Awaitable[Waiting]]
"""Gets the person, and the path of the page that is asked for."""


class Rule(Enum):
    """The origins from which a changing request to a page of the provider may come. One to a page
    below ``/.pages`` needs the token of its form, too."""

    OURS = "a page of this server, or a client with the cookie that the sign-in began with"
    OURS_OR_NO_COOKIE = "such a page or client, or a client without any cookie of this server"
    ANYWHERE = "anywhere: the request only leads to another one, which is checked again"


@dataclass(slots=True, kw_only=True, eq=False)
class PageGuard:
    """Creates the routes of the pages of one origin, each with all the checks.

    ``origin`` is the base URL.
    """

    origin: str
    people: People
    cookies: Cookies
    renderer: PageRenderer
    randomness: Randomness
    _waiting: WaitingFor | None = field(default=None, init=False)

    def announce(self, waiting: WaitingFor) -> None:
        """Let every page say what waits for the person."""
        self._waiting = waiting

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
        is_shown_again: bool = True,
        needs_terms: bool = True,
        **handlers: Handler,
    ) -> Route:
        """A path with the endpoint for each method; that for GET also answers HEAD.

        ``is_page`` if the response is a page unless the request asks for something else,
        ``is_shown_again`` if the page can be shown again, and ``needs_terms`` if people must have
        accepted the present terms first.
        """
        endpoints = {
            method: self.endpoint(
                handler,
                rule=rule,
                is_page=is_page,
                is_shown_again=is_shown_again and "GET" in handlers,
                needs_terms=needs_terms,
            )
            for method, handler in handlers.items()
        }
        if "GET" in endpoints:
            endpoints["HEAD"] = endpoints["GET"]
        return Route(ResourcePath(path), endpoints, Access.OWN, cors.CorsPolicy.NOBODY)

    def see_other(self, address: str, message: FlashMessage | None = None) -> Response:
        """A redirect to another page, which shows the message."""
        return see_other(
            address, *([] if message is None else [self.cookies.set_flash_message(message)])
        )

    def endpoint(
        self,
        handler: Handler,
        *,
        rule: Rule = Rule.OURS,
        is_page: bool = True,
        is_shown_again: bool = True,
        needs_terms: bool = True,
    ) -> Endpoint:
        """The endpoint for one method of a page, for a route that others create."""

        async def endpoint(request: Request, _agent: Identity | None) -> Response:
            page = await self._page_request(request, is_page=is_page, is_shown_again=is_shown_again)
            try:
                if request.method not in SAFE:
                    self._check(page, rule)
                first = self._new_terms(page) if needs_terms else None
                response = first or await handler(page)
            except RequestRefused as error:
                response = self._refused(error, page)
            response.headers = [*response.headers, *self._headers(page, response.status)]
            return response if request.method != "HEAD" else replace(response, body=b"")

        return endpoint

    def _new_terms(self, page: PageRequest) -> Response | None:
        """Where a person goes first who has not accepted the present terms. Only pages wait for
        that: a form that has been filled in is not lost, and the authorization request of an
        application is answered where it needs no page."""
        if page.person is None or not page.person.has_new_terms:
            return None
        if page.request.method not in SAFE or not page.wants_page:
            return None
        return see_other(new_terms_url(page.address))

    async def _page_request(
        self, request: Request, *, is_page: bool, is_shown_again: bool
    ) -> PageRequest:
        texts = self._texts(request)
        person = await self.people.person(request)
        accept = request.fields.get(b"accept") or ""
        is_safe = request.method in SAFE
        page = PageRequest(
            request=request,
            person=person,
            texts=texts,
            flash_message=self.cookies.flash_message(request) if request.method == "GET" else None,
            wants_page=prefers_html(accept) or (is_page and is_safe and "json" not in accept),
            is_shown_again=is_shown_again,
        )
        if page.is_of_provider:
            page.browser = self.cookies.secret(request, BROWSER) or (
                self.randomness.token_hex(_SECRET_BYTES)
            )
        elif self._waiting is not None and person is not None and person.pods:
            # Scripts, pictures and streams of pages need not know.
            is_shown = request.method == "GET" and prefers_html(accept)
            if is_shown and not request.path.startswith(CONSOLE):
                page.waiting = await self._waiting(person, request.path)
        return page

    def _texts(self, request: Request) -> Texts:
        """The texts in the language that the person has chosen, or that the browser prefers; they
        are used for the rest of the request."""
        chosen = self.cookies.value(request, LANGUAGE)
        if chosen is None or chosen not in LANGUAGES:
            chosen = preferred_language(request.fields.get(b"accept-language"))
        texts = texts_in(chosen)
        use_texts(texts)
        return texts

    def _check(self, page: PageRequest, rule: Rule) -> None:
        """Raises CrossSiteRequest."""
        if rule is Rule.ANYWHERE:
            return
        has_binding = not page.is_of_provider
        if page.is_of_provider:
            cookies, request = self.cookies, page.request
            has_binding = cookies.secret(request, BROWSER) is not None or (
                rule is Rule.OURS_OR_NO_COOKIE and not cookies.any_of_account(request)
            )
        check_origin(page.request, origin=self.origin, has_binding=has_binding)

    def _headers(self, page: PageRequest, status: int) -> Sequence[HeaderField]:
        headers: list[HeaderField] = []
        if not page.is_of_provider:
            headers += _ISOLATION
        elif page.request.method in SAFE and (self.cookies.secret(page.request, BROWSER) is None):
            headers.append(self.cookies.set(BROWSER, page.browser))
        if page.flash_message is not None and status == 200:
            headers.append(self.cookies.clear_flash_message())
        return headers

    def _refused(self, error: RequestRefused, page: PageRequest) -> Response:
        """A page that describes the error and names the next step; programs get JSON."""
        if not page.wants_page:
            if page.is_of_provider:
                error.args = (refusal_text(error),)  # a script of a page shows it
            raise error
        if isinstance(error, SignInAgain) and error.again_at is not None:
            return see_other(error.again_at)
        if isinstance(error, NotAuthenticated):
            if page.is_of_provider:
                return self.see_other(LOGIN, FlashMessage("sign-in-first"))
            if page.request.method in SAFE:
                return self.see_other(sign_in_url(page.address), FlashMessage("sign-in-first"))
        status, reason = errors.status_of(error)
        headers: list[HeaderField] = []
        if isinstance(error, RateLimited):
            headers.append((b"retry-after", str(error.retry_after_s).encode("ascii")))
        return self.renderer.refusal(page, error, status, reason, headers)
