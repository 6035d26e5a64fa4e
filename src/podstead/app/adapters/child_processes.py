"""Starts and ends processes of this server that work on what strangers send.

Each limits itself, as ``rdf_child.py`` does, and is killed by whoever started it when it takes too
long.
"""

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process


class ChildProcess:
    """A running process, and the pipes to it."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, module: str, *arguments: str) -> "ChildProcess":
        """Run a module. Raises OSError."""
        starting = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                sys.executable,
                "-I",  # neither the environment nor the current folder decides what it runs
                "-m",
                module,
                *arguments,
                env={"LC_ALL": "C.UTF-8"},
                cwd="/",
                stdin=PIPE,
                stdout=PIPE,
                stderr=DEVNULL,
                start_new_session=True,
            )
        )
        try:
            return cls(await asyncio.shield(starting))
        except asyncio.CancelledError:
            # A start that is cancelled halfway leaves the process running.
            with contextlib.suppress(OSError):
                await cls(await starting).end()
            raise

    @property
    def status(self) -> int | None:
        """The exit status; ``None`` while the process is running."""
        return self._process.returncode

    async def communicate(self, content: bytes) -> bytes:
        """Send all of the input, and receive all of the output."""
        return (await self._process.communicate(content))[0]

    async def send(self, content: bytes) -> None:
        """Send a part of the input. Raises ConnectionError if the process has ended."""
        pipe = self._process.stdin
        if pipe is not None:  # always, since it was asked for
            pipe.write(content)
            await pipe.drain()

    async def receive(self, size_bytes: int) -> bytes:
        """A part of the output; shorter only if the process has ended."""
        pipe = self._process.stdout
        if pipe is None:
            return b""
        try:
            return await pipe.readexactly(size_bytes)
        except asyncio.IncompleteReadError as error:
            return error.partial

    async def end(self) -> None:
        """Kill the process if it is still running, and wait until it has ended."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.wait()
        if self._process.stdout is not None:
            await self._process.stdout.read()  # the pipes are closed when it has ended
