"""How are the figures reported: Markdown tables, and their place in the documentation."""

from __future__ import annotations

import math
import os
import platform
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

from bench.installation import system_command
from bench.peers import Css, Jss
from bench.rounds import NOT_ASKED, Entry, Figure, Schedule
from bench.targets import CPU_PEERS, OURS, WITH_TWO_WORKERS, by_case, targets
from bench.trials import Verdict
from bench.watching import WATCHERS, Delays, Watched

_DOCS: Final = Path(__file__).parent.parent / "docs"
PAGE: Final = _DOCS / "evidence/benchmarks.md"
PERFORMANCE_PAGE: Final = _DOCS / "evidence/performance.md"
SCALE_PAGE: Final = _DOCS / "operate/scale.md"


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident memory of a process tree, before the first document and after all rounds."""

    idle_bytes: int
    loaded_bytes: int


@dataclass(frozen=True, slots=True)
class Results:
    """The results of one run."""

    schedule: Schedule
    columns: Sequence[str]
    entries: Sequence[Entry]
    memory: Mapping[str, Memory]
    watched: Sequence[Watched]
    verdicts: Sequence[Verdict]

    def reached(self) -> bool:
        """Return whether all of our own figures are valid, no patch is lost and no trial failed."""
        ours = [entry.figure for entry in self.entries if entry.column in {OURS, WITH_TWO_WORKERS}]
        return (
            all(not figure.void for figure in ours)
            and all(not cell.delays.why for cell in self.watched if cell.column == OURS)
            and all(figure.effect is None or figure.effect.is_whole for figure in ours)
            and all(verdict.reached for verdict in self.verdicts)
        )


def markdown(results: Results) -> str:
    """Return the report between the markers, without them."""
    parts = [
        _circumstances(results),
        _rates(results),
        _processor_time(results),
        _remarks(results.entries),
    ]
    if results.memory:
        parts.append(_memory(results))
    if results.watched:
        parts.append(_delays(results))
    if met := _targets(results):
        parts.append(met)
    if results.verdicts:
        parts.append("\n".join(_bullet(verdict) for verdict in results.verdicts))
    return "\n\n".join(part for part in parts if part)


def place_of(columns: Sequence[str]) -> tuple[Path, str]:
    """Return the page and the section of a run with these columns.

    One of two workers beside one is complete by itself, and takes no part of a record that has
    other servers in it.
    """
    if set(columns) == {OURS, WITH_TWO_WORKERS}:
        return PERFORMANCE_PAGE, "two-workers"
    return PAGE, "bench"


def write_page(text: str, page: Path = PAGE, section: str = "bench") -> None:
    """Write the report between the markers of a section of the page.

    Raises:
        ValueError: the page does not have both markers.
    """
    first, last = f"<!-- {section}: begin -->", f"<!-- {section}: end -->"
    before, begin, rest = page.read_text(encoding="utf-8").partition(first)
    _, end, after = rest.partition(last)
    if not (begin and end):
        raise ValueError(f"{page} has no {first} … {last}")
    page.write_text(f"{before}{first}\n{text}\n{last}{after}", encoding="utf-8")


def _rates(results: Results) -> str:
    peers = [column for column in results.columns if column != OURS]
    ours = OURS in results.columns
    ratios = [f"/ {peer}" for peer in peers] if ours else []
    header = ["requests/s", *results.columns, *ratios]
    rows = [header, ["---", *["---:"] * (len(header) - 1)]]
    cases = by_case(results.entries)
    for cells in cases.values():
        case = next(iter(cells.values())).case
        row = [case.title, *(_rate(cells[column].figure) for column in results.columns)]
        if ours:
            row += [_ratio(cells[OURS], cells[peer]) for peer in peers]
        rows.append(row)
    return _table(rows) if cases else ""


def _processor_time(results: Results) -> str:
    """The second figure of each case, which other work on the machine disturbs less."""
    peers = [column for column in CPU_PEERS if column in results.columns]
    ratios = [f"/ {peer}" for peer in peers] if OURS in results.columns else []
    header = ["processor time, µs per good answer", *results.columns, *ratios]
    rows = [header, ["---", *["---:"] * (len(header) - 1)]]
    cases = by_case(results.entries)
    for cells in cases.values():
        case = next(iter(cells.values())).case
        row = [case.title, *(_microseconds(cells[column].figure) for column in results.columns)]
        if ratios:
            row += [_cost_ratio(cells[OURS].figure, cells[peer].figure) for peer in peers]
        rows.append(row)
    return _table(rows) if cases else ""


def _microseconds(figure: Figure) -> str:
    if figure.absent:
        return "n/a"
    cost_us = figure.median_cpu_us
    return "void" if cost_us is None else f"{cost_us:,.0f}"


def _cost_ratio(ours: Figure, peer: Figure) -> str:
    mine, theirs = ours.median_cpu_us, peer.median_cpu_us
    if mine is None or not theirs:
        return "n/a"
    ratio = mine / theirs
    return f"{ratio:.2f}" if ratio < 1 else f"**{ratio:.2f}**"


def _targets(results: Results) -> str:
    found = targets(results.entries, results.watched)
    met = sum(target.is_met for target in found)
    rows = [[f"targets, {met} of {len(found)} met", "asked", "reached", "met"]]
    rows.append(["---", "---:", "---:", "---"])
    rows += [
        [target.title, target.asked, target.reached, "yes" if target.is_met else "**no**"]
        for target in found
    ]
    return _table(rows) if found else ""


def _rate(figure: Figure) -> str:
    if figure.absent:
        return "n/a"
    median = figure.median_per_s
    return "void" if median is None else f"{median:,.0f}"


def _ratio(ours: Entry, peer: Entry) -> str:
    mine, theirs = ours.figure.median_per_s, peer.figure.median_per_s
    if mine is None or theirs is None:
        return "n/a"
    goal = ours.case.goals.get(peer.column)
    ratio = mine / theirs if theirs else math.inf
    if goal is None:
        return f"{ratio:.2f}"
    if ratio >= goal:
        return f"{ratio:.2f} (goal {goal:g})"
    return f"**{ratio:.2f}** (goal {goal:g}: {1 - ratio / goal:.0%} short)"


def _remarks(entries: Sequence[Entry]) -> str:
    """One line for each column and each reason why a figure is missing or patches were lost."""
    cases: dict[tuple[str, str], list[str]] = {}
    for entry in entries:
        reason = entry.figure.absent or entry.figure.void
        effect = entry.figure.effect
        if reason is None and effect is not None and not effect.is_whole:
            reason = str(effect)
        if reason and reason != NOT_ASKED:
            cases.setdefault((entry.column, reason), []).append(entry.case.key)
    return "\n".join(
        f"- {column}, {', '.join(keys)}: {reason}" for (column, reason), keys in cases.items()
    )


def _memory(results: Results) -> str:
    columns = [column for column in results.columns if column in results.memory]
    sizes = [results.memory[column] for column in columns]
    return _table(
        [
            ["resident memory in MiB", *columns],
            ["---", *["---:"] * len(columns)],
            ["idle", *(_mebibytes(size.idle_bytes) for size in sizes)],
            ["after all rounds", *(_mebibytes(size.loaded_bytes) for size in sizes)],
        ]
    )


def _delays(results: Results) -> str:
    present = {cell.column for cell in results.watched}
    columns = [column for column in results.columns if column in present]
    by_watching: dict[str, dict[str, Watched]] = {}
    for cell in results.watched:
        by_watching.setdefault(cell.watching.title, {})[cell.column] = cell
    rows = [[f"ms from PUT to notification, {WATCHERS:,} watchers", *columns]]
    rows.append(["---", *["---:"] * len(columns)])
    for title, cells in by_watching.items():
        told = [_delay(cells[column].delays) if column in cells else "n/a" for column in columns]
        rows.append([title, *told])
    return _table(rows)


def _delay(delays: Delays) -> str:
    if delays.why:
        return f"void: {delays.why}"
    figures = f"{delays.median_ms:.1f}, p99 {delays.p99_ms:.1f}"
    cost = f"{delays.message_cpu_us:.0f} µs per message"
    told = f"{figures}; {cost}"
    if delays.watcher_bytes is None:
        return told
    return f"{told}; {delays.watcher_bytes / 1024:.0f} KiB per watcher"


def _mebibytes(size_bytes: int) -> str:
    return f"{size_bytes / 1_048_576:.0f}"


def _bullet(verdict: Verdict) -> str:
    return f"- {verdict.text}{'' if verdict.reached else ' — **not reached**'}"


def _table(rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _circumstances(results: Results) -> str:
    schedule = results.schedule
    versions = ", ".join(
        f"{name} {version}" for name, version in _versions(results.columns).items()
    )
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1_073_741_824
    return (
        f"Measured on {time.strftime('%Y-%m-%d')}: {_processor()}, {os.cpu_count()} cores shared "
        f"by server and load generator, {memory_gib:.0f} GiB, "
        f"{platform.system()} {platform.release()}. {versions}. "
        f"Medians of {schedule.rounds} interleaved rounds of {schedule.seconds} s "
        f"over {schedule.connections} connections."
    )


def _processor() -> str:
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found.group(1) if found else platform.machine()


def _versions(columns: Sequence[str]) -> dict[str, str]:
    """Return the versions of the programs that took part."""
    known: dict[str, str] = {}
    if OURS in columns:
        known |= {OURS: metadata.version(OURS), "Python": platform.python_version()}
    peers = [kind for kind in (Jss, Css) if kind.column in columns]
    known |= dict(kind.package for kind in peers)
    if peers:
        known["Node.js"] = _said("node", "--version")
    if "nginx" in columns:
        known["nginx"] = _said(str(system_command("nginx")), "-v")
    return known | {"wrk": _said("wrk", "--version")}


def _said(*command: str) -> str:
    """Return the version number in the output of a command."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"\d+(\.\d+)+", done.stdout + done.stderr)
    return found.group() if found else "of unknown version"
