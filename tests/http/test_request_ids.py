"""A response has the id that the log lines about its request have."""

from __future__ import annotations

import logging
from ipaddress import ip_network

import pytest

from podstead.app.process.logs import RequestIdFilter
from podstead.storage.sqlite import SqliteStore
from tests.support.application import Server, Start


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.handler.addFilter(RequestIdFilter())
    caplog.set_level(logging.INFO)
    return caplog


async def test_an_ordinary_response_has_none(server: Server) -> None:
    """It would cost time, and nothing in the log refers to it."""
    answer = await server.public.request("GET", "/", headers={"X-Request-Id": "mine"})
    assert answer.header("X-Request-Id") is None


async def test_an_error_has_the_id_of_its_line(
    server: Server, logged: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr(SqliteStore, "read_metadata", fail)
    ids = []
    for _ in range(2):
        logged.clear()
        answer = await server.alice.request("GET", "/alice/x", headers={"X-Request-Id": "forged"})
        assert answer.status == 500
        (record,) = [each for each in logged.records if each.name == "podstead.web"]
        assert answer.header("X-Request-Id") == record.__dict__["request_id"]
        ids.append(answer.header("X-Request-Id"))
    assert len({*ids, "forged"}) == 3


@pytest.mark.parametrize(
    ("sent", "taken"), [("abc-1", True), ("x" * 129, False), ("a b", False), ("a(b", False)]
)
async def test_the_id_of_a_trusted_proxy_is_taken(
    start: Start, monkeypatch: pytest.MonkeyPatch, sent: str, *, taken: bool
) -> None:
    server = await start(trusted_proxies=(ip_network("127.0.0.1"),))

    def fail(*_: object) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr(SqliteStore, "read_metadata", fail)
    logging.getLogger("podstead.web").addFilter(named := RequestIdFilter())
    try:
        answer = await server.alice.request("GET", "/alice/x", headers={"X-Request-Id": sent})
        other = await server.alice.request(
            "GET", "/alice/x", headers={"X-Request-Id": sent}, peer="192.0.2.1"
        )
    finally:
        logging.getLogger("podstead.web").removeFilter(named)
    assert (answer.header("X-Request-Id") == sent) == taken
    assert other.header("X-Request-Id") not in (None, sent)


async def test_ids_of_proxies_do_not_empty_the_response_cache(start: Start) -> None:
    server = await start(trusted_proxies=(ip_network("127.0.0.1"),))
    await server.alice.put("/alice/a.txt", b"x", content_type="text/plain")
    for number in range(3):
        await server.alice.request("GET", "/alice/a.txt", headers={"X-Request-Id": str(number)})
    tallies = dict(server.application.requests.tallies())
    assert tallies["resources", "GET", 200].cached == 2
