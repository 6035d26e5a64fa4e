"""When is a cached response used? For an identical request, until anything changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from podstead.core.errors import StorageError
from podstead.web.response import Response
from podstead.web.response_cache import ResponseCache
from tests.support.clock import FakeClock

CAPACITY_BYTES = 1 << 20


@dataclass
class Store:
    """Something that can be committed to."""

    mark: int | None = 1
    broken: bool = False

    def data_version(self) -> int | None:
        if self.broken:
            raise StorageError("The database cannot be read")
        return self.mark


@dataclass
class World:
    store: Store
    clock: FakeClock
    answers: ResponseCache

    def keep(self, asked: dict[str, Any], response: Response) -> None:
        key = self.answers.key(asked)
        assert key is not None
        assert self.answers.get(key) is None
        self.answers.keep(key, response)

    def kept(self, asked: dict[str, Any]) -> Response | None:
        key = self.answers.key(asked)
        return None if key is None else self.answers.get(key)


@pytest.fixture
def world() -> World:
    store, clock = Store(), FakeClock()
    return World(
        store, clock, ResponseCache(store=store, clock=clock, capacity_bytes=CAPACITY_BYTES)
    )


def scope(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever a scope holds
    return {
        "method": "GET",
        "raw_path": b"/alice/",
        "query_string": b"",
        "headers": [(b"host", b"localhost:3000"), (b"accept", b"text/turtle")],
        "client": ("127.0.0.1", 1),
        **changes,
    }


def certificate(pem: str) -> dict[str, Any]:
    """The extensions of a scope on a connection with a client certificate."""
    return {"tls": {"client_cert_chain": (pem, "its issuer")}}


def response(body: bytes = b"body", **changes: Any) -> Response:  # noqa: ANN401 - of its fields
    return Response(200, [(b"etag", b'"x"')], body, **{"of_stored_state": True, **changes})


def test_the_same_request_has_the_same_answer(world: World) -> None:
    made = response()
    world.keep(scope(), made)
    assert world.kept(scope()) is made
    assert world.kept(scope(client=("127.0.0.1", 2))) is made  # another port of the same peer


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "HEAD"},
        {"raw_path": b"/alice"},
        {"raw_path": b"/%61lice/"},
        {"query_string": b"x"},
        {"client": ("127.0.0.2", 1)},
        {"client": None},
        {"headers": []},
        {"headers": [(b"host", b"localhost:3000"), (b"accept", b"*/*")]},
        {"headers": [(b"host", b"other:3000"), (b"accept", b"text/turtle")]},
        {"headers": [*scope()["headers"], (b"authorization", b"Bearer x")]},
        {"headers": [*scope()["headers"], (b"origin", b"https://a.example")]},
        {"headers": [*scope()["headers"], (b"range", b"bytes=0-1")]},
        {"headers": [*scope()["headers"], (b"if-none-match", b"*")]},
        {"headers": [*scope()["headers"], (b"anything", b"")]},
        {"headers": [*scope()["headers"], scope()["headers"][1]]},
        {"extensions": certificate("another")},
        {"extensions": {}},
    ],
)
def test_any_other_request_has_not(world: World, changes: dict[str, Any]) -> None:
    asked = scope(extensions=certificate("one"))
    world.keep(asked, response())
    assert world.kept(asked) is not None
    assert world.kept({**asked, **changes}) is None


@pytest.mark.parametrize("method", ["PUT", "POST", "PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_only_reads_are_kept(world: World, method: str) -> None:
    assert world.answers.key(scope(method=method)) is None


def test_any_commit_makes_everything_worthless(world: World) -> None:
    """W-5, A-33: also one whose mark was seen before, of another worker."""
    world.keep(scope(), response())
    world.keep(scope(raw_path=b"/bob/"), response())
    for mark in (2, 1):
        world.store.mark = mark
        assert world.kept(scope()) is None
        assert world.kept(scope(raw_path=b"/bob/")) is None


def test_what_was_made_while_something_was_committed_is_not_kept(world: World) -> None:
    key = world.answers.key(scope())
    assert key is not None
    assert world.answers.get(key) is None
    world.store.mark = 2
    world.answers.keep(key, response())
    assert world.kept(scope()) is None
    world.store.mark = 1
    assert world.kept(scope()) is None


def test_nothing_is_cached_if_changes_cannot_be_detected(world: World) -> None:
    world.store.mark = None
    assert world.answers.key(scope()) is None


def test_trouble_is_left_to_the_ordinary_path(world: World) -> None:
    world.keep(scope(), response())
    world.store.broken = True
    assert world.answers.key(scope()) is None


def test_an_answer_ends_with_the_credential_on_its_second(world: World) -> None:
    """A-33."""
    until_s = world.clock.now_s() + 60
    world.keep(scope(), response(valid_until_s=until_s))
    world.clock.advance(59.999)
    assert world.kept(scope()) is not None
    world.clock.advance(0.001)
    assert world.kept(scope()) is None


def test_refusals_and_what_is_still_to_be_sent_are_not_kept(world: World) -> None:
    world.keep(scope(), response(of_stored_state=False))
    assert world.kept(scope()) is None

    async def pieces() -> Any:  # noqa: ANN401 - a stream
        yield b""

    streamed = Response(200, [], pieces(), of_stored_state=True)
    world.keep(scope(), streamed)
    assert world.kept(scope()) is None


def test_stored_events_are_limited_and_the_oldest_is_removed_first(world: World) -> None:
    size_bytes = CAPACITY_BYTES // 16
    for number in range(40):
        world.keep(scope(query_string=b"%d" % number), response(b"x" * size_bytes))
    found = [
        number for number in range(40) if world.kept(scope(query_string=b"%d" % number)) is not None
    ]
    assert found == list(range(40 - len(found), 40))
    assert 8 <= len(found) <= 16
    world.keep(scope(), response(b"x" * CAPACITY_BYTES))
    assert world.kept(scope()) is None


def test_long_certificates_are_limited_too(world: World) -> None:
    """Anybody can create them."""
    for number in range(40):
        made = certificate(f"{number}{'x' * (CAPACITY_BYTES // 16)}")
        world.keep(scope(extensions=made), response())
    found = [
        number
        for number in range(40)
        if world.kept(scope(extensions=certificate(f"{number}{'x' * (CAPACITY_BYTES // 16)}")))
    ]
    assert found == list(range(40 - len(found), 40))
    assert 8 <= len(found) <= 16


def test_no_capacity_keeps_nothing() -> None:
    store = Store()
    none = World(
        store, FakeClock(), ResponseCache(store=store, clock=FakeClock(), capacity_bytes=0)
    )
    none.keep(scope(), response(b""))
    assert none.kept(scope()) is None


def test_other_keys_make_every_kept_answer_worthless(world: World) -> None:
    """Those of the own provider, which are in no database."""
    keys = Store(mark=7)
    answers = ResponseCache(
        store=world.store, keys=keys, clock=world.clock, capacity_bytes=CAPACITY_BYTES
    )
    with_keys = World(world.store, world.clock, answers)
    with_keys.keep(scope(), response())
    assert with_keys.kept(scope()) is not None
    keys.mark = 8
    assert with_keys.kept(scope()) is None
    keys.mark = None
    assert answers.key(scope()) is None
    keys.broken = True
    assert answers.key(scope()) is None
