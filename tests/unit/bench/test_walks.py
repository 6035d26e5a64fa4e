"""The functions that a request enters are counted once for each call."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from bench import walks
from bench.requests import COUNTED


async def _waits() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_coroutine_that_goes_on_is_not_entered_again() -> None:
    walk = walks._Walk()
    walk.is_on = True

    async def counted() -> None:
        sys.setprofile(walk.note)
        await _waits()
        sys.setprofile(None)

    asyncio.run(counted())
    assert walk.entered[_waits.__code__] == 1


def test_every_request_is_answered_as_expected_and_writes_go_further_than_kept_responses(
    tmp_path: Path,
) -> None:
    entered = walks.functions_entered(tmp_path)
    assert entered.keys() == {counted.key for counted in COUNTED}
    assert 0 < entered["get-public"] < entered["get-private"] < entered["put-replace"]
