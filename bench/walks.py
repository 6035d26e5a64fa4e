"""The command `python -m bench.walks`: the Python functions and files that a request enters.

Counted over a worker's whole handling, from the call by the HTTP server to the end of the response,
in all of its threads. Each call of a function counts, and each first step of a coroutine or
generator, but not its resumption. A short walk is easier to read and cheaper to make.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections import Counter
from dis import get_instructions
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Final

import uvloop

from bench.inprocess import Exchange, request_settings, running_worker
from bench.requests import COUNTED
from podstead.app.adapters.root import prepared_root

_WARM: Final = 4
_MEASURED: Final = 3
_OWN: Final = str(Path(__file__).parent)


def main() -> int:
    """Print one line for each request."""
    sys.stdout.write(f"{'request':16} {'calls':>7} {'functions':>9} {'files':>5}\n")
    with tempfile.TemporaryDirectory() as place:
        for key, walk in walks(Path(place)).items():
            files = len({code.co_filename for code in walk})
            sys.stdout.write(f"{key:16} {walk.total():7,} {len(walk):9,} {files:5,}\n")
    return 0


def functions_entered(place: Path) -> dict[str, int]:
    """Return the number for each of the ten requests, by key."""
    return {key: walk.total() for key, walk in walks(place).items()}


def walks(place: Path) -> dict[str, Counter[CodeType]]:
    """Return which functions each of the ten requests enters, and how often."""
    settings = request_settings(place)
    with prepared_root(settings):
        # For the threads that start later, the one of the commits among them.
        walk = _Walk()
        threading.setprofile(walk.note)
        try:
            return uvloop.run(_walks(place, walk))
        finally:
            threading.setprofile(None)


class _Walk:
    """Takes down which functions are entered while it is on."""

    def __init__(self) -> None:
        self.entered: Counter[CodeType] = Counter()
        self.is_on = False

    def note(self, frame: FrameType, event: str, _argument: object) -> None:
        """What the interpreter calls (`sys.setprofile`)."""
        if not self.is_on or event != "call":
            return
        # A coroutine that goes on is called as well: its first instruction is behind it.
        if frame.f_lasti <= _first_instruction(frame.f_code) and _is_theirs(frame.f_code):
            self.entered[frame.f_code] += 1


async def _walks(place: Path, walk: _Walk) -> dict[str, Counter[CodeType]]:
    found: dict[str, Counter[CodeType]] = {}
    async with running_worker(request_settings(place)) as worker:
        await worker.make_pod()
        for counted in COUNTED:
            for number in range(_WARM + _MEASURED):
                await worker.ask_all(counted.store(worker, number))
            every = [Exchange(counted.ask(worker, number)) for number in range(_WARM + _MEASURED)]
            for exchange in every[:_WARM]:
                await worker.call(exchange.scope, exchange.receive, exchange.send)
            seen: list[Counter[CodeType]] = []
            for exchange in every[_WARM:]:
                walk.entered = Counter()
                sys.setprofile(walk.note)
                walk.is_on = True
                await worker.call(exchange.scope, exchange.receive, exchange.send)
                walk.is_on = False
                sys.setprofile(None)
                exchange.require()
                seen.append(walk.entered)
            found[counted.key] = min(seen, key=Counter.total)
    return found


def _is_theirs(code: CodeType) -> bool:
    return not code.co_filename.startswith(_OWN)


@cache
def _first_instruction(code: CodeType) -> int:
    """Return the offset at which a frame of this code stands when it is entered.

    The code of a coroutine or generator begins with the instructions that create it.
    """
    resumes = (each.offset for each in get_instructions(code) if each.opname == "RESUME")
    return next(resumes, -1)


if __name__ == "__main__":
    sys.exit(main())
