"""The command `python -m bench.nodes`: what do PostgreSQL, a second node and distance cost?

The same server with one worker in several settings, measured in turn: on SQLite, on PostgreSQL and
S3 on the same machine, two nodes of that (with half of the connections each), and on a PostgreSQL
to which each round trip takes 1 and 5 ms longer. For each request the report has the rate over many
connections, the processor time of the nodes and of the database, and how long one alone takes.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from bench import load
from bench.databases import MeasuredDatabase, running_postgresql, running_s3
from bench.documents import HUNDRED, MEBIBYTE, PRIVATE_CARD, PUBLIC_CARD
from bench.exercises import Exercise, Read, Replace
from bench.installation import scratch_folder, system_command
from bench.load import Intensity, Load, Outcome
from bench.messages import JSON_LD, OCTETS, SEQUENCE
from bench.patches import N3_INSERT, Patch
from bench.processes import RunningServer, free_port
from bench.provider import Provider, running_provider
from bench.report import SCALE_PAGE, write_page
from bench.rounds import progress
from bench.servers import Podstead
from bench.site import Headers, Site
from tests.support.seaweedfs import s3_environment

DISTANCES_MS: Final = (1, 5)
CONNECTIONS: Final = 32
ROUNDS: Final = 1
SECONDS: Final = 2
_ALONE: Final = Intensity(1, 1)


@dataclass(frozen=True, slots=True)
class EachNew:
    """A read of which no response can be used again: a header field is another each time."""

    read: Read

    def furnish(self, site: Site) -> None:
        """Store the subject."""
        self.read.furnish(site)

    def load(self, site: Site, label: str) -> Load:
        """The request with a number in it."""
        same = self.read.load(site, label)
        request = same.requests[0]
        headers = {**request.headers, "X-Number": SEQUENCE}
        return replace(same, requests=[replace(request, headers=headers)])

    def verify(self, site: Site, label: str, load: Load, outcome: Outcome) -> None:
        """Every answer was right."""
        del site, label, load
        outcome.require_no_errors()


_PUBLIC: Final = Read(PUBLIC_CARD, JSON_LD)
_PRIVATE: Final = Read(PRIVATE_CARD, JSON_LD, authorized=True)

EXERCISES: Final[tuple[tuple[str, Exercise], ...]] = (
    ("GET, public, the same again", _PUBLIC),
    ("GET, public, each new", EachNew(_PUBLIC)),
    ("GET, private, the same again", _PRIVATE),
    ("GET, private, each new", EachNew(_PRIVATE)),
    ("GET, container of 100, each new", EachNew(Read(HUNDRED, JSON_LD))),
    ("GET, 1 MiB", Read(MEBIBYTE, OCTETS)),
    ("PUT, replacing", Replace("private/replaced/")),
    ("PATCH, N3, inserting", Patch("private/n3-insert/", N3_INSERT)),
)


class Nodes(Podstead):
    """One or two servers on one PostgreSQL database, with large bodies in S3 if there is one."""

    def __init__(
        self,
        folder: Path,
        provider: Provider,
        database: str,
        *,
        count: int = 1,
        bodies: str | None = None,
    ) -> None:
        super().__init__(folder, provider)
        self.database = database
        self.bodies = bodies
        self.ports = [self.port, *(free_port() for _ in range(count - 1))]
        self._others: list[RunningServer] = []

    def command(self) -> tuple[list[str], Headers]:
        command, environment = super().command()
        added = {"PODSTEAD_DATABASE": self.database}
        if self.bodies is not None:
            added |= {"PODSTEAD_BODIES": self.bodies, **s3_environment()}
        return command, {**environment, **added}

    def start(self) -> None:
        super().start()
        command, environment = self.command()
        place = command.index("--port") + 1
        for port in self.ports[1:]:
            command[place] = str(port)
            log = self.folder / f"server-{port}.log"
            self._others.append(RunningServer(command, port=port, log=log, environment=environment))

    def stop(self) -> None:
        for other in self._others:
            other.stop()
        super().stop()

    def cpu_s(self) -> float:
        return super().cpu_s() + sum(other.cpu_s() for other in self._others)


@dataclass(slots=True)
class Cell:
    """What one setting did in one exercise, by round."""

    rates_per_s: list[float] = field(default_factory=list)
    node_us: list[float] = field(default_factory=list)
    """Processor time of the nodes for each answer."""
    database_us: list[float] = field(default_factory=list)
    alone_ms: list[float] = field(default_factory=list)
    """How long a request takes while no other is sent, the median."""

    def __str__(self) -> str:
        rate, alone_ms = statistics.median(self.rates_per_s), statistics.median(self.alone_ms)
        node_us, database_us = map(statistics.median, (self.node_us, self.database_us))
        cpu = f"{node_us:.0f}" + (f" + {database_us:.0f}" if database_us else "")
        return f"{rate:,.0f}/s; {cpu} µs; {alone_ms:.1f} ms"


@dataclass(frozen=True, slots=True)
class Setting:
    """One column of the report."""

    title: str
    server: Podstead
    database_cpu_s: Callable[[], float]

    def measure(
        self, exercise: Exercise, label: str, seconds: int, cell: Cell, *, is_warm_up: bool
    ) -> None:
        """Run one round over many connections, and one over a single one."""
        ports = getattr(self.server, "ports", [self.server.port])
        made = exercise.load(self.server.site, label)
        before_s, before_database_s = self.server.cpu_s(), self.database_cpu_s()
        intensity = Intensity(seconds, CONNECTIONS // len(ports))
        with ThreadPoolExecutor(len(ports)) as pool:
            outcomes = list(pool.map(lambda port: load.run(made, port, intensity), ports))
        node_s = self.server.cpu_s() - before_s
        database_s = self.database_cpu_s() - before_database_s
        answered = sum(outcome.answered for outcome in outcomes)
        for outcome in outcomes:
            outcome.require_no_errors()
        if len(outcomes) == 1:
            exercise.verify(self.server.site, label, made, outcomes[0])
        cell.rates_per_s.append(sum(each.answered / each.duration_s for each in outcomes))
        cell.node_us.append(node_s * 1e6 / answered)
        cell.database_us.append(database_s * 1e6 / answered)
        if is_warm_up:
            return
        alone = load.run(exercise.load(self.server.site, f"{label}-alone"), ports[0], _ALONE)
        alone.require_no_errors()
        cell.alone_ms.append(alone.p50_ms)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print a table."""
    options = _parser().parse_args(arguments)
    report_nodes(options.rounds, options.seconds, write_docs=options.write_docs)
    return 0


