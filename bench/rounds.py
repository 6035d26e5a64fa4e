"""In which order is everything measured, and what makes a figure void?

In each round and for each case the servers are measured one after the other (A B C D, A B C D …),
so that a slow minute of the machine affects all of them. Round 0 is a warm-up and is discarded. One
failure makes the figure of that server in that case void, and the server is not measured again.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from http.client import HTTPException
from typing import Final

from bench import ab, load
from bench.cases import Case
from bench.exercises import Effect, good_answers
from bench.load import Intensity, Outcome
from bench.messages import NotMeasurable, WrongAnswer
from bench.patches import Patch
from bench.servers import Server

NOT_ASKED: Final = "is measured in other cases only"
# Everything by which a server can fail to give a right answer.
FAILURES: Final = (WrongAnswer, OSError, HTTPException)


@dataclass(slots=True)
class Figure:
    """What one server did in one case. `void` and `absent` say why there is no number."""

    rates_per_s: list[float] = field(default_factory=list)
    cpu_us: list[float] = field(default_factory=list)
    """Processor time of the server for each good answer, by round."""
    effect: Effect | None = None
    void: str | None = None
    absent: str | None = None

    @property
    def median_per_s(self) -> float | None:
        """The median of the counted rounds; None if void, absent or not measured."""
        if self.void or self.absent or not self.rates_per_s:
            return None
        return statistics.median(self.rates_per_s)

    @property
    def median_cpu_us(self) -> float | None:
        """The median processor time of an answer; None where there is no rate."""
        return None if self.median_per_s is None else statistics.median(self.cpu_us)


@dataclass(frozen=True, slots=True)
class Schedule:
    """How often and how hard."""

    rounds: int
    seconds: int
    warm_up_seconds: int
    connections: int

    def steps(self) -> Iterator[tuple[int, Intensity]]:
        """Yield each round's number, 0 for the warm-up, and its intensity."""
        yield 0, Intensity(self.warm_up_seconds, self.connections)
        for number in range(1, self.rounds + 1):
            yield number, Intensity(self.seconds, self.connections)


@dataclass(frozen=True, slots=True)
class Entry:
    """One cell of the table while it is measured; no server when none offers what is needed."""

    case: Case
    column: str
    server: Server | None
    figure: Figure

    def furnish(self) -> None:
        """Store what the case needs; a failure makes the figure void."""
        if self.server is None:
            return
        try:
            self.case.exercise.furnish(self.server.site)
        except FAILURES as failure:
            self.figure.void = f"not furnished: {failure}"

    def measure(self, number: int, intensity: Intensity) -> None:
        """Run one round unless the figure is void already."""
        if self.server is None or self.figure.void or self.figure.absent:
            return
        where = f"{self.case.key:14} {self.column:9} round {number}"
        try:
            outcome, effect, cpu_s = self._round(self.server, number, intensity)
        except NotMeasurable as reason:
            self.figure.absent = str(reason)
            progress(f"{where}: left out, {reason}")
            return
        except FAILURES as failure:
            self.figure.void = f"round {number}: {failure}"
            progress(f"{where}: VOID, {failure}")
            return
        counted = outcome.answered if effect is None else effect.present
        rate_per_s = counted / outcome.duration_s
        if not counted:
            self.figure.void = f"round {number}: no good answer"
            progress(f"{where}: VOID, no good answer")
            return
        cpu_us = cpu_s * 1e6 / counted
        delays = f"p50 {outcome.p50_ms:.1f} p99 {outcome.p99_ms:.1f} ms"
        told = f"{rate_per_s:9.0f}/s, {cpu_us:6.0f} µs of CPU, {delays}"
        progress(f"{where}: {told}" + (f"; {effect}" if effect else ""))
        if number:
            self.figure.rates_per_s.append(rate_per_s)
            self.figure.cpu_us.append(cpu_us)
            if effect is not None:
                self.figure.effect = (self.figure.effect or Effect()) + effect

    def _round(
        self, server: Server, number: int, intensity: Intensity
    ) -> tuple[Outcome, Effect | None, float]:
        exercise, label = self.case.exercise, f"round-{number}"
        made = exercise.load(server.site, label)
        connections = self.case.connections or intensity.connections
        intensity = replace(intensity, connections=connections)
        before_s = server.cpu_s()
        if made.certificate is None:
            outcome = load.run(made, server.port, intensity, scheme=server.site.scheme)
        else:
            request, kept = made.requests[0], not made.connection_each
            outcome = ab.run(request, made.certificate, server.port, intensity, kept=kept)
        cpu_s = server.cpu_s() - before_s
        # What it acknowledges wrongly is found among patches only.
        if server.is_excused and not isinstance(exercise, Patch):
            return outcome, good_answers(outcome), cpu_s
        return outcome, exercise.verify(server.site, label, made, outcome), cpu_s


def entries(cases: Sequence[Case], servers: Sequence[Server]) -> list[Entry]:
    """Return one entry for each case and column, in the order of measuring."""
    columns = list(dict.fromkeys(server.column for server in servers))
    return [
        _entry(case, [server for server in servers if server.column == column])
        for case in cases
        for column in columns
    ]


def run(table: Sequence[Entry], schedule: Schedule) -> None:
    """Furnish all sites, then measure all rounds of all entries."""
    for entry in table:
        progress(f"storing for {entry.case.key}, {entry.column}")
        entry.furnish()
    for number, intensity in schedule.steps():
        for entry in table:
            entry.measure(number, intensity)


def progress(text: str) -> None:
    """Tell on standard error how far the run is."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stderr.flush()


def _entry(case: Case, candidates: Sequence[Server]) -> Entry:
    able = [server for server in candidates if server.takes_part(case.needs)]
    if able:
        return Entry(case, able[0].column, able[0], Figure())
    if not any(server.asked_only_for <= case.needs for server in candidates):
        return Entry(case, candidates[0].column, None, Figure(absent=NOT_ASKED))
    lacking = case.needs - frozenset().union(*(server.features for server in candidates))
    reason = "does not support " + ", ".join(sorted(feature.value for feature in lacking))
    return Entry(case, candidates[0].column, None, Figure(absent=reason))
