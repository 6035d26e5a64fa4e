"""An agent waits for their own operations, and for nobody else's."""

from __future__ import annotations

import asyncio

from podstead.core.identity import AuthenticationMethod, Identity
from podstead.resources.agent_turns import AgentTurns


def agent(name: str) -> Identity:
    return Identity(f"https://{name}.example/#me", next(iter(AuthenticationMethod)))


async def test_operations_of_one_agent_follow_one_another() -> None:
    turns, running, most = AgentTurns(), 0, 0

    async def operate() -> None:
        nonlocal running, most
        async with turns.of(agent("alice")):
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            running -= 1

    await asyncio.gather(*(operate() for _ in range(20)))
    assert most == 1
    assert turns._turns == {}


async def test_other_agents_do_not_wait() -> None:
    turns, entered = AgentTurns(), asyncio.Event()

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
    assert turns._turns == {}
