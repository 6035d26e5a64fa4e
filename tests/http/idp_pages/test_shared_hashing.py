"""Signing in while one address asks for as many hashes of passwords as it can."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import threading

import pytest

from podstead.app.adapters.passwords import MAX_PENDING_HASHES, Argon2Passwords
from podstead.idp.passwords import PasswordCheck
from tests.support.application import Server, password_of
from tests.support.asgi import Answer

STRANGER = "192.0.2.66"
JSON = {"Content-Type": "application/json"}


async def get_token(server: Server, name: str, peer: str) -> Answer:
    body = json.dumps({"username": name, "password": password_of(name)}).encode()
    return await server.public.request(
        "POST", "/idp/credentials", headers=JSON, body=body, peer=peer
    )


async def test_one_address_with_right_passwords_does_not_keep_others_from_signing_in(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The hashes of the stranger take for ever; what finds no place is 503, in one line of the
    log each."""
    compare, released = Argon2Passwords._compare, threading.Event()

    def slow(self: Argon2Passwords, password_hash: str, password: str) -> PasswordCheck:
        if password == password_of("bob"):
            released.wait()
        return compare(self, password_hash, password)

    monkeypatch.setattr(Argon2Passwords, "_compare", slow)
    sent = MAX_PENDING_HASHES + 10
    tasks = [asyncio.create_task(get_token(server, "bob", STRANGER)) for _ in range(sent)]
    with caplog.at_level(logging.WARNING):
        async with asyncio.timeout(60):
            for ended in itertools.islice(
                asyncio.as_completed(tasks), sent - MAX_PENDING_HASHES // 2
            ):
                await ended
            own = await get_token(server, "alice", "192.0.2.1")
    released.set()
    answers = await asyncio.gather(*tasks)
    assert own.status == 200, own.text
    refused = [answer for answer in answers if answer.status == 503]
    assert len(refused) == sent - MAX_PENDING_HASHES // 2
    assert all(answer.header("retry-after") for answer in refused)
    noted = [each for each in caplog.records if each.name == "podstead.web"]
    assert len(noted) == len(refused)
    assert not any(each.exc_info for each in noted)
