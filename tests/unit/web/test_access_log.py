"""No request can forge a line of the access log, and samples are as large as they should be."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.web.access_log import AccessLog
from tests.support.clock import FakeClock

COMMON_LOG_FORMAT = re.compile(
    rb"(\S+) (\S+) (\S+) \[(\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})\] "
    rb'"([^"\\]*(?:\\.[^"\\]*)*)" (\d{3}) (\d+|-) (\S+)\n'
)
"""As the documentation of Apache's mod_log_config gives it, with one field more."""


def scope(path: str, query: bytes = b"", method: str = "GET") -> dict[str, Any]:
    return {"path": path, "query_string": query, "method": method, "http_version": "1.1"}


def lines_of(form: str, percent: int, *requests: tuple[dict[str, Any], int]) -> list[bytes]:
    lines: list[bytes] = []
    log = AccessLog(lines.append, clock=FakeClock(), form=form, percent=percent)
    for sent, status in requests:
        log.note(
            sent,
            request_id="r-1",
            client_address="192.0.2.1",
            agent="https://alice.example/#me",
            status=status,
            sent_bytes=5,
            duration_s=0.0123,
        )
    return lines


TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)


@given(TEXTS, TEXTS)
def test_whatever_a_client_sends_is_one_field_of_one_line(path: str, method: str) -> None:
    (line,) = lines_of("common", 100, (scope(path, method=method), 200))
    assert line.count(b"\n") == 1
    found = COMMON_LOG_FORMAT.fullmatch(line)
    assert found is not None
    assert found[1] == b"192.0.2.1"
    assert found[3] == b"https://alice.example/#me"
    assert found[5].endswith(b" HTTP/1.1")
    assert (found[6], found[8]) == (b"200", b"r-1")
    (line,) = lines_of("json", 100, (scope(path, method=method), 200))
    assert line.count(b"\n") == 1
    entry = json.loads(line)
    assert entry["client_address"] == "192.0.2.1"
    assert entry["duration_ms"] == 12.3


@pytest.mark.parametrize("percent", [1, 7, 33, 50, 99, 100])
def test_of_a_hundred_requests_as_many_are_logged_as_was_set(percent: int) -> None:
    assert len(lines_of("json", percent, *[(scope("/"), 200)] * 300)) == 3 * percent


def test_errors_of_the_server_are_always_logged() -> None:
    lines = lines_of("json", 1, *[(scope("/"), status) for status in (200, 503, 404, 500)])
    assert [json.loads(line)["status"] for line in lines] == [503, 500]


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/.pages/link/0af62c8bf11c5ae9", "/.pages/link/..."),
        ("/idp/interaction/secret/confirm", "/idp/interaction/..."),
        ("/alice/notes/a.ttl", "/alice/notes/a.ttl"),
    ],
)
def test_secrets_in_paths_and_queries_are_left_out(path: str, shown: str) -> None:
    (line,) = lines_of("json", 100, (scope(path, b"code=secret"), 200))
    assert json.loads(line)["path"] == f"{shown}?..."
    assert b"secret" not in line
