"""Answers health checks and metrics on the private address, from the main process.

The main process asks its workers and adds up what they say, so an answer is about all of them. Each
request gets a thread; there are few. Nothing here is authenticated: the address must be reachable
for nobody but the operator and their monitor.
"""

import asyncio
import contextlib
import errno
import logging
import os
import platform
import re
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit

import msgspec

from podstead import __version__
from podstead.app.monitoring import families
from podstead.app.monitoring.checks import Check, Checks
from podstead.app.monitoring.exposition import CONTENT_TYPE, exposition
from podstead.app.monitoring.readings import Reading, Readings, Total, single
from podstead.app.monitoring.stored_facts import WorkerQuery
from podstead.app.process.admin_http import AdminHttpHandler, AdminHttpServer
from podstead.app.process.tls.front import private_folder
from podstead.config import Settings, StartRefused
from podstead.config.value_types import ListenAddress
from podstead.core.messages import counted
from podstead.storage.root import root_mark
from podstead.web.authority import read_address

ANSWER_WITHIN_S: Final = 2.0
"""A worker that takes longer is silent."""
_MAX_QUESTION_BYTES: Final = 64
_PIECE_BYTES: Final = 1 << 16


Answer = Callable[[str], Awaitable[bytes]]
"""Answers a query of the main process."""


async def open_control_socket(folder: Path, answer: Answer) -> asyncio.AbstractServer | None:
    """Begin to answer the queries of the main process, in this worker. Without a socket the
    worker runs on, and is silent."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            query = await reader.readline()
            writer.write(await answer(query.decode("ascii", "replace").strip()))
            await writer.drain()
        except Exception:
            logger.exception("A query of the main process could not be answered")
        finally:
            writer.close()

    try:
        return await asyncio.start_unix_server(
            serve, _path(folder, os.getpid()), limit=_MAX_QUESTION_BYTES
        )
    except OSError:
        logger.exception("Health checks and metrics leave this worker out")
        return None


def ask_worker(folder: Path, worker: int, query: str) -> bytes | None:
    """The answer of the worker with that process id; ``None`` if there is none in time."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(ANSWER_WITHIN_S)
        try:
            connection.connect(str(_path(folder, worker)))
            connection.sendall(f"{query}\n".encode("ascii"))
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


logger = logging.getLogger("podstead.app")

_BACKLOG: Final = 16
_NEVER_S: Final = 86_400.0
_HOST: Final = re.compile(r"[A-Za-z0-9._-]+(?::[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](?::[0-9]{1,5})?")
_PRIVATE_ENDINGS: Final = (".localhost", ".internal", ".local", ".home.arpa")
_WRONG_HOST: Final = (
    b"This is a private address. Use its IP address, or the host name of admin-listen.\n"
)
_JSON: Final = "application/json"
_TEXT: Final = "text/plain; charset=utf-8"

_Reply = tuple[int, str, bytes]


@dataclass(frozen=True, slots=True)
class Admin:
    """The private address, which only the main process serves."""

    address: ListenAddress
    """With the port that was really opened."""
    listener: socket.socket
    folder: Path
    """Where each worker creates the socket on which the main process asks it."""


@contextmanager
def opened_admin(settings: Settings) -> Iterator[Admin | None]:
    """The private address; ``None`` if it is off, or if its default cannot be used.

    Several servers may run on one machine, so a default must not keep the second one from starting.
    Raises StartRefused for an address that was set and cannot be used.
    """
    address = settings.admin_listen
    if address is None:
        yield None
        return
    is_set = any(field == "admin_listen" for field, _ in settings.set_by)
    with ExitStack() as opened:
        try:
            listener = opened.enter_context(_listen(address))
            folder = opened.enter_context(private_folder("admin-listen"))
        except OSError as error:
            reason = "it is in use" if error.errno == errno.EADDRINUSE else f"{error.strerror}"
            refusal = f"Cannot open the private address {address} of admin-listen: {reason}. "
        except StartRefused as refused:
            refusal = f"{refused} "
        else:
            address = replace(address, port=listener.getsockname()[1])
            yield Admin(address, listener, folder)
            return
    refusal += "Choose another one, or turn it off with --admin-listen off."
    if is_set:
        raise StartRefused(refusal)
    logger.warning("There are no health checks and metrics. %s", refusal)
    yield None


