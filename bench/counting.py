"""The command `python -m bench.counting`: how many instructions does each of ten requests take?

Times differ from run to run and from machine to machine by far more than a change of the code does;
counts of instructions hardly do. Valgrind (callgrind) counts them for one worker in one process,
without the HTTP server: for each request some short runs and some long ones. The difference of
their medians, divided by the difference of their lengths, is free of everything that does not
belong to a request. The clock stands still, hashes and randomness have a fixed seed, and the
collector of garbage is off.

The counts are compared with those in `counts.json`, which `--record` writes. They belong to a
version of Python, its libraries and a kind of processor: on others, expect an offset.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import uvloop

from bench.inprocess import Exchange, Worker, request_settings, running_worker
from bench.installation import Missing, scratch_folder, system_command
from bench.requests import COUNTED, Counted
from bench.walks import functions_entered
from podstead.app.adapters.root import prepared_root

RECORDED: Final = Path(__file__).with_name("counts.json")
MOST_CHANGE: Final = 0.03
"""By how much a count may differ from the recorded one without a line in the change log."""

_WARM: Final = 16
_SHORT: Final = 8
_LONG: Final = 24
_RUNS: Final = (_WARM, *(_SHORT, _LONG) * 3)
"""How many requests are sent between two marks."""
_SWITCH_S: Final = 5.0
"""How long a thread may keep the interpreter: one that is slowed down would be asked too often."""
_MARK: Final = "getppid"
"""The function of the C library at which callgrind writes down what it has counted so far."""


@dataclass(frozen=True, slots=True)
class Count:
    """What one request takes."""

    instructions: int
    functions: int


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: a count beside the recorded one."""

    counted: Counted
    now: Count
    recorded: Count | None

    @property
    def change(self) -> float:
        """How much has been added, as a fraction of what is recorded."""
        if self.recorded is None:
            return 0.0
        return self.now.instructions / self.recorded.instructions - 1

    @property
    def is_notable(self) -> bool:
        """Whether the change has to be explained."""
        return self.recorded is None or abs(self.change) > MOST_CHANGE

    def __str__(self) -> str:
        before = self.recorded
        cells = [
            f"{self.counted.title:34}",
            f"{self.now.instructions:11,}",
            f"{before.instructions:11,}" if before else f"{'none':>11}",
            f"{self.change:+7.1%}" if before else f"{'':7}",
            f"{self.now.functions:9,}",
            f"{before.functions:9,}" if before else f"{'none':>9}",
        ]
        return "  ".join(cells) + ("  <--" if self.is_notable else "")


def main(arguments: Sequence[str] | None = None) -> int:
    """Count, and compare or record; 1 when a count differs by more than `MOST_CHANGE`."""
    options = _parser().parse_args(arguments)
    if options.inside is not None:
        _carry_out(options.inside)
        return 0
    try:
        counts = measured(options.keep)
    except Missing as failure:
        sys.stderr.write(f"bench-count: {failure}\n")
        return 2
    if options.record:
        RECORDED.write_text(recorded_text(counts), encoding="utf-8")
        sys.stdout.write(f"{len(counts)} counts recorded in {RECORDED.name}\n")
        return 0
    environment, recorded = read_recorded(RECORDED)
    rows = compared(counts, recorded)
    sys.stdout.write(table(rows) + "\n")
    if environment != _environment():
        sys.stdout.write(f"Recorded with {environment}, counted with {_environment()}.\n")
    notable = [row.counted.title for row in rows if row.is_notable]
    if notable:
        sys.stdout.write(
            f"More than {MOST_CHANGE:.0%} from what is recorded: {'; '.join(notable)}. "
            "Say why in CHANGELOG.md, then run `make bench-count ARGS=--record`.\n"
        )
    return 1 if notable else 0


def compared(counts: Mapping[str, Count], recorded: Mapping[str, Count]) -> list[Row]:
    """Return one row for each request that was counted."""
    return [
        Row(counted, counts[counted.key], recorded.get(counted.key))
        for counted in COUNTED
        if counted.key in counts
    ]


def table(rows: Sequence[Row]) -> str:
    """Return the rows with a header above them."""
    head = [
        f"{'request':34}",
        f"{'instr. now':>11}",
        f"{'recorded':>11}",
        f"{'change':>7}",
        f"{'functions':>9}",
        f"{'recorded':>9}",
    ]
    return "\n".join(["  ".join(head), *map(str, rows)])


