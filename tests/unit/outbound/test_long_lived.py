"""What lasts is limited until it is open, and not afterwards; WebSockets are asked for by HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from podstead.outbound import requests
from podstead.outbound.errors import TooSlow
from podstead.outbound.requests import http_form

LIMIT_S = 0.3


@asynccontextmanager
async def open_at_once() -> AsyncIterator[str]:
    yield "open"


@asynccontextmanager
async def open_never() -> AsyncIterator[str]:
    await asyncio.Event().wait()
    yield "never"


async def test_what_is_open_lasts_longer_than_opening_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "OPEN_TIMEOUT_S", LIMIT_S)
    over = asyncio.Event()
    asyncio.get_running_loop().call_later(2 * LIMIT_S, over.set)
    async with requests._opened(open_at_once()) as opened:
        await over.wait()
        assert opened == "open"


async def test_what_does_not_open_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "OPEN_TIMEOUT_S", 0.0)
    with pytest.raises(TooSlow):
        async with requests._opened(open_never()):
            pytest.fail("it is not open")


@pytest.mark.parametrize(
    ("url", "form"),
    [
        ("ws://pods.example/x", "http://pods.example/x"),
        ("wss://pods.example/x", "https://pods.example/x"),
        ("WSS://pods.example/x", "https://pods.example/x"),
        ("https://pods.example/ws://x", "https://pods.example/ws://x"),
    ],
)
def test_the_http_response_requires_a_web_socket(url: str, form: str) -> None:
    """RFC 6455 section 3."""
    assert http_form(url) == form