def _listen(address: ListenAddress) -> socket.socket:
    """Raises OSError."""
    family, _, _, _, where = socket.getaddrinfo(
        address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(where)
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


class WorkerProcesses(Protocol):
    """What the main process knows about its workers."""

    def worker_pids(self) -> Sequence[int]:
        """The process ids of those that run."""

    @property
    def restarts(self) -> int:
        """How many have replaced one that had failed."""

    @property
    def is_stopping(self) -> bool: ...


class Monitor:
    """Answers requests about one server."""

    def __init__(self, settings: Settings, folder: Path, workers: WorkerProcesses) -> None:
        """``folder`` has the sockets of the workers."""
        self._settings = settings
        self._folder = folder
        self._workers = workers
        self._started_s = time.time()
        self._total = Total()
        self._seen: set[int] = set()
        self._reading = threading.Lock()
        self.is_ready = False
        """Whether all workers have answered requests since the start."""

    def reply(self, path: str) -> _Reply:
        """The status, media type and content of the response to a GET."""
        if path == "/health/live":
            return 200, _JSON, b'{"status":"live"}\n'
        if path == "/health/ready":
            return self._readiness()
        if path == "/metrics":
            return 200, CONTENT_TYPE, exposition(self._metrics())
        return 404, _TEXT, b"There are /health/live, /health/ready and /metrics.\n"

    def _readiness(self) -> _Reply:
        checks = self._checks()
        ready = all(check.ok for check in checks.values())
        content = msgspec.json.encode(
            {
                "status": "ready" if ready else "not ready",
                "checks": checks,
                "root": root_mark(self._settings.root),
            }
        )
        return 200 if ready else 503, _JSON, content + b"\n"

    def _checks(self) -> Checks:
        wanted = self._settings.workers or 1
        if self._workers.is_stopping or not self.is_ready:
            state = "stopping" if self._workers.is_stopping else "starting"
            return {"workers": Check(ok=False, detail=f"The server is {state}.")}
        found: Checks = {}
        answered = 0
        for pid in self._workers.worker_pids():
            answer = ask_worker(self._folder, pid, WorkerQuery.CHECKS.value)
            if answer is None:
                continue
            answered += 1
            for name, check in msgspec.json.decode(answer, type=Checks).items():
                if name not in found or found[name].ok:  # what one worker finds wrong is wrong
                    found[name] = check
        detail = f"{answered} of {counted(wanted, 'worker')} answered."
        return {"workers": Check(ok=answered >= wanted, detail=detail), **found}

    def _metrics(self) -> Readings:
        with self._reading:
            pids = set(self._workers.worker_pids())
            answering = 0
            stored: Readings = {}
            for pid in pids:
                answer = ask_worker(self._folder, pid, WorkerQuery.COUNTERS.value)
                if answer is None:
                    continue
                answering += 1
                self._total.note(pid, msgspec.json.decode(answer, type=Readings))
                if not stored:
                    about_all = ask_worker(self._folder, pid, WorkerQuery.STORED.value)
                    stored = msgspec.json.decode(about_all, type=Readings) if about_all else {}
            for ended in self._seen - pids:
                forget(self._folder, ended)
            self._seen = pids
            self._total.forget_all_but(pids)
            return {
                **self._own_readings(answering, len(pids) - answering),
                **self._total.readings(),
                **stored,
            }

    def _own_readings(self, answering: int, silent: int) -> Readings:
        return {
            families.BUILD.name: [Reading((__version__, platform.python_version()), 1)],
            **single(families.STARTED, self._started_s),
            families.WORKERS.name: [
                Reading(("answering",), answering),
                Reading(("silent",), silent),
            ],
            **single(families.RESTARTS, self._workers.restarts),
        }


class _Server(AdminHttpServer):
    """Answers on the private address."""

    def __init__(
        self, listener: socket.socket, address: ListenAddress, reply: Callable[[str], _Reply]
    ) -> None:
        super().__init__(listener, _Handler)
        self.address = address
        self.reply = reply


class _Handler(AdminHttpHandler):
    """One request."""

    server: _Server

    def do_GET(self) -> None:  # noqa: N802 - as http.server has it
        """Answer with the content."""
        self._answer(with_content=True)

    def do_HEAD(self) -> None:  # noqa: N802 - as http.server has it
        """Answer without the content."""
        self._answer(with_content=False)

    def _answer(self, *, with_content: bool) -> None:
        status, media_type, content = self._reply()
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if with_content:
            self.wfile.write(content)

    def _reply(self) -> _Reply:
        if not is_private_host(self.headers.get("Host", ""), self.server.address):
            return 421, _TEXT, _WRONG_HOST
        try:
            return self.server.reply(self.path.partition("?")[0])
        except Exception:
            logger.exception("A request to the private address could not be answered")
            return 500, _TEXT, b"The server could not answer; its log says why.\n"


def is_private_host(host: str, address: ListenAddress) -> bool:
    """Whether a Host value cannot be that of a page of somebody else.

    A page in a browser that reaches the private address could otherwise read metrics: its owner has
    the name of the page lead to this address for a moment (DNS rebinding), and for the browser both
    then have one origin. So a name must be one that nobody else can own: that of ``admin-listen``
    or ``localhost``, and beyond loopback addresses one of this network, without a dot or with an
    ending for private use, by which containers and monitors find each other. An IP address is
    never a rebound name, and browsers always send a host.
    """
    if host and not _HOST.fullmatch(host):
        return False
    name = urlsplit(f"//{host}").hostname or ""
    if name in ("", address.host.lower(), "localhost") or read_address(name) is not None:
        return True
    listens_on = read_address(address.host)
    if address.host == "localhost" or (listens_on is not None and listens_on.is_loopback):
        return False
    return "." not in name or name.endswith(_PRIVATE_ENDINGS)


def serve_admin(admin: Admin, monitor: Monitor) -> None:
    """Answer requests until the process ends; to be run in a thread of its own."""
    _Server(admin.listener, admin.address, monitor.reply).serve_forever(poll_interval=_NEVER_S)