def report_nodes(rounds: int = ROUNDS, seconds: int = SECONDS, *, write_docs: bool = False) -> None:
    """Measure, print a table, and write it into the documentation if that is wanted."""
    system_command("wrk")
    with ExitStack() as cleanup:
        place = cleanup.enter_context(scratch_folder("nodes"))
        provider = cleanup.enter_context(running_provider())
        database = cleanup.enter_context(running_postgresql())
        new_bodies = cleanup.enter_context(running_s3()).new_location
        settings = _settings(place, provider, database, new_bodies, cleanup)
        for setting in settings:
            progress(f"starting {setting.title}")
            cleanup.callback(setting.server.stop)
            setting.server.start()
        cells = _measured(settings, rounds, seconds)
    text = _table([setting.title for setting in settings], cells)
    sys.stdout.write(text + "\n")
    if write_docs:
        write_page(text, SCALE_PAGE, "nodes")


def _settings(
    place: Path,
    provider: Provider,
    database: MeasuredDatabase,
    new_bodies: Callable[[], str],
    cleanup: ExitStack,
) -> list[Setting]:
    def nodes(name: str, url: str, count: int = 1) -> Nodes:
        return Nodes(place / name, provider, url, count=count, bodies=new_bodies())

    near, cpu_s = database.create_database, database.cpu_s
    settings = [
        Setting("SQLite", Podstead(place / "sqlite", provider), lambda: 0.0),
        Setting("PostgreSQL and S3", nodes("near", near()), cpu_s),
        Setting("two nodes", nodes("two", near(), 2), cpu_s),
    ]
    for delay_ms in DISTANCES_MS:
        url = cleanup.enter_context(database.seen_from_afar(near(), delay_ms))
        settings.append(Setting(f"{delay_ms} ms away", nodes(f"far-{delay_ms}", url), cpu_s))
    return settings


def _measured(
    settings: Sequence[Setting], rounds: int, seconds: int
) -> Mapping[str, Sequence[Cell]]:
    cells = {title: [Cell() for _ in settings] for title, _ in EXERCISES}
    for title, exercise in EXERCISES:
        for setting in settings:
            exercise.furnish(setting.server.site)
        for number in range(rounds + 1):  # of which the first is a warm-up
            for setting, cell in zip(settings, cells[title], strict=True):
                label, is_warm_up = f"round-{number}", not number
                if is_warm_up:
                    setting.measure(exercise, label, 1, Cell(), is_warm_up=True)
                else:
                    setting.measure(exercise, label, seconds, cell, is_warm_up=False)
                    progress(f"{title}, {setting.title}, round {number}: {cell}")
    return cells


def _table(titles: Sequence[str], cells: Mapping[str, Sequence[Cell]]) -> str:
    rows = [
        ["request", *titles],
        ["---", *("---:" for _ in titles)],
        *([title, *map(str, row)] for title, row in cells.items()),
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m bench.nodes", description=__doc__)
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help=f"measured rounds (default {ROUNDS})"
    )
    parser.add_argument(
        "--seconds", type=int, default=SECONDS, help=f"length of a round (default {SECONDS})"
    )
    parser.add_argument(
        "--write-docs", action="store_true", help="write the table into docs/operate/scale.md"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
