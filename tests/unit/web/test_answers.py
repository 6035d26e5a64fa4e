"""Kept answers: the answer to the same request at the same state, and to no other."""

from __future__ import annotations

import pytest

from podstead.core.errors import StorageError
from podstead.web.answers import AnswerKey, Answers
from podstead.web.asgi import Scope
from podstead.web.response import Response

_MIB = 1024 * 1024


class Store:
    """A store that tells its mark, or fails to."""

    def __init__(self) -> None:
        self.mark: int | None = 1
        self.is_broken = False

    def state_mark(self) -> int | None:
        if self.is_broken:
            raise StorageError("broken")
        return self.mark


class Clock:
    def __init__(self) -> None:
        self.time_ms = 0

    def now_ms(self) -> int:
        return self.time_ms


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def answers(store: Store, clock: Clock) -> Answers:
    return Answers(store=store, clock=clock, capacity_bytes=_MIB)


def request(*, method: str = "GET", path: bytes = b"/a", **fields: str) -> Scope:
    return {
        "method": method,
        "raw_path": path,
        "query_string": b"",
        "client": ("127.0.0.1", 1),
        "headers": [(name.encode(), value.encode()) for name, value in fields.items()],
    }


def answer(
    body: bytes = b"", *, of_stored_state: bool = True, until_s: int | None = None
) -> Response:
    return Response(200, [], body, of_stored_state=of_stored_state, valid_until_s=until_s)


def key_of(answers: Answers, scope: Scope) -> AnswerKey:
    key = answers.key(scope)
    assert key is not None
    return key


def ask(answers: Answers, scope: Scope) -> Response | None:
    return answers.get(key_of(answers, scope))


def make(answers: Answers, scope: Scope, response: Response) -> None:
    """Answer a request of which no answer is kept."""
    key = key_of(answers, scope)
    assert answers.get(key) is None
    answers.keep(key, response)


def test_the_same_request_gets_the_kept_answer_and_others_do_not(answers: Answers) -> None:
    kept = answer()
    make(answers, request(accept="text/turtle"), kept)
    assert ask(answers, request(accept="text/turtle")) is kept
    for other in (
        request(),
        request(accept="text/html"),
        request(accept="text/turtle", authorization="Bearer x"),
        request(method="HEAD", accept="text/turtle"),
        request(path=b"/b", accept="text/turtle"),
        {**request(accept="text/turtle"), "query_string": b"q"},
        {**request(accept="text/turtle"), "client": ("127.0.0.2", 1)},
    ):
        assert ask(answers, other) is None


def test_a_commit_ends_every_kept_answer(answers: Answers, store: Store) -> None:
    make(answers, request(), answer())
    store.mark = 2
    assert ask(answers, request()) is None


def test_an_answer_begun_before_a_commit_is_not_kept_whoever_asked_meanwhile(
    answers: Answers, store: Store
) -> None:
    """Another request that has seen the commit must not make the old answer look new."""
    slow = key_of(answers, request())
    assert answers.get(slow) is None
    store.mark = 2
    assert ask(answers, request(path=b"/other")) is None
    answers.keep(slow, answer(b"of the state before"))
    assert ask(answers, request()) is None


@pytest.mark.parametrize("method", ["PUT", "POST", "PATCH", "DELETE", "OPTIONS"])
def test_only_reads_are_kept(answers: Answers, method: str) -> None:
    assert answers.key(request(method=method)) is None


def test_what_does_not_follow_from_the_store_is_not_kept(answers: Answers) -> None:
    make(answers, request(), answer(of_stored_state=False))
    assert ask(answers, request()) is None


def test_an_answer_to_a_credential_ends_with_it(answers: Answers, clock: Clock) -> None:
    make(answers, request(), answer(until_s=10))
    clock.time_ms = 9_999
    assert ask(answers, request()) is not None
    clock.time_ms = 10_000
    assert ask(answers, request()) is None


def test_a_store_in_trouble_has_no_kept_answers(answers: Answers, store: Store) -> None:
    key = key_of(answers, request())
    assert answers.get(key) is None
    store.is_broken = True
    answers.keep(key, answer())
    assert answers.key(request()) is None
    store.is_broken = False
    assert ask(answers, request()) is None


@pytest.mark.parametrize("body_bytes", [0, 20_000])
def test_requests_count_towards_the_memory_used(answers: Answers, body_bytes: int) -> None:
    """Whoever sends long headers must not make the server keep more than it is allowed."""
    for number in range(100):
        make(answers, request(n=str(number), junk="x" * 60_000), answer(b"x" * body_bytes))
    kept = [ask(answers, request(n=str(number), junk="x" * 60_000)) for number in range(100)]
    assert 0 < sum(found is not None for found in kept) <= _MIB // (60_000 + body_bytes)
    assert kept[-1] is not None
