"""How processes are run and ended, with programs that misbehave in the place of git."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from podstead.config import StartRefused
from podstead.core.errors import BadRequest, Overloaded, ServerTrouble
from podstead.features.git import processes as git_processes
from podstead.features.git.processes import GitProcesses, find_git
from tests.support.waiting import wait_until

ENVIRONMENT = {"PATH": os.defpath}
HEAD = r"printf 'Content-Type: a/b\r\n\r\n'"
LONG_S = 60.0
SHORT_S = 0.05


def program(tmp_path: Path, *lines: str) -> Path:
    """A shell script; its first act is to note its number."""
    path = tmp_path / "git"
    path.write_text("\n".join(["#!/bin/sh", f"echo $$ >{tmp_path}/pid", *lines]))
    path.chmod(0o755)
    return path


def is_gone(tmp_path: Path) -> bool:
    """Whether the program has ended and was waited for, if it ever came to say its number."""
    noted = tmp_path / "pid"
    pid = noted.read_text() if noted.exists() else ""
    if not pid:
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    return False


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that do not end are not waited for."""
    monkeypatch.setattr(git_processes, "_PATIENCE_S", SHORT_S)
    monkeypatch.setattr(git_processes, "_TERM_LIMIT_S", 10 * SHORT_S)


async def in_thread(condition: Callable[[], bool]) -> None:
    """Wait for a condition while the event loop goes on."""
    await asyncio.to_thread(wait_until, condition, "what the program does")


async def pieces(*content: bytes) -> AsyncIterator[bytes]:
    for piece in content:
        yield piece


async def said(processes: GitProcesses, *content: bytes) -> bytes:
    """All of an answer but its head."""
    running = await processes.answer(ENVIRONMENT, pieces(*content), requester="a", holding=None)
    assert running.head == b"Content-Type: a/b"
    return b"".join([chunk async for chunk in running.chunks()])


async def test_content_goes_in_and_comes_out(tmp_path: Path) -> None:
    processes = GitProcesses(program(tmp_path, HEAD, "cat"), max_processes=1, idle_timeout_s=LONG_S)
    large = [os.urandom(50_000) for _ in range(40)]
    # What is said while it listens waits in the pipe, which holds less than all.
    assert await said(processes, b"a", b"b") == b"ab"
    assert await said(processes) == b""
    script = program(tmp_path, f"cat >{tmp_path}/all; {HEAD}; cat {tmp_path}/all")
    processes = GitProcesses(script, max_processes=1, idle_timeout_s=LONG_S)
    assert await said(processes, *large) == b"".join(large)
    assert is_gone(tmp_path)


async def test_a_program_whose_content_is_cut_may_end_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_processes, "_PATIENCE_S", LONG_S)
    script = program(tmp_path, f"cat >{tmp_path}/taken", HEAD, f"touch {tmp_path}/cleared")
    processes = GitProcesses(script, max_processes=1, idle_timeout_s=LONG_S)

    async def cut() -> AsyncIterator[bytes]:
        yield b"first"
        yield b"last"
        taken = tmp_path / "taken"
        await in_thread(lambda: taken.exists() and taken.read_bytes() == b"first")
        raise BadRequest("It ended early")

    with pytest.raises(BadRequest):
        await processes.answer(ENVIRONMENT, cut(), requester="a", holding=None)
    assert is_gone(tmp_path)
    assert (tmp_path / "cleared").exists()
    assert (tmp_path / "taken").read_bytes() == b"first"


async def test_a_program_that_wants_no_more_may_still_answer(tmp_path: Path) -> None:
    script = program(tmp_path, "exec 0<&-", HEAD, "echo refused")
    processes = GitProcesses(script, max_processes=1, idle_timeout_s=LONG_S)
    assert await said(processes, *[bytes(100_000)] * 20) == b"refused\n"


@pytest.mark.parametrize(
    "lines",
    [
        ("exit 1",),
        ("echo no head",),
        ("head -c 100000 /dev/zero; printf '\\r\\n\\r\\n'",),
        ("head -c 9000 /dev/zero; printf '\\r\\n\\r\\n'",),
    ],
)
async def test_no_head_is_trouble(tmp_path: Path, lines: tuple[str, ...]) -> None:
    processes = GitProcesses(program(tmp_path, *lines), max_processes=1, idle_timeout_s=LONG_S)
    for _ in range(2):  # the slot is free again
        with pytest.raises(ServerTrouble):
            await said(processes)
        assert is_gone(tmp_path)