def recorded_text(counts: Mapping[str, Count]) -> str:
    """Return what is kept of a run."""
    rows = {
        key: {"instructions": count.instructions, "functions": count.functions}
        for key, count in counts.items()
    }
    return json.dumps({"environment": _environment(), "counts": rows}, indent=2) + "\n"


def read_recorded(path: Path) -> tuple[str, dict[str, Count]]:
    """Return the environment and the counts of the recorded run; none if there is no record."""
    if not path.exists():
        return _environment(), {}
    kept = json.loads(path.read_text(encoding="utf-8"))
    counts = {
        key: Count(int(row["instructions"]), int(row["functions"]))
        for key, row in kept["counts"].items()
    }
    return str(kept["environment"]), counts


def measured(keep: Path | None = None) -> dict[str, Count]:
    """Count every request. `keep` takes what callgrind wrote, for `callgrind_annotate`.

    Raises:
        Missing: there is no Valgrind, or it failed.
    """
    valgrind = system_command("valgrind")
    with scratch_folder("count") as place:
        functions = functions_entered(place / "walks")
        with prepared_root(request_settings(place / "root")):
            uvloop.run(_store(place))
        _run(valgrind, place)
        parts = sorted(place.glob("out.*.*"), key=lambda part: int(part.suffix[1:]))
        instructions = per_request([_total(part) for part in parts])
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            for counted, part in zip(COUNTED, parts[2 :: len(_RUNS)], strict=False):
                shutil.copy(part, keep / f"{counted.key}.callgrind")
    return {
        counted.key: Count(count, functions[counted.key])
        for counted, count in zip(COUNTED, instructions, strict=True)
    }


def per_request(totals: Sequence[int]) -> list[int]:
    """Return the instructions of one request of each kind.

    `totals` has the numbers of the runs of the first, then those of the second, and so on.
    """
    counts: list[int] = []
    for index, counted in enumerate(COUNTED):
        _warm, *rest = totals[index * len(_RUNS) : (index + 1) * len(_RUNS)]
        added = statistics.median(rest[1::2]) - statistics.median(rest[::2])
        counts.append(round(added / (_LONG - _SHORT) / counted.times))
    return counts


def _total(part: Path) -> int:
    with part.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if found := re.match(r"(?:summary|totals): (\d+)", line):
                return int(found[1])
    raise Missing(f"{part.name} has no total")


def _run(valgrind: Path, place: Path) -> None:
    command = [
        *(str(valgrind), "--tool=callgrind", f"--dump-before={_MARK}"),
        f"--callgrind-out-file={place}/out.%p",
        *(sys.executable, "-m", "bench.counting", "--inside", str(place)),
    ]
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Missing(f"valgrind failed: {done.stderr.strip()[-1000:]}")


# --- In the processes that store, and that are counted --------------------------------------------


async def _store(place: Path) -> None:
    async with running_worker(request_settings(place / "root"), seed=1) as worker:
        await worker.make_pod()
        for counted in COUNTED:
            for number in range(sum(_RUNS)):
                await worker.ask_all(counted.store(worker, number))
        (place / "token").write_text(worker.token, encoding="ascii")


def _carry_out(place: Path) -> None:
    sys.setswitchinterval(_SWITCH_S)
    with prepared_root(request_settings(place / "root")):
        uvloop.run(_ask_every(place))


async def _ask_every(place: Path) -> None:
    async with running_worker(request_settings(place / "root"), seed=2) as worker:
        worker.token = (place / "token").read_text(encoding="ascii")
        gc.disable()
        for counted in COUNTED:
            numbers = itertools.count()
            # All are made before the first is counted.
            runs = [_exchanges(worker, counted, numbers, count) for count in _RUNS]
            for run in runs:
                await worker.carry_out(run)
                os.getppid()
            for exchange in itertools.chain(*runs):
                exchange.require()


def _exchanges(
    worker: Worker, counted: Counted, numbers: Iterator[int], count: int
) -> list[Exchange]:
    return [Exchange(counted.ask(worker, next(numbers))) for _ in range(count * counted.times)]


def _environment() -> str:
    return f"Python {platform.python_version()}, {platform.machine()}, {platform.libc_ver()[0]}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m bench.counting", description=__doc__)
    parser.add_argument("--record", action="store_true", help="write the counts to counts.json")
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="FOLDER",
        help="keep the profiles of the long runs, for callgrind_annotate",
    )
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
