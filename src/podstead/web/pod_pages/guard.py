"""Who requests a page, and is the request allowed?

Every request to a page passes the guard. It finds the person and the language, checks where a
changing request comes from, and turns errors into pages that say what to do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from msgspec.structs import replace

from podstead.core.errors import NotAuthenticated, RateLimited, RequestRefused
from podstead.core.identifiers import ResourcePath
from podstead.core.identity import Identity
from podstead.core.media_types import prefers_html
from podstead.web.browsers import CookieJar, check_origin, see_other
from podstead.web.cors import Sharing
from podstead.web.errors import status_of
from podstead.web.pod_pages.addresses import (
    ASSETS,
    FORGOT,
    LANGUAGE,
    LINK,
    SIGN_IN,
    SIGN_OUT,
    TERMS,
    VERIFY,
    new_terms_url,
    sign_in_url,
    target_or_none,
)
from podstead.web.pod_pages.languages import use_language_of
from podstead.web.pod_pages.notices import Notice, clear_notice, read_notice, set_notice
from podstead.web.pod_pages.page_request import PageRequest
from podstead.web.pod_pages.people import People, Person
from podstead.web.pod_pages.problems import further_text, problem
from podstead.web.pod_pages.refusals import is_translated
from podstead.web.pod_pages.rendering import PageRenderer
from podstead.web.request import Request
from podstead.web.response import HeaderField, Response
from podstead.web.routes import Access, Endpoint, Route, declared_routes

_ISOLATION: Final = (
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
"""No other origin, and no stored page, which has an origin of its own, may load what a person sees
or hold on to the window: whether something loads would tell that it exists."""
_SAFE: Final = frozenset({"GET", "HEAD"})

_WITHOUT_TERMS: Final = (TERMS, SIGN_OUT, SIGN_IN, LINK, VERIFY, FORGOT, LANGUAGE, ASSETS)
"""Pages that people see who have not accepted the terms."""

Handler = Callable[[PageRequest], Awaitable[Response]]
WaitingFor = Callable[[Person], Awaitable[int]]


class PageGuard:
    """Creates the routes of the pages, each with all the checks."""

    def __init__(
        self, *, origin: str, people: People, cookies: CookieJar, renderer: PageRenderer
    ) -> None:
        """``origin`` is the server's base URL."""
        self._origin = origin
        self._people = people
        self._cookies = cookies
        self._renderer = renderer
        self._waiting: WaitingFor | None = None

    def announce(self, waiting: WaitingFor) -> None:
        """Let every page say how many requests for access wait for the person."""
        self._waiting = waiting

    def routes(self, *pages: object) -> tuple[Route, ...]:
        """The routes that the methods of the pages declare."""
        return tuple(self.route(each.path, **each.handlers) for each in declared_routes(*pages))

    def route(self, path: str, **handlers: Handler) -> Route:
        """A path with the endpoint for each method; that for GET also answers HEAD."""
        endpoints = {method: self.endpoint(handler) for method, handler in handlers.items()}
        if "GET" in endpoints:
            endpoints["HEAD"] = endpoints["GET"]
        return Route(ResourcePath(path), endpoints, Access.OWN, Sharing.NOBODY)

    def see_other(self, address: str, notice: Notice | None = None) -> Response:
        """A redirect to another page, which shows the notice."""
        headers: Sequence[HeaderField] = ()
        if notice is not None:
            headers = [set_notice(self._cookies, notice)]
        return see_other(address, *headers)

    def endpoint(self, handler: Handler) -> Endpoint:
        """The endpoint for one method of a page, for a route that others create."""

        async def endpoint(request: Request, _agent: Identity | None) -> Response:
            page = await self._page_request(request)
            try:
                if request.method not in _SAFE:
                    check_origin(request, origin=self._origin, has_binding=True)
                response = self._new_terms(page) or await handler(page)
            except RequestRefused as error:
                response = self._refused(error, page)
            response.headers = [*response.headers, *_ISOLATION]
            if page.notice is not None and response.status == 200:
                response.headers.append(clear_notice(self._cookies))
            return response if request.method != "HEAD" else replace(response, body=b"")

        return endpoint

    def _new_terms(self, page: PageRequest) -> Response | None:
        """Where a person goes first who has not accepted the present terms. Only pages wait for
        that: a form that has been filled in is not lost."""
        if page.person is None or not page.person.has_new_terms:
            return None
        is_free = page.request.path.startswith(_WITHOUT_TERMS)
        if is_free or page.request.method not in _SAFE or not page.wants_page:
            return None
        return see_other(new_terms_url(page.address))

    async def _page_request(self, request: Request) -> PageRequest:
        texts = use_language_of(request, secure=self._cookies.secure)
        accept = request.fields.get(b"accept")
        person = await self._people.person(request)
        waiting = 0
        # Scripts, pictures and streams of pages need not know.
        is_shown = request.method == "GET" and prefers_html(accept)
        if is_shown and self._waiting is not None and person is not None and person.pods:
            waiting = await self._waiting(person)
        return PageRequest(
            request=request,
            person=person,
            waiting=waiting,
            texts=texts,
            notice=read_notice(self._cookies, request) if request.method == "GET" else None,
            wants_page=prefers_html(accept)
            or (request.method in _SAFE and "json" not in (accept or "")),
        )

    def _refused(self, error: RequestRefused, page: PageRequest) -> Response:
        """A page that describes the error and names the next step; programs get JSON."""
        if not page.wants_page:
            raise error
        if isinstance(error, NotAuthenticated) and page.request.method in _SAFE:
            return self.see_other(sign_in_url(page.address), Notice("sign-in-first"))
        status, reason = status_of(error)
        headers: list[HeaderField] = []
        if isinstance(error, RateLimited):
            headers.append((b"retry-after", str(error.retry_after_s).encode("ascii")))
        return self._renderer.page(
            page,
            "problem.html",
            status=status,
            headers=headers,
            reason=reason,
            message=further_text(error),
            is_translated=is_translated(error),
            problem=problem(
                status, target_or_none(page.request), signed_in=page.person is not None
            ),
        )
