"""Requests in flight are counted for each connection, and forgotten with it."""

from __future__ import annotations

import asyncio

import pytest

from podstead.app.process.connections.policy import Requests
from podstead.web.asgi import Receive, Scope, Send

CLIENT = ("192.0.2.1", "50000")
SCOPE: Scope = {"type": "http", "client": CLIENT}


async def receive() -> dict[str, object]:
    return {}


async def send(_message: object) -> None: ...


async def test_a_request_is_in_flight_until_it_is_answered() -> None:
    requests, answered = Requests(), asyncio.Event()

    async def application(_scope: Scope, _receive: Receive, _send: Send) -> None:
        await answered.wait()

    both = [
        asyncio.create_task(requests.track(application, SCOPE, receive, send)) for _ in range(2)
    ]
    await asyncio.sleep(0)
    assert requests.of(CLIENT) == (2, 0)
    requests.forget_all_but(set())
    assert requests.of(CLIENT) == (2, 0)
    answered.set()
    await asyncio.gather(*both)
    assert requests.of(CLIENT) == (2, 2)
    requests.forget_all_but({CLIENT})
    assert requests.of(CLIENT) == (2, 2)
    requests.forget_all_but(set())
    assert requests.of(CLIENT) == (0, 0)


async def test_a_request_that_fails_has_ended() -> None:
    async def application(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise RuntimeError

    requests = Requests()
    with pytest.raises(RuntimeError):
        await requests.track(application, SCOPE, receive, send)
    assert requests.of(CLIENT) == (1, 1)
