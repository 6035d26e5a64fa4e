"""How does a response get its length and type? In one place, by its status and the method."""

from __future__ import annotations

import ast
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import podstead.web
from podstead.core.conditional import Conditions
from podstead.core.errors import PreconditionFailed
from podstead.core.header_fields import ByteRange
from podstead.web.asgi import Headers
from podstead.web.response import (
    Response,
    conditional_response,
    content_response,
    empty_response,
    json_content_response,
)

_WEB = Path(podstead.web.__file__).parent
_BUILDER = _WEB / "response.py"
_FILES = [path for path in sorted(_WEB.rglob("*.py")) if path != _BUILDER]
_CONTENT = b"some content"


def _named(response: Response) -> dict[bytes, bytes]:
    names = [name for name, _ in response.headers]
    assert len(names) == len(set(names))
    return dict(response.headers)


@pytest.mark.parametrize("path", _FILES, ids=lambda path: str(path.relative_to(_WEB)))
def test_only_the_builder_of_responses_writes_lengths_and_creates_responses(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "Response", f"line {node.lineno}"
        if isinstance(node, ast.Tuple):  # as of a header field; a tuple of names is none
            name, *rest = [getattr(each, "value", None) for each in node.elts] or [None]
            assert name != b"content-length" or rest == [b"transfer-encoding"]


def test_a_response_states_the_type_and_length_of_its_content() -> None:
    response = content_response(
        _CONTENT, "text/plain", method="GET", headers=[(b"cache-control", b"no-store")]
    )
    assert (response.status, response.body) == (200, _CONTENT)
    assert _named(response) == {
        b"content-type": b"text/plain",
        b"content-length": b"12",
        b"cache-control": b"no-store",
    }


def test_a_response_to_head_has_the_fields_of_get_and_no_content() -> None:
    got = content_response(_CONTENT, "text/plain", method="GET")
    headed = content_response(_CONTENT, "text/plain", method="HEAD")
    assert headed.headers == got.headers
    assert headed.body == b""


@pytest.mark.parametrize("status", [204, 304])
def test_a_status_that_has_no_content_has_no_length(status: int) -> None:
    """RFC 9110 section 8.6"""
    assert _named(empty_response(status)) == {}


@pytest.mark.parametrize("status", [200, 303])
def test_an_empty_response_of_another_status_has_length_0(status: int) -> None:
    assert _named(empty_response(status)) == {b"content-length": b"0"}


def test_header_fields_that_are_passed_in_are_not_changed_later() -> None:
    common: Headers = [(b"cache-control", b"no-store")]
    for response in (
        empty_response(204, common),
        content_response(_CONTENT, "text/plain", method="GET", headers=common),
    ):
        response.headers.append((b"vary", b"Accept"))
    assert len(common) == 1


def test_a_range_is_stated_with_its_own_length() -> None:
    response = content_response(
        _CONTENT, "text/plain", method="GET", status=206, byte_range=ByteRange(5, 11)
    )
    assert (response.status, response.first, response.last) == (206, 5, 11)
    fields = _named(response)
    assert fields[b"content-length"] == b"7"
    assert fields[b"content-range"] == b"bytes 5-11/12"


async def _pieces() -> AsyncIterator[bytes]:
    yield _CONTENT


def test_content_that_is_not_in_memory_has_a_length_only_if_it_is_known() -> None:
    unknown = content_response(_pieces(), "text/plain", method="GET")
    known = content_response(_pieces(), "text/plain", method="GET", size_bytes=12)
    assert b"content-length" not in _named(unknown)
    assert _named(known)[b"content-length"] == b"12"


def test_json_is_sent_as_json() -> None:
    response = json_content_response({"a": 1}, status=201)
    assert (response.status, response.body) == (201, b'{"a":1}')
    assert _named(response)[b"content-type"] == b"application/json"


def _conditional(**conditions: str) -> Response:
    return conditional_response(
        _CONTENT,
        "text/plain",
        method="GET",
        etag='"a"',
        conditions=Conditions(**conditions),
        headers=[(b"cache-control", b"no-cache")],
    )


def test_a_client_that_has_the_content_gets_304_with_the_fields_of_200() -> None:
    """RFC 9110 section 15.4.5"""
    response = _conditional(if_none_match='"a"')
    assert (response.status, response.body) == (304, b"")
    assert _named(response) == {b"etag": b'"a"', b"cache-control": b"no-cache"}


def test_a_client_that_has_other_content_gets_this_one() -> None:
    response = _conditional(if_none_match='"b"')
    assert (response.status, response.body) == (200, _CONTENT)
    assert _named(response)[b"etag"] == b'"a"'
    with pytest.raises(PreconditionFailed):
        _conditional(if_match='"b"')