@pytest.mark.parametrize(
    "lines",
    [
        ("cat >/dev/null; sleep 1000",),
        ("sleep 1000",),
        ("cat >/dev/null", HEAD, "sleep 1000"),
        ("cat >/dev/null", HEAD, "while :; do echo x; done"),
    ],
)
@pytest.mark.usefixtures("impatient")
async def test_what_goes_on_no_more_is_ended(tmp_path: Path, lines: tuple[str, ...]) -> None:
    """A program that neither takes nor gives, and a client that takes nothing."""
    processes = GitProcesses(program(tmp_path, *lines), max_processes=1, idle_timeout_s=SHORT_S)

    async def ask() -> None:
        running = await processes.answer(
            ENVIRONMENT, pieces(bytes(500_000)), requester="a", holding=None
        )
        async for _ in running.chunks():
            await in_thread(lambda: is_gone(tmp_path))  # the client takes nothing more

    with pytest.raises(ServerTrouble):
        await ask()
    assert is_gone(tmp_path)


async def test_a_client_that_is_slow_to_send_is_not_the_programs_fault(tmp_path: Path) -> None:
    """Its time does not run while the client is awaited."""
    processes = GitProcesses(program(tmp_path, HEAD, "cat"), max_processes=1, idle_timeout_s=LONG_S)
    watched: list[asyncio.TimerHandle | None] = []

    async def slow() -> AsyncIterator[bytes]:
        for piece in (b"a", b"b", b"c"):
            watched.extend(each._timer for each in processes._running)
            yield piece

    running = await processes.answer(ENVIRONMENT, slow(), requester="a", holding=None)
    assert watched == [None, None, None]
    assert running._timer is not None
    assert b"".join([chunk async for chunk in running.chunks()]) == b"abc"


@pytest.mark.usefixtures("impatient")
async def test_ending_ends_the_whole_group_however_it_resists(tmp_path: Path) -> None:
    script = program(tmp_path, "trap '' TERM", HEAD, "sleep 1000 & sleep 1000; sleep 1000")
    processes = GitProcesses(script, max_processes=1, idle_timeout_s=LONG_S)
    running = await processes.answer(ENVIRONMENT, pieces(), requester="a", holding=None)
    await asyncio.gather(running.end(), processes.close())
    await running.end()
    assert is_gone(tmp_path)


@pytest.mark.usefixtures("impatient")
async def test_so_many_answer_at_once_and_the_next_has_to_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_processes, "_WAIT_FOR_SLOT_S", SHORT_S)
    script = program(tmp_path, HEAD, "echo x; sleep 1000")
    processes = GitProcesses(script, max_processes=2, idle_timeout_s=LONG_S)
    first = await processes.answer(ENVIRONMENT, pieces(), requester="a", holding=None)
    await processes.answer(ENVIRONMENT, pieces(), requester="b", holding=None)
    with pytest.raises(Overloaded):
        await processes.answer(ENVIRONMENT, pieces(), requester="a", holding=None)
    await first.end()
    third = await processes.answer(ENVIRONMENT, pieces(), requester="a", holding=None)
    assert third.head
    await processes.close()


async def test_a_command_gives_its_output_or_is_trouble(tmp_path: Path) -> None:
    script = program(tmp_path, 'test "$1" = sleep && sleep 1000', "echo $1; test $1 = good")
    processes = GitProcesses(script, max_processes=1, idle_timeout_s=LONG_S)
    assert await processes.run("good", environment=ENVIRONMENT) == "good\n"
    with pytest.raises(ServerTrouble):
        await processes.run("bad", environment=ENVIRONMENT)
    with pytest.raises(ServerTrouble):
        await processes.run("sleep", environment=ENVIRONMENT, time_limit_s=SHORT_S)
    assert is_gone(tmp_path)


async def test_a_program_that_is_not_there_is_trouble(tmp_path: Path) -> None:
    processes = GitProcesses(tmp_path / "none", max_processes=1, idle_timeout_s=LONG_S)
    for _ in range(2):
        with pytest.raises(ServerTrouble):
            await processes.answer(ENVIRONMENT, pieces(), requester="a", holding=None)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (("echo git version 2.35.9",), "2.36 or newer"),
        (("echo something",), "2.36 or newer"),
        (("exit 1",), "cannot be run"),
        (("test $1 = version && echo git version 2.40.1 || echo /none",), "git-http-backend"),
    ],
)
def test_a_git_that_does_not_serve_refuses_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: tuple[str, ...], reason: str
) -> None:
    program(tmp_path, *lines)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.defpath}")
    with pytest.raises(StartRefused, match=reason):
        find_git()
