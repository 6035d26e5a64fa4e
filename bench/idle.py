"""How long does a server take to start, and how much memory does it hold?

For `podstead start` with one worker on a given root: the time from the start of the command to the
first response, the least of some starts; the memory of the idle server, with shared pages divided
among those who share them (PSS) and in full (RSS); and that memory while it is under load.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Final

from bench import load
from bench.documents import card
from bench.load import Intensity, Load
from bench.messages import JSON_LD, SEQUENCE
from bench.processes import RunningServer, free_port
from bench.rounds import progress
from bench.servers import pod_with_token
from bench.site import LOOPBACK
from podstead.config import Settings

STARTS: Final = 5
STARTED_WITHIN_S: Final = 0.6
IDLE_MIB: Final = 80
MOST_GROWTH: Final = 1.1
"""What the memory may grow by from the first half of the load to the second."""

_SETTLED_S: Final = 2.0
_SLICE_S: Final = 5
_CONNECTIONS: Final = 32
_MIB: Final = 1_048_576
_REPLACED: Final = 256

Figures = tuple[str, str, bool]
"""A title, what was measured, and whether that is what was asked for."""


def idle_rows(settings: Settings, load_s: int) -> Iterator[Figures]:
    """Start a server on the root several times, and load the last one for so many seconds."""
    log = settings.root.with_suffix(".log")
    starts_s: list[float] = []
    cpu_s: list[float] = []
    for _ in range(STARTS):
        with _running(settings, log) as (server, _port, took_s):
            starts_s.append(took_s)
            cpu_s.append(server.cpu_s())
    told = f"{min(starts_s):.2f} s, median {statistics.median(starts_s):.2f} s"
    cost = f"{min(cpu_s):.2f} s of processor time (under {STARTED_WITHIN_S} s)"
    yield "start to first response", f"{told}; {cost}", min(starts_s) < STARTED_WITHIN_S
    with _running(settings, log) as (server, port, _took_s):
        time.sleep(_SETTLED_S)
        pss_mib, rss_mib = server.pss_bytes() / _MIB, server.rss_bytes() / _MIB
        told = f"PSS {pss_mib:.0f} MiB, RSS {rss_mib:.0f} MiB (at most {IDLE_MIB} PSS)"
        yield "idle memory, main process and one worker", told, pss_mib <= IDLE_MIB
        worker_mib = server.largest_child_pss_bytes() / _MIB
        yield "idle memory, the worker alone", f"PSS {worker_mib:.0f} MiB", worker_mib <= IDLE_MIB
        if load_s:
            yield _under_load(server, port, load_s)


@contextmanager
def _running(settings: Settings, log: Path) -> Iterator[tuple[RunningServer, int, float]]:
    port = free_port()
    program = str(Path(sys.executable).with_name("podstead"))
    where = ["--host", LOOPBACK, "--port", str(port), "--root", str(settings.root)]
    how = ["--base-url", settings.base_url, "--workers", "1", "--quiet"]
    began_s = time.monotonic()
    server = RunningServer([program, "start", *where, *how], port=port, log=log)
    try:
        connection = HTTPConnection(LOOPBACK, port, timeout=60)
        connection.request("GET", "/", headers={"Accept": "text/html"})
        connection.getresponse().read()
        took_s = time.monotonic() - began_s
        connection.close()
        yield server, port, took_s
    finally:
        server.stop()


def _under_load(server: RunningServer, port: int, load_s: int) -> Figures:
    """Replace documents and read one, in turn, and look at the memory after each slice."""
    site = pod_with_token(port, {})
    typed = {"Content-Type": JSON_LD}
    body = card(SEQUENCE)
    writes = [
        site.request("PUT", f"load/{n}.jsonld", headers=typed, body=body, authorized=True)
        for n in range(_REPLACED)
    ]
    seen_mib: list[float] = []
    answered = 0
    deadline_s = time.monotonic() + load_s
    while time.monotonic() < deadline_s or len(seen_mib) < len(("first half", "second half")):
        outcome = load.run(Load(writes, tally=True), port, Intensity(_SLICE_S, _CONNECTIONS))
        read = site.request("GET", "load/0.jsonld", headers={"Accept": JSON_LD}, authorized=True)
        reads = load.run(Load([read]), port, Intensity(_SLICE_S, _CONNECTIONS))
        answered += outcome.answered + reads.answered
        seen_mib.append(server.pss_bytes() / _MIB)
        progress(f"memory under load: {seen_mib[-1]:.0f} MiB")
    half = len(seen_mib) // 2
    growth = statistics.mean(seen_mib[half:]) / statistics.mean(seen_mib[:half])
    told = (
        f"{seen_mib[0]:.0f} to {seen_mib[-1]:.0f} MiB PSS in {load_s} s, {answered:,} responses; "
        f"second half {growth:.2f} of the first (at most {MOST_GROWTH})"
    )
    return "memory under load", told, growth <= MOST_GROWTH
