"""The command `python -m bench.workers`: what do more workers bring?

One, two and four workers, measured in turn over the same kind of load: reads of one document, which
each worker answers from memory, and writes to one pod, which have to wait for each other. The load
generator is pinned to the last processor and the server to the others, if there are three or more;
with two, the server may use both, and what it gains is what the generator leaves.

The second figure is the processor time of all the server's processes for each good response: on
paper, a machine with enough free cores answers as many times a worker's rate as it has workers, as
long as that time stays the same.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.documents import PUBLIC_CARD
from bench.exercises import CreateByPut, Exercise, Read, Replace
from bench.installation import scratch_folder, system_command
from bench.load import Intensity, run
from bench.messages import JSON_LD
from bench.provider import Provider, running_provider
from bench.rounds import progress
from bench.servers import Podstead
from bench.site import Headers

WORKERS: Final = (1, 2, 4)
READ_GOAL: Final = 1.7
"""What two workers must reach over one in reads, where the generator is elsewhere."""
WRITE_GOAL: Final = 1.0
_LEAST_CORES: Final = 3
# A worker may wait for the others' writes while hundreds of those sent later are stored.
_RESOURCES: Final = 4096

EXERCISES: Final[tuple[tuple[str, Exercise, float], ...]] = (
    ("GET, public", Read(PUBLIC_CARD, JSON_LD), READ_GOAL),
    ("PUT, replacing, one pod", Replace("private/replaced/", _RESOURCES), WRITE_GOAL),
    ("PUT, creating, one pod", CreateByPut("private/put/"), WRITE_GOAL),
)


class PodsteadWithWorkers(Podstead):
    """The same with more workers, on processors of their own where there are some."""

    def __init__(self, folder: Path, provider: Provider, workers: int) -> None:
        super().__init__(folder, provider)
        self.workers = workers

    def command(self) -> tuple[list[str], Headers]:
        command, environment = super().command()
        return [*pinned(server_cores()), *command], environment


@dataclass(slots=True)
class Figures:
    """What one number of workers did in one exercise, by round."""

    rates_per_s: list[float] = field(default_factory=list)
    cpu_us: list[float] = field(default_factory=list)

    @property
    def rate_per_s(self) -> float:
        """The median."""
        return statistics.median(self.rates_per_s)

    @property
    def cost_us(self) -> float:
        """The median."""
        return statistics.median(self.cpu_us)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print a table; 0 whatever it says, since that depends on the machine."""
    options = _parser().parse_args(arguments)
    system_command("wrk")
    with ExitStack() as cleanup:
        place = cleanup.enter_context(scratch_folder("workers"))
        provider = cleanup.enter_context(running_provider())
        servers = []
        for workers in WORKERS:
            server = PodsteadWithWorkers(place / str(workers), provider, workers)
            cleanup.callback(server.stop)
            server.start()
            servers.append(server)
        table = {
            title: _measured(exercise, servers, options.rounds, options.seconds)
            for title, exercise, _ in EXERCISES
        }
    sys.stdout.write(report(table, len(os.sched_getaffinity(0))) + "\n")
    return 0


def report(table: dict[str, dict[int, Figures]], cores: int) -> str:
    """Return the table in Markdown, with the rates as multiples of one worker's."""
    header = ["responses/s (ratio to 1 worker); processor time of each"]
    header += [f"{workers} worker{'s' if workers > 1 else ''}" for workers in WORKERS]
    rows = [[*header, "goal for 2"], ["---", *["---:"] * (len(WORKERS) + 1)]]
    for title, _, goal in EXERCISES:
        figures = table[title]
        base = figures[WORKERS[0]]
        cells = [
            f"{each.rate_per_s:,.0f} ({each.rate_per_s / base.rate_per_s:.2f}); "
            f"{each.cost_us:,.0f} µs"
            for each in (figures[workers] for workers in WORKERS)
        ]
        is_met = figures[2].rate_per_s / base.rate_per_s >= goal
        rows.append([title, *cells, f"{goal:g}: {'met' if is_met else '**missed**'}"])
    told = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    where = (
        "the generator on one of its own" if cores >= _LEAST_CORES else "shared with the generator"
    )
    return f"{cores} processors, {where}.\n\n{told}"


def server_cores() -> list[int]:
    """The processors of the server."""
    cores = sorted(os.sched_getaffinity(0))
    return cores[:-1] if len(cores) >= _LEAST_CORES else cores


def generator_cores() -> list[int]:
    """The processor of the load generator."""
    return sorted(os.sched_getaffinity(0))[-1:]


def pinned(cores: Sequence[int]) -> list[str]:
    """Return how a command begins that is to run on these processors only."""
    return ["taskset", "--cpu-list", ",".join(map(str, cores))]


def _measured(
    exercise: Exercise, servers: Sequence[PodsteadWithWorkers], rounds: int, seconds: int
) -> dict[int, Figures]:
    figures = {server.workers: Figures() for server in servers}
    for server in servers:
        exercise.furnish(server.site)
    for number in range(rounds + 1):
        for server in servers:
            label = f"workers-{number}"
            made = exercise.load(server.site, label)
            before_s = server.cpu_s()
            outcome = run(
                made, server.port, Intensity(seconds, 32), prefix=pinned(generator_cores())
            )
            cpu_us = (server.cpu_s() - before_s) * 1e6 / outcome.answered
            exercise.verify(server.site, label, made, outcome)
            rate_per_s = outcome.answered / outcome.duration_s
            progress(f"{server.workers} workers: {rate_per_s:,.0f}/s, {cpu_us:.0f} µs")
            if number:
                figures[server.workers].rates_per_s.append(rate_per_s)
                figures[server.workers].cpu_us.append(cpu_us)
    return figures


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m bench.workers", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="measured rounds (default 3)")
    parser.add_argument("--seconds", type=int, default=3, help="length of a round (default 3)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
