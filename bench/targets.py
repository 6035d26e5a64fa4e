"""Which targets are met? One row for each, computed from the figures of a run.

A target is a ratio within the run: of answers per second to a peer's or to another case of ours, or
of processor time, which has to stay below the peer's in every case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bench.rounds import Entry
from bench.watching import Watched

OURS: Final = "podstead"
WITH_TWO_WORKERS: Final = "podstead-2"
WITH_SOCKETS_PORT: Final = "podstead-sockets"
CPU_PEERS: Final = ("jss", "jss-quota")
WATCHER_KIBIBYTES: Final = 40
SECOND_WORKER_SHARE: Final = 0.05
"""By how much two workers may be slower or dearer than one where clients write."""

Cells = Mapping[str, Entry]


@dataclass(frozen=True, slots=True)
class Target:
    """One target: what it is about, what was asked for and what was reached."""

    title: str
    asked: str
    reached: str
    is_met: bool


def by_case(entries: Sequence[Entry]) -> dict[str, dict[str, Entry]]:
    """Return the entries by the key of their case and by column, in their order."""
    found: dict[str, dict[str, Entry]] = {}
    for entry in entries:
        found.setdefault(entry.case.key, {})[entry.column] = entry
    return found


def targets(entries: Sequence[Entry], watched: Sequence[Watched]) -> list[Target]:
    """Return the targets for which there are figures."""
    cases = by_case(entries)
    found: list[Target] = []
    for cells in cases.values():
        if OURS in cells:
            found.extend(_rates(cells))
            found.extend(_rates_among_ours(cells[OURS], cases))
            found.extend(_own_rates(cells[OURS]))
            found.extend(_processor_time(cells))
            found.extend(_two_workers(cells))
    found.extend(_sockets(watched))
    return found


def _rates(cells: Cells) -> Iterator[Target]:
    ours = cells[OURS]
    for column, goal in ours.case.goals.items():
        peer = cells.get(column)
        mine = ours.figure.median_per_s
        theirs = None if peer is None else peer.figure.median_per_s
        if mine is not None and theirs:
            yield _least(f"{ours.case.title}, answers/s to {column}", mine / theirs, goal)


def _rates_among_ours(ours: Entry, cases: Mapping[str, Cells]) -> Iterator[Target]:
    for key, goal in ours.case.own_goals.items():
        other = cases.get(key, {}).get(OURS)
        if other is None:
            continue
        mine, base = ours.figure, other.figure
        if mine.median_per_s is not None and base.median_per_s:
            title = f"{ours.case.title}, answers/s to '{other.case.title}'"
            yield _least(title, mine.median_per_s / base.median_per_s, goal)
        if mine.median_cpu_us is not None and base.median_cpu_us:
            title = f"{ours.case.title}, processor time to '{other.case.title}'"
            ratio = mine.median_cpu_us / base.median_cpu_us
            yield Target(title, f"at most {1 / goal:.2f}", f"{ratio:.2f}", ratio <= 1 / goal)


def _own_rates(ours: Entry) -> Iterator[Target]:
    least_per_s, mine = ours.case.least_per_s, ours.figure.median_per_s
    if least_per_s is not None and mine is not None:
        title = f"{ours.case.title}, answers/s"
        yield Target(title, f"at least {least_per_s:,.0f}", f"{mine:,.0f}", mine >= least_per_s)


def _processor_time(cells: Cells) -> Iterator[Target]:
    mine = cells[OURS].figure.median_cpu_us
    for column in CPU_PEERS:
        theirs = cells[column].figure.median_cpu_us if column in cells else None
        if mine is not None and theirs:
            title = f"{cells[OURS].case.title}, processor time to {column}"
            ratio = mine / theirs
            yield Target(title, "below 1", f"{ratio:.2f}", ratio < 1)


def _two_workers(cells: Cells) -> Iterator[Target]:
    if WITH_TWO_WORKERS not in cells:
        return
    one, two = cells[OURS].figure, cells[WITH_TWO_WORKERS].figure
    if not one.median_per_s or not two.median_per_s:
        return
    title = f"{cells[OURS].case.title}, two workers to one"
    least = 1 - SECOND_WORKER_SHARE
    yield _least(f"{title}, answers/s", two.median_per_s / one.median_per_s, least)
    if one.median_cpu_us and two.median_cpu_us:
        most, ratio = 1 + SECOND_WORKER_SHARE, two.median_cpu_us / one.median_cpu_us
        yield Target(f"{title}, processor time", f"at most {most}", f"{ratio:.2f}", ratio <= most)


def _sockets(watched: Sequence[Watched]) -> Iterator[Target]:
    cells = {(cell.watching.key, cell.column): cell for cell in watched if not cell.delays.why}
    for (key, column), cell in cells.items():
        if column not in {OURS, WITH_SOCKETS_PORT}:
            continue
        which = "" if column == OURS else ", with a port for sockets"
        if cell.delays.watcher_bytes is not None:
            kibibytes = cell.delays.watcher_bytes / 1024
            yield Target(
                f"{cell.watching.title}{which}, memory of a watcher",
                f"at most {WATCHER_KIBIBYTES} KiB",
                f"{kibibytes:.0f} KiB",
                kibibytes <= WATCHER_KIBIBYTES,
            )
        peer = cells.get((key, "jss"))
        if peer is not None:
            ratio = cell.delays.message_cpu_us / max(peer.delays.message_cpu_us, 0.1)
            title = f"{cell.watching.title}{which}, processor time of a message to jss"
            yield Target(title, "below 1", f"{ratio:.2f}", ratio < 1)
        if peer is not None and cell.watching.together:
            mine_ms, theirs_ms = cell.delays.median_ms, peer.delays.median_ms
            yield Target(
                f"{cell.watching.title}{which}, median",
                f"at most {theirs_ms:.1f} ms (jss)",
                f"{mine_ms:.1f} ms",
                mine_ms <= theirs_ms,
            )


def _least(title: str, ratio: float, goal: float) -> Target:
    return Target(title, f"at least {goal:g}", f"{ratio:.2f}", ratio >= goal)
