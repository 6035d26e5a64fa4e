"""Runs git.

Each process leads its own process group, and the whole group is ended together. What a process
writes to standard error goes to the log. A process that neither reads nor writes for too long is
ended: its client may have stopped reading.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import re
import shutil
import signal
import subprocess
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Final

from podstead.app.adapters.fair_semaphore import FairSemaphore
from podstead.config import StartRefused
from podstead.core.errors import DiskFull, ServerTrouble
from podstead.features.git.configuration import environment
from podstead.features.git.permission import Permission, Permit
from podstead.features.git.protocol import MAX_HEAD_BYTES

logger = logging.getLogger("podstead.git")

_OLDEST: Final = (2, 36)
"""The first release that syncs everything in a push to disk (core.fsync)."""
_CHUNK_BYTES: Final = 64 * 1024
_WAIT_FOR_SLOT_S: Final = 10
_PATIENCE_S: Final = 2
_TERM_LIMIT_S: Final = 5
IDLE_TIMEOUT_S: Final = 60
"""How long git, or a client that reads its response, may be idle before the server aborts the
request: a client that stops reading must not hold a process forever."""
_END_OF_HEAD: Final = b"\r\n\r\n"
_MAX_LOGGED_LINES: Final = 20
_NO_SPACE: Final = os.strerror(errno.ENOSPC).encode()
_VERSION: Final = re.compile(r"git version (\d+)\.(\d+)")


def find_git() -> Path:
    """The absolute path of a suitable git. Raises StartRefused."""
    found = shutil.which("git")
    if found is None:
        raise StartRefused(
            "--git requires git, which is not installed. Install it, or start without --git."
        )
    git = Path(found).resolve()
    version = _VERSION.match(_said(git, "version"))
    if version is None or (int(version[1]), int(version[2])) < _OLDEST:
        raise StartRefused(
            f"--git requires git {_OLDEST[0]}.{_OLDEST[1]} or newer, but {git} is older. Install a "
            "newer version, or start without --git."
        )
    if not (Path(_said(git, "--exec-path").strip()) / "git-http-backend").is_file():
        raise StartRefused(
            f"--git requires git-http-backend, which {git} does not include. Install the complete "
            "git package, or start without --git."
        )
    return git


def _said(git: Path, argument: str) -> str:
    try:
        ended = subprocess.run(  # noqa: S603 - the program that was found, and a word of ours
            [git, argument], capture_output=True, check=True, text=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise StartRefused(
            f"{git} cannot be run. Repair the installation, or start without --git."
        ) from error
    return ended.stdout


class GitProcesses:
    """Runs git, with a limited number of processes at once."""

    def __init__(
        self, git: Path, *, max_processes: int, idle_timeout_s: float = IDLE_TIMEOUT_S
    ) -> None:
        """At most ``max_processes`` run at once, half of them for one requester. Further requests
        wait a little."""
        self._git = str(git)
        self._slots = FairSemaphore(
            max_processes,
            wait_s=_WAIT_FOR_SLOT_S,
            refusal="Too many git requests are in progress; try again later",
        )
        self._idle_timeout_s = idle_timeout_s
        self._running: set[HttpBackend] = set()
        self.search_path = os.pathsep.join((str(git.parent), os.defpath))

    async def close(self) -> None:
        """End all running processes."""
        await asyncio.gather(*(each.end() for each in self._running))

    async def answer(
        self,
        environment: Mapping[str, str],
        content: AsyncIterator[bytes],
        *,
        requester: str,
        holding: int | None,
        permit: Permit | None = None,
    ) -> HttpBackend:
        """Start ``git http-backend`` and send it the content."""
        await self._slots.acquire(requester)
        permission = None if permit is None else Permission(permit)
        inherited: tuple[int, ...] = () if holding is None else (holding,)
        if permission is not None:
            environment = {**environment, **permission.variables}
            inherited += permission.descriptors
        try:
            process = await self._start(
                "http-backend", environment=environment, inherited=inherited
            )
        except BaseException:
            self._slots.release(requester)
            if permission is not None:
                permission.abandon()
            raise
        if permission is not None:
            permission.start()
        over = partial(self._is_over, requester)
        answering = HttpBackend(process, self._idle_timeout_s, over, permission)
        self._running.add(answering)
        try:
            await answering.take(content)
            await answering.read_head()
        except BaseException:
            await answering.end()
            raise
        return answering

    def _is_over(self, requester: str, answering: HttpBackend) -> None:
        self._running.discard(answering)
        self._slots.release(requester)

    async def run(
        self,
        *arguments: str,
        environment: Mapping[str, str],
        holding: int | None = None,
        time_limit_s: float = 60,
    ) -> str:
        """Run ``git …`` and wait until it ends."""
        process = await self._start(
            *arguments,
            environment=environment,
            inherited=() if holding is None else (holding,),
            takes_input=False,
        )
        talk = asyncio.create_task(process.communicate())
        try:
            in_time, _ = await asyncio.wait({talk}, timeout=time_limit_s)
        finally:
            await _end_group(process)
            output, errors = await talk
        _log(errors)
        if process.returncode != 0:
            if _NO_SPACE in errors:
                raise DiskFull
            raise ServerTrouble("git failed" if in_time else "git took too long")
        return output.decode("utf-8", "surrogateescape")

    async def run_in(
        self,
        repository: Path,
        *arguments: str,
        holding: FileIO | None = None,
        time_limit_s: float = 60,
        changes: Mapping[str, str] | None = None,
    ) -> str:
        """Run ``git …`` in a repository, which it holds a claim on; ``changes`` are additional
        settings."""
        place = str(repository)
        return await self.run(
            f"--git-dir={place}",
            *arguments,
            environment=environment(self.search_path, repository=place, changes=changes),
            holding=None if holding is None else holding.fileno(),
            time_limit_s=time_limit_s,
        )

    async def initialize(self, directory: Path) -> None:
        """Make a directory an empty repository."""
        place = str(directory)
        await self.run(
            *("init", "--quiet", "--bare", "--template=", "--initial-branch=main", place),
            environment=environment(self.search_path, repository=place),
        )

    async def _start(
        self,
        *arguments: str,
        environment: Mapping[str, str],
        inherited: tuple[int, ...],
        takes_input: bool = True,
    ) -> Process:
        try:
            return await asyncio.create_subprocess_exec(
                self._git,
                *arguments,
                env=environment,
                cwd="/",
                stdin=PIPE if takes_input else DEVNULL,
                stdout=PIPE,
                stderr=PIPE,
                limit=_CHUNK_BYTES,
                pass_fds=inherited,
                start_new_session=True,
            )
        except OSError as error:
            raise ServerTrouble("git could not be started") from error


def installed_git() -> GitProcesses | None:
    """One process of git at a time, for a command; ``None`` if no suitable git is installed."""
    try:
        return GitProcesses(find_git(), max_processes=1)
    except StartRefused:
        return None


class HttpBackend:
    """A process of ``git http-backend`` that has started to respond; ``head`` is the head of its
    response, without the empty line after it."""

    def __init__(
        self,
        process: Process,
        idle_timeout_s: float,
        over: Callable[[HttpBackend], None],
        permission: Permission | None,
    ) -> None:
        assert process.stdin is not None  # noqa: S101 - it was started with pipes
        assert process.stdout is not None  # noqa: S101
        self._process = process
        self._input = process.stdin
        self._output = process.stdout
        self._idle_timeout_s = idle_timeout_s
        self._over = over
        self._permission = permission
        self._stalled = False
        self._reading = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._errors = asyncio.create_task(_log_errors(process))
        self._ending: asyncio.Task[None] | None = None
        self.head = b""

    async def take(self, content: AsyncIterator[bytes]) -> None:
        """Send the content as it arrives, no faster than git reads it.

        The last chunk, without which a push is incomplete, is held back until the whole content has
        arrived: the permission of its sender may be revoked meanwhile.
        """
        held: bytes | None = None
        async for piece in content:
            if held is not None and not await self._give(held):
                return
            held = piece
        if held is None or await self._give(held):
            self._input.close()

    async def _give(self, piece: bytes) -> bool:
        """Whether git read the chunk. If it did not, its output explains why."""
        if self._input.is_closing():
            return False
        self._watch()
        try:
            self._input.write(piece)
            await self._input.drain()
        except ConnectionError:
            self._check_stall()
            return False
        finally:
            self._unwatch()  # the client has to send the next chunk
        return True

    async def read_head(self) -> None:
        """Read the head of the response. Raises ServerTrouble."""
        self._watch()
        try:
            async with self._reading:
                head = await self._output.readuntil(_END_OF_HEAD)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            self._check_stall()
            raise ServerTrouble("git did not respond") from error
        if len(head) > MAX_HEAD_BYTES:
            raise ServerTrouble("The headers of git's response are too long")
        self.head = head.removesuffix(_END_OF_HEAD)

    async def chunks(self) -> AsyncIterator[bytes]:
        """The output of git, until it ends."""
        try:
            while chunk := await self._read():
                self._watch()
                yield chunk
            await self._process.wait()
            self._check_stall()
            if self._process.returncode != 0:
                logger.info("git http-backend ended with exit code %d", self._process.returncode)
        finally:
            await self.end()

    async def _read(self) -> bytes:
        async with self._reading:
            return await self._output.read(_CHUNK_BYTES)

    async def end(self) -> None:
        """End git at once, and wait until it has ended."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._end())
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        self._unwatch()
        try:
            if self._permission is not None:
                await self._permission.end()
            self._input.close()
            # git cleans up only if it ends by itself, because its input has ended
            if not await self._ends_in(_PATIENCE_S):
                await _end_group(self._process)
                if not await self._ends_in(_TERM_LIMIT_S):
                    logger.warning("git has left a process behind that does not end")
        finally:
            self._over(self)

    async def _ends_in(self, limit_s: float) -> bool:
        """Whether git, and every process that it started, ends in time; its output is discarded."""
        try:
            async with asyncio.timeout(limit_s):
                while await self._read():
                    pass
                await asyncio.shield(self._errors)
                await self._process.wait()
        except TimeoutError:
            return False
        return True

    # --- progress -----------------------------------------------------------------------------

    def _watch(self) -> None:
        """Restart the time limit, because git or its client made progress."""
        self._unwatch()
        if self._ending is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._idle_timeout_s, self._stall)

    def _unwatch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _stall(self) -> None:
        logger.warning("git or its client did nothing for too long; it was ended")
        self._stalled = True
        self._ending = asyncio.create_task(self._end())

    def _check_stall(self) -> None:
        if self._stalled:
            raise ServerTrouble("git or its client was idle for too long")


async def _end_group(process: Process) -> None:
    """End a process that is still running, and those that it started; wait until it has ended."""
    if process.returncode is not None:
        return
    # The process id is also the group's, and cannot be reused before the process is waited for.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        async with asyncio.timeout(_TERM_LIMIT_S):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def _log_errors(process: Process) -> None:
    errors = process.stderr
    assert errors is not None  # noqa: S101 - it was started with pipes
    kept = b""
    while chunk := await errors.read(_CHUNK_BYTES):
        kept = (kept + chunk)[:_CHUNK_BYTES]
    _log(kept)


def _log(errors: bytes) -> None:
    for line in errors.splitlines()[:_MAX_LOGGED_LINES]:
        logger.info("git: %s", line.decode("utf-8", "backslashreplace"))
