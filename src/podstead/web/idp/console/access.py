"""Lets operators use the console. For everybody else, it is as if there were none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import TypeVar

from podstead.core.errors import NotFound
from podstead.idp.administration.audit_log import Operator
from podstead.web.browsers import see_other
from podstead.web.codes import WebCodes
from podstead.web.pages.addresses import again_url
from podstead.web.pages.request import PageRequest
from podstead.web.response import Response

Page = TypeVar("Page")


def for_operators(
    handler: Callable[[Page, PageRequest, Operator], Awaitable[Response]],
) -> Callable[[Page, PageRequest], Awaitable[Response]]:
    """Call a method of a page of the console for operators only."""

    @wraps(handler)
    async def guarded(self: Page, page: PageRequest) -> Response:
        person = page.person
        if person is None or not person.is_operator or person.account_id is None:
            raise NotFound(WebCodes.NO_SUCH_PAGE)
        return await handler(self, page, Operator(person.account_id, person.name, page.source))

    return guarded


def again(page: PageRequest, address: str) -> Response | None:
    """A redirect to signing in again, which leads to ``address`` afterwards; ``None`` if the
    operator has signed in recently."""
    if page.signed_in().signed_in_recently:
        return None
    return see_other(again_url("console", address))
