"""The command `python -m bench.profiling REQUEST`: where does the time of a request go?

The worker's whole handling runs in this process, over and over, and a timer that counts processor
time looks from time to time which function is running. Unlike a tracing profiler it slows nothing
down, so functions that are called often are not made to look expensive. The time of a library is
that of the function of ours that called it, and is told by library as well. What the event loop and
the commit's thread do is told as `(event loop)`. The kernel and the HTTP server are not here: for
those, run `perf record -g` on the worker of a server under load.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Final

import uvloop

from bench.inprocess import Exchange, Worker, root_settings, running_worker
from bench.installation import scratch_folder
from bench.requests import COUNTED, Counted
from podstead.app.adapters.root import prepared_root

_PERIOD_S: Final = 0.001
_BATCH: Final = 256
_LOOP: Final = "(event loop)"
_OURS: Final = "/podstead/"
_LINES: Final = 40


@dataclass(slots=True)
class Samples:
    """How often what was seen running, and what it cost in all."""

    own: Counter[str] = field(default_factory=Counter)
    """By the innermost function of ours."""
    within: Counter[str] = field(default_factory=Counter)
    """By each function of ours on the stack, once."""
    rooms: Counter[str] = field(default_factory=Counter)
    """By the package of the innermost function of ours."""
    libraries: Counter[str] = field(default_factory=Counter)
    """By the file that is running, where it is not ours."""
    requests: int = 0
    cpu_s: float = 0.0

    def note(self, frame: FrameType | None) -> None:
        """Take one sample."""
        if frame is not None and _OURS not in frame.f_code.co_filename:
            self.libraries[_library(frame.f_code)] += 1
        seen: set[str] = set()
        while frame is not None:
            if _OURS in frame.f_code.co_filename:
                name = _name(frame.f_code)
                if not seen:
                    self.own[name] += 1
                    self.rooms[_room(frame.f_code)] += 1
                seen.add(name)
            frame = frame.f_back
        if not seen:
            self.own[_LOOP] += 1
            self.rooms[_LOOP] += 1
        self.within.update(seen)


def main(arguments: Sequence[str] | None = None) -> int:
    """Profile one of the ten requests and print the tables."""
    options = _parser().parse_args(arguments)
    counted = next(each for each in COUNTED if each.key == options.request)
    with scratch_folder("profile") as place, prepared_root(root_settings(place)):
        samples = uvloop.run(_sampled(place, counted, options.seconds))
    sys.stdout.write(report(counted, samples))
    return 0


def report(counted: Counted, samples: Samples) -> str:
    """Return the tables, in microseconds of a request."""
    each_us = samples.cpu_s * 1e6 / samples.requests
    count = samples.own.total()
    taken = f"{samples.requests:,} requests, {count:,} samples"
    parts = [f"{counted.title}: {each_us:,.0f} µs of processor time each, {taken}"]
    for title, counter, lines in (
        ("by package", samples.rooms, _LINES),
        ("by function, its own and its libraries'", samples.own, _LINES),
        ("by function, with all that it calls", samples.within, _LINES),
        ("in libraries", samples.libraries, _LINES // 2),
    ):
        parts.append(f"\n{title}")
        parts += [
            f"{number / count:6.1%} {number / count * each_us:7.1f} µs  {name}"
            for name, number in counter.most_common(lines)
        ]
    return "\n".join(parts) + "\n"


async def _sampled(place: Path, counted: Counted, seconds: float) -> Samples:
    samples = Samples()
    async with running_worker(root_settings(place)) as worker:
        await worker.make_pod()
        numbers = itertools.count()
        await worker.carry_out(await _prepared(worker, counted, numbers))  # a warm-up
        signal.signal(signal.SIGPROF, lambda _number, frame: samples.note(frame))
        while samples.cpu_s < seconds:
            every = await _prepared(worker, counted, numbers)
            gc.collect()
            began_s = time.process_time()
            signal.setitimer(signal.ITIMER_PROF, _PERIOD_S, _PERIOD_S)
            await worker.carry_out(every)
            signal.setitimer(signal.ITIMER_PROF, 0)
            samples.cpu_s += time.process_time() - began_s
            samples.requests += len(every)
            for exchange in every:
                exchange.require()
    return samples


async def _prepared(
    worker: Worker, counted: Counted, numbers: itertools.count[int]
) -> list[Exchange]:
    chosen = list(itertools.islice(numbers, _BATCH))
    for number in chosen:
        await worker.ask_all(counted.store(worker, number))
    return [Exchange(counted.ask(worker, number)) for number in chosen]


def _name(code: CodeType) -> str:
    return f"{code.co_filename.rpartition(_OURS)[2]} {code.co_qualname}"


def _room(code: CodeType) -> str:
    return code.co_filename.rpartition(_OURS)[2].rpartition("/")[0] or "podstead"


def _library(code: CodeType) -> str:
    return f"{'/'.join(code.co_filename.rsplit('/', 2)[-2:])} {code.co_qualname}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m bench.profiling", description=__doc__)
    parser.add_argument("request", choices=[counted.key for counted in COUNTED])
    parser.add_argument(
        "--seconds",
        type=float,
        default=8.0,
        help="how much processor time to take samples for (default 8)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
