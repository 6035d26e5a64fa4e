"""An agent waits for their own operations, and for nobody else's."""

from __future__ import annotations

import asyncio

import pytest

from podstead.core.errors import RateLimited
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.core.request_context import set_requester
from podstead.resources.costly_work import MAX_WAITING, AgentSemaphores

BASE_URL = "https://pods.example"


def agent(name: str) -> Identity:
    return Identity(f"{BASE_URL}/{name}/#me", next(iter(AuthenticationMethod)))


async def test_operations_of_one_agent_follow_one_another() -> None:
    turns, running, most = AgentSemaphores(base_url=BASE_URL), 0, 0

    async def operate() -> None:
        nonlocal running, most
        async with turns.of(agent("alice")):
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            running -= 1

    await asyncio.gather(*(operate() for _ in range(20)))
    assert most == 1
    assert turns._turns._lines == {}


async def test_other_agents_do_not_wait() -> None:
    turns, entered = AgentSemaphores(base_url=BASE_URL), asyncio.Event()

    async def hold() -> None:
        async with turns.of(agent("alice")):
            entered.set()
            await asyncio.Event().wait()

    holding = asyncio.create_task(hold())
    await entered.wait()
    async with asyncio.timeout(10):
        async with turns.of(agent("bob")):
            pass
        async with turns.of(None):
            pass
    holding.cancel()
    await asyncio.gather(holding, return_exceptions=True)
    async with asyncio.timeout(10), turns.of(agent("alice")):
        pass
    assert turns._turns._lines == {}


async def test_a_new_name_from_elsewhere_is_no_new_turn() -> None:
    turns, entered = AgentSemaphores(base_url=BASE_URL), asyncio.Event()
    set_requester("198.51.100.7")

    async def hold() -> None:
        async with turns.of(Identity("https://one.example/#me", AuthenticationMethod.SESSION)):
            entered.set()
            await asyncio.Event().wait()

    holding = asyncio.create_task(hold())
    await entered.wait()
    with pytest.raises(TimeoutError):
        async with (
            asyncio.timeout(0),
            turns.of(Identity("https://two.example/#me", AuthenticationMethod.SESSION)),
        ):
            pass
    async with asyncio.timeout(10), turns.of(agent("alice")):
        pass
    holding.cancel()
    await asyncio.gather(holding, return_exceptions=True)


async def test_few_operations_of_one_agent_wait() -> None:
    turns = AgentSemaphores(base_url=BASE_URL)

    async def hold() -> None:
        async with turns.of(agent("alice")):
            await asyncio.Event().wait()

    holding = [asyncio.create_task(hold()) for _ in range(MAX_WAITING)]
    await asyncio.sleep(0)
    with pytest.raises(RateLimited):
        async with turns.of(agent("alice")):
            pass
    async with turns.of(agent("bob")):
        pass
    for each in holding:
        each.cancel()
    await asyncio.gather(*holding, return_exceptions=True)
    assert turns._turns._lines == {}
