"""How does the main process ask its workers? Over a Unix socket of each worker, one line a time.

The sockets are in a private folder and are named after process ids. A worker answers in its event
loop, so an answer shows that the loop runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

ANSWER_WITHIN_S: Final = 2.0
"""A worker that takes longer is silent."""
_MAX_QUESTION_BYTES: Final = 64
_PIECE_BYTES: Final = 1 << 16

logger = logging.getLogger("podstead.app")

Answer = Callable[[str], Awaitable[bytes]]
"""Answers a question of the main process."""


async def open_control_socket(folder: Path, answer: Answer) -> asyncio.AbstractServer | None:
    """Begin to answer the questions of the main process, in this worker. Without a socket the
    worker runs on, and is silent."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            question = await reader.readline()
            writer.write(await answer(question.decode("ascii", "replace").strip()))
            await writer.drain()
        except Exception:
            logger.exception("A question of the main process could not be answered")
        finally:
            writer.close()

    try:
        return await asyncio.start_unix_server(
            serve, _path(folder, os.getpid()), limit=_MAX_QUESTION_BYTES
        )
    except OSError:
        logger.exception("Health checks and metrics leave this worker out")
        return None


def ask(folder: Path, worker: int, question: str) -> bytes | None:
    """The answer of the worker with that process id; ``None`` if there is none in time."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(ANSWER_WITHIN_S)
        try:
            connection.connect(str(_path(folder, worker)))
            connection.sendall(f"{question}\n".encode("ascii"))
            pieces = []
            while piece := connection.recv(_PIECE_BYTES):
                pieces.append(piece)
        except OSError:
            return None
    return b"".join(pieces) or None


def forget(folder: Path, worker: int) -> None:
    """Remove what is left of a worker that has ended."""
    with contextlib.suppress(OSError):
        _path(folder, worker).unlink()


def _path(folder: Path, worker: int) -> Path:
    return folder / str(worker)
