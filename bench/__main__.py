"""The command `python -m bench`: measure Podstead and its peers and print the report."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from types import FrameType
from typing import NoReturn

from bench import report
from bench.cases import CASES
from bench.installation import Missing, scratch_folder, system_command
from bench.nodes import report_nodes
from bench.peers import SERVERS
from bench.processes import NotStarted
from bench.provider import running_provider
from bench.report import Memory, Results
from bench.rounds import FAILURES, Schedule, entries, progress, run
from bench.servers import Server
from bench.targets import OURS
from bench.trials import TRIALS, Verdict
from bench.watching import WATCHINGS, watched

MEMORY = "memory"
NODES = "nodes"
COLUMNS = tuple(dict.fromkeys(kind.column for kind in SERVERS))
KEYS = (
    *(case.key for case in CASES),
    MEMORY,
    *(watching.key for watching in WATCHINGS),
    *(trial.key for trial in TRIALS),
    NODES,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 0 when our figures are all valid and the trials reached their goals."""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _end)
    try:
        results = None if options.only == [NODES] else _measured(options)
        if results is not None:
            _print(results, write_docs=options.write_docs)
        if NODES in options.only:
            report_nodes(write_docs=options.write_docs)
    except (Missing, NotStarted, *FAILURES) as failure:
        sys.stderr.write(f"bench: {failure}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("bench: interrupted, all servers stopped\n")
        return 130
    return 0 if results is None or results.reached() else 1


def _print(results: Results, *, write_docs: bool) -> None:
    text = report.markdown(results)
    sys.stdout.write(text + "\n")
    if write_docs:
        report.write_page(text, *report.place_of(results.columns))


def _measured(options: argparse.Namespace) -> Results:
    schedule = Schedule(options.rounds, options.seconds, 1, options.connections)
    cases = [case for case in CASES if case.key in options.only]
    with ExitStack() as cleanup:
        servers = _started(options, cleanup)
        idle_bytes = {server: server.rss_bytes() for server in servers}
        table = entries(cases, servers)
        run(table, schedule)
        memory = _memory(idle_bytes) if MEMORY in options.only else {}
        news = watched(options.only, servers)
        verdicts = _verdicts(options.only, servers)
    return Results(schedule, options.servers, table, memory, news, verdicts)


def _started(options: argparse.Namespace, cleanup: ExitStack) -> list[Server]:
    """Start the servers asked for, and have `cleanup` stop them and remove what they stored."""
    system_command("wrk")
    system_command("ab", "apache2-utils")
    place = cleanup.enter_context(scratch_folder("run"))
    provider = cleanup.enter_context(running_provider())
    servers = []
    for kind in SERVERS:
        if kind.column in options.servers:
            progress(f"starting {kind.__name__}")
            server = kind(place / kind.__name__.lower(), provider)
            cleanup.callback(server.stop)
            server.start()
            servers.append(server)
    return servers


def _memory(idle_bytes: dict[Server, int]) -> dict[str, Memory]:
    """Return what each column's first server holds, which is the one that most cases asked."""
    sizes: dict[str, Memory] = {}
    for server, idle in idle_bytes.items():
        sizes.setdefault(server.column, Memory(idle, server.rss_bytes()))
    return sizes


def _verdicts(only: Sequence[str], servers: Sequence[Server]) -> list[Verdict]:
    ours = [server for server in servers if server.column == OURS][:1]
    trials = [trial for trial in TRIALS if trial.key in only]
    return [trial.verdict(server.site) for server in ours for trial in trials]


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


class _Listed:
    """An option's value: names out of a known list, separated by commas."""

    def __init__(self, known: Sequence[str]) -> None:
        self._known = known

    def __call__(self, text: str) -> list[str]:
        named = [part.strip() for part in text.split(",")]
        strange = [part for part in named if part not in self._known]
        if strange:
            raise argparse.ArgumentTypeError(
                f"{', '.join(strange)}: not one of {', '.join(self._known)}"
            )
        return [name for name in self._known if name in named]


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number}: must be 1 or more")
    return number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m bench", description=__doc__)
    parser.add_argument(
        "--rounds", type=_positive, default=5, help="number of measured rounds (default 5)"
    )
    parser.add_argument(
        "--seconds", type=_positive, default=3, help="length of each round (default 3)"
    )
    parser.add_argument(
        "--connections",
        type=_positive,
        default=32,
        help="number of simultaneous connections (default 32)",
    )
    parser.add_argument(
        "--only",
        type=_Listed(KEYS),
        default=list(KEYS),
        metavar="CASE,…",
        help=f"cases to run, out of {', '.join(KEYS)} (default all)",
    )
    parser.add_argument(
        "--servers",
        type=_Listed(COLUMNS),
        default=list(COLUMNS),
        metavar="NAME,…",
        help=f"servers to measure, out of {', '.join(COLUMNS)} (default all)",
    )
    parser.add_argument(
        "--write-docs",
        action="store_true",
        help="write the tables into docs/evidence/benchmarks.md, or into performance.md where the "
        "servers are podstead and podstead-2",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
