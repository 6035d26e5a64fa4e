"""How is load generated, and what is reported about it?

The generator is wrk with one thread and `load.lua`; this module writes its plan, runs it and reads
its outcome. The exercise, not this module, decides whether the outcome is *correct*.
"""

from __future__ import annotations

import itertools
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.messages import REQUESTS_PER_ADDRESS, Request, WrongAnswer
from bench.site import LOOPBACK

SCRIPT: Final = Path(__file__).with_name("load.lua")
ANSWER_TIMEOUT_S: Final = 30
DRAIN_S: Final = 1
# More than there are connections: each may be about to send one when the end is noticed.
PROOFS_KEPT: Final = 256
# What wrk may take over the asked seconds before it is given up.
GRACE_S: Final = 60

_blocks = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Load:
    """Requests sent in turn, over and over.

    `tally`: count the answers by status, and give those in flight at the end of the time
    `DRAIN_S` more to arrive. The rate is then taken up to the last answer. Each request is sent
    `in_a_row` times before the next one's turn. `proofs` stand for `PROOF`, each once; nothing is
    sent any more when `PROOFS_KEPT` of them are left.
    """

    requests: Sequence[Request]
    tally: bool = False
    in_a_row: int = 1
    proofs: Sequence[str] = ()
    connection_each: bool = False
    """Whether `ab` opens a connection for each request."""
    certificate: Path | None = None
    """What the client shows, with its key in the same file. `ab` sends such a load, which is one
    request."""

    def request_of(self, number: int) -> int:
        """Return the index of the request that is sent as number `number`, counted from 1."""
        return number // self.in_a_row % len(self.requests)

    def last_number(self, index: int, sent: int) -> int:
        """Return the number of the last sending of request `index`, or one below 1 if none.

        For requests that are not sent several times in a row.
        """
        return sent - (sent - index) % len(self.requests)


@dataclass(frozen=True, slots=True)
class Intensity:
    """How long and over how many connections. wrk knows whole seconds only."""

    seconds: int
    connections: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What wrk saw. `sent` and `statuses` are only known for a tallied load."""

    answered: int
    duration_s: float
    received_bytes: int
    p50_ms: float
    p99_ms: float
    errors: Mapping[str, int]
    statuses: Mapping[int, int]
    sent: int
    locations: Sequence[str]
    connections: int

    @property
    def unanswered(self) -> int:
        """How many requests of a tallied load were cut off: carried out or not, nobody knows."""
        return self.sent - self.answered

    def require_no_errors(self) -> None:
        """Do nothing when every request was answered below status 400.

        Raises:
            WrongAnswer: a connection failed, an answer took too long, or had another status.
        """
        self._require_none_of(self.errors)
        if not self.answered:
            raise WrongAnswer("no answer at all")

    def require_whole_connections(self) -> None:
        """Do nothing when every request was answered in time, with whatever status.

        Raises:
            WrongAnswer: a connection failed, or an answer took too long.
        """
        self._require_none_of({kind: n for kind, n in self.errors.items() if kind != "status"})
        if not self.answered:
            raise WrongAnswer("no answer at all")

    def _require_none_of(self, errors: Mapping[str, int]) -> None:
        seen = {kind: count for kind, count in errors.items() if count}
        if seen:
            listed = ", ".join(f"{count} {kind}" for kind, count in sorted(seen.items()))
            statuses = f"; statuses {dict(self.statuses)}" if self.statuses else ""
            raise WrongAnswer(f"errors among {self.answered} answers: {listed}{statuses}")


def run(
    load: Load,
    port: int,
    intensity: Intensity,
    *,
    scheme: str = "http",
    prefix: Sequence[str] = (),
) -> Outcome:
    """Send the load to a port on the loopback interface. `prefix` is the command that starts wrk,
    such as one that pins it to a processor.

    Raises:
        WrongAnswer: wrk itself failed or did not come to an end.
    """
    with tempfile.TemporaryDirectory(prefix="bench-") as place:
        plan = Path(place) / "plan.lua"
        plan.write_text(_plan(load, intensity.seconds, next(_blocks)), encoding="ascii")
        seconds = intensity.seconds + (DRAIN_S if load.tally else 0)
        url = f"{scheme}://{LOOPBACK}:{port}/"
        text = _wrk(prefix, plan, url, seconds, intensity.connections)
    return _outcome(text, load, intensity.connections)


def _wrk(prefix: Sequence[str], plan: Path, url: str, seconds: int, connections: int) -> str:
    command = [
        *prefix,
        "wrk",
        "--threads=1",
        f"--connections={connections}",
        f"--duration={seconds}s",
        f"--timeout={ANSWER_TIMEOUT_S}s",
        f"--script={SCRIPT}",
        url,
        "--",
        str(plan),
    ]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds + GRACE_S, check=False
        )
    except subprocess.TimeoutExpired as late:
        raise WrongAnswer(f"the load did not end within {late.timeout} s") from late
    if done.returncode:
        raise WrongAnswer(f"wrk failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def _outcome(text: str, load: Load, connections: int) -> Outcome:
    rows = [line.split("\t")[1:] for line in text.splitlines() if line.startswith("outcome\t")]
    single = {row[0]: float(row[1]) for row in rows if len(row) == 2 and row[0] != "location"}
    if "requests" not in single:
        raise WrongAnswer(f"wrk told nothing: {text[-300:]}")
    return Outcome(
        answered=int(single["requests"]),
        duration_s=single["answering_s"] if load.tally else single["duration_us"] / 1e6,
        received_bytes=int(single["received_bytes"]),
        p50_ms=single["p50_us"] / 1e3,
        p99_ms=single["p99_us"] / 1e3,
        errors={row[1]: int(row[2]) for row in rows if row[0] == "error"},
        statuses={int(row[1]): int(row[2]) for row in rows if row[0] == "status"},
        sent=max(0, int(single["sequence"])),
        locations=[row[1] for row in rows if row[0] == "location"],
        connections=connections,
    )


def _plan(load: Load, send_s: int, block: int) -> str:
    requests = ",\n".join(_lua_request(request) for request in load.requests)
    proofs = ",\n".join(map(_lua_string, load.proofs))
    return (
        f"return {{ tally = {str(load.tally).lower()}, send_s = {send_s}, block = {block}, "
        f"per_address = {REQUESTS_PER_ADDRESS}, in_a_row = {load.in_a_row}, "
        f"requests = {{\n{requests}\n}}, proofs_kept = {PROOFS_KEPT}, "
        f"proofs = {{\n{proofs}\n}} }}\n"
    )


def _lua_request(request: Request) -> str:
    headers = ", ".join(
        f"[{_lua_string(name)}] = {_lua_string(value)}" for name, value in request.headers.items()
    )
    body = f", body = {_lua_string(request.body)}" if request.body else ""
    method, path = _lua_string(request.method), _lua_string(request.path)
    return f"{{ method = {method}, path = {path}, headers = {{ {headers} }}{body} }}"


def _lua_string(text: str | bytes) -> str:
    raw = text.encode() if isinstance(text, str) else text
    return f'"{"".join(_lua_character(byte) for byte in raw)}"'


def _lua_character(byte: int) -> str:
    plain = 32 <= byte < 127 and byte not in b'"\\'
    return chr(byte) if plain else f"\\{byte:03d}"
