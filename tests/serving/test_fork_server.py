"""A process of the fork server behaves like one with an interpreter of its own, the oracle here."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import (
    REPOSITORY,
    ForkedProcess,
    Process,
    clean_environment,
    run_process,
    start_process,
)
from tests.support.server import DEADLINE_S
from tests.support.waiting import wait_until

MODULE = "tests.serving.process_facts"
FACTS = (sys.executable, "-m", MODULE)
SETTINGS = {"PODSTEAD_PORT": "4000", "TZ": "XXX-10:00", "TMPDIR": "/var/tmp"}


@contextlib.contextmanager
def running(*arguments: str, own_interpreter: bool = False) -> Iterator[Process]:
    environment = {**clean_environment(), **SETTINGS}
    process = start_process(
        [*FACTS, *arguments], environment=environment, own_interpreter=own_interpreter
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        try:
            yield process
        finally:
            process.kill()
            process.wait(DEADLINE_S)


def facts_of(process: Process) -> dict[str, Any]:
    assert process.stdout is not None
    facts: dict[str, Any] = json.loads(process.stdout.readline())
    return facts


def ending_of(process: Process) -> tuple[int, str, str]:
    """The exit code, and what comes on the streams from here on."""
    assert process.stdout is not None
    assert process.stderr is not None
    return process.wait(DEADLINE_S), process.stdout.read(), process.stderr.read()


def test_a_forked_process_finds_what_an_interpreter_of_its_own_finds() -> None:
    with running("exit") as forked, running("exit", own_interpreter=True) as own:
        assert isinstance(forked, ForkedProcess)
        assert isinstance(own, subprocess.Popen)
        found, expected = facts_of(forked), facts_of(own)
    assert found.pop("random") != expected.pop("random")
    assert found == expected


@pytest.mark.parametrize(
    ("end", "code"), [("exit", 0), ("message", 1), ("signal", -signal.SIGTERM), ("unknown", 0)]
)
def test_a_forked_process_ends_as_one_with_an_interpreter_of_its_own(end: str, code: int) -> None:
    with running(end) as forked, running(end, own_interpreter=True) as own:
        facts_of(forked), facts_of(own)
        assert ending_of(forked) == ending_of(own)
        assert forked.poll() == own.poll() == code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_signal_ends_a_forked_process_as_any_other(number: signal.Signals) -> None:
    with running("wait") as forked:
        facts_of(forked)
        with ThreadPoolExecutor() as pool:  # while another thread waits
            code = pool.submit(forked.wait, DEADLINE_S)
            forked.send_signal(number)
            assert code.result() == -number
        forked.kill()
        assert forked.returncode == -number


def test_a_process_that_runs_has_no_exit_code() -> None:
    with running("wait") as forked:
        facts_of(forked)
        assert forked.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            forked.wait(0)


def test_no_two_forked_processes_have_the_same_random_numbers() -> None:
    with running("exit") as first, running("exit") as second:
        numbers = [*facts_of(first)["random"], *facts_of(second)["random"]]
        assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("name", ["PYTHONPATH", "LD_LIBRARY_PATH", "LC_ALL"])
def test_what_an_interpreter_reads_at_its_start_gets_one(name: str) -> None:
    environment = {**clean_environment(), name: "C.UTF-8"}
    process = start_process([*FACTS, "exit"], environment=environment)
    assert isinstance(process, subprocess.Popen)
    process.communicate()


def test_a_finished_command_is_reported_as_by_subprocess(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "podstead.cli", "start", "--port", "x"]
    environment = clean_environment()
    told = run_process(command, folder=tmp_path, environment=environment, timeout_s=DEADLINE_S)
    expected = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert told.stdout == expected.stdout
    assert told.stderr == expected.stderr
    assert told.returncode == expected.returncode == 2


def test_no_forked_process_outlives_the_tests_that_started_it() -> None:
    program = f"""
import signal, os
from tests.support.processes import clean_environment, start_process
process = start_process({FACTS!r} + ("wait",), environment=clean_environment())
print(process.pid, flush=True)
process.stdout.readline()
os.kill(os.getpid(), signal.SIGKILL)
"""
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as tests:
        assert tests.stdout is not None
        pid = int(tests.stdout.readline())
        assert tests.wait(DEADLINE_S) == -signal.SIGKILL
        wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the child has ended")
