"""What the guard does for every page, shown with handlers of the test."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from podstead.app.adapters.system import SystemRandomness
from podstead.core.identifiers import ResourcePath
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.core.operation import InMemoryBody
from podstead.web.asgi import HeaderFields
from podstead.web.pages.request import (
    PageRequest,
    PeopleByAnySession,
    Person,
    SignedInBy,
    UncheckedRequest,
)
from podstead.web.pages.site import Site
from podstead.web.registration import Registration
from podstead.web.request import Request
from podstead.web.response import HeaderField, Response, empty_response

TOKEN = "0" * 64
ALICE = Identity("https://pods.example/alice/#me", AuthenticationMethod.SESSION)


class _Alice:
    """A kind of session in which everybody is Alice."""

    async def person(self, request: Request) -> Person:
        del request
        return Person(ALICE, "alice", TOKEN, SignedInBy.ACCOUNT)

    async def sign_out(self, request: Request) -> list[HeaderField]:
        del request
        return []


async def _ask(
    handler: Callable[[PageRequest], Awaitable[Response]],
    method: str,
    body: bytes = b"",
    **fields: str,
) -> Response:
    url = "https://pods.example"
    site = Site(
        url,
        pods_url=url,
        people=PeopleByAnySession([_Alice()]),
        registration=cast("Registration", None),  # no handler here registers anybody
        randomness=SystemRandomness(),
    )
    sent = {"cookie": "a=b", "sec-fetch-site": "same-origin", "accept": "text/html", **fields}
    request = Request(
        method=method,
        path=ResourcePath("/.pages/test"),
        fields=HeaderFields([(k.replace("_", "-").encode(), v.encode()) for k, v in sent.items()]),
        body=InMemoryBody(body),
        client_address="192.0.2.1",
        host="pods.example",
        raw_path=b"/.pages/test",
        query=b"",
    )
    return await site.guard.endpoint(handler)(request, None)


async def _identity(page: PageRequest) -> Response:
    assert page.identity == ALICE
    return empty_response(204)


async def test_reading_needs_no_token() -> None:
    assert (await _ask(_identity, "GET")).status == 204


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_handler_gets_no_identity_before_the_token_is_checked(method: str) -> None:
    with pytest.raises(UncheckedRequest):
        await _ask(_identity, method)


async def _with_form(page: PageRequest) -> Response:
    await page.form()
    return await _identity(page)


FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("body", "fields", "status"),
    [
        (f"csrf_token={TOKEN}", {}, 204),
        ("", {"x_csrf_token": TOKEN}, 204),
        ("", {}, 403),
        ("csrf_token=", {}, 403),
        (f"csrf_token={'1' * 64}", {}, 403),
        (f"csrf_token={TOKEN}", {"x_csrf_token": "1" * 64}, 403),
        (f"csrf_token={TOKEN}", {"sec_fetch_site": "cross-site"}, 403),
        (f"csrf_token={TOKEN}", {"sec_fetch_site": "same-site"}, 403),
    ],
)
async def test_a_form_has_the_token_of_the_session_and_comes_from_here(
    body: str, fields: dict[str, str], status: int
) -> None:
    answer = await _ask(_with_form, "POST", body.encode(), content_type=FORM, **fields)
    assert answer.status == status
