"""Lets operators use the console. For everybody else, it is as if there were none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import unquote

from podstead.core.errors import NotFound
from podstead.idp.administration.audit_log import Operator
from podstead.web.browsers import see_other
from podstead.web.codes import WebCodes
from podstead.web.idp.login_page import again_path
from podstead.web.idp.sources import request_source
from podstead.web.pod_pages.guard import Handler, PageGuard
from podstead.web.pod_pages.page_request import PageRequest
from podstead.web.response import Response
from podstead.web.routes import Route

ConsoleHandler = Callable[[PageRequest, Operator], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class ConsoleGuard:
    """Creates the routes of the console, whose handlers are called for operators only."""

    guard: PageGuard

    def route(self, path: str, **handlers: ConsoleHandler) -> Route:
        """A path with the handler for each method."""
        guarded = {method: _for_operators(handler) for method, handler in handlers.items()}
        return self.guard.route(path, **guarded)


def _for_operators(handler: ConsoleHandler) -> Handler:
    async def guarded(page: PageRequest) -> Response:
        person = page.person
        if person is None or not person.is_operator or person.account_id is None:
            raise NotFound(WebCodes.NO_SUCH_PAGE)
        operator = Operator(person.account_id, person.name, request_source(page.request))
        return await handler(page, operator)

    return guarded


def again(page: PageRequest, address: str) -> Response | None:
    """A redirect to signing in again, which leads to ``address`` afterwards; ``None`` if the
    operator has signed in recently."""
    if page.signed_in().signed_in_recently:
        return None
    return see_other(again_path("console", address))


def segment(page: PageRequest, index: int) -> str:
    """A segment of the path of the page, counted from 1."""
    return unquote(page.request.path.split("/")[index])
