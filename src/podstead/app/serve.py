"""How is the HTTP server run? Granian, with workers that start, stop and die as they should.

The only module that knows granian. What it adds to it:

- Workers take over listening sockets that are already open (``listening.py``).
- Signals go to this process alone, in a thread that waits for them: the first one drains and
  stops, the second one stops at once. A worker likewise waits for SIGTERM in a thread: one that
  is still starting ends on the spot, where granian's would miss the signal and run for ever.
- A worker reports when its application has started; when all have, the server is ready.
- A worker that dies before that stops the start, since it would die again. Later it is replaced:
  one request that kills a worker must not take every pod off the net. A worker that keeps dying
  stops the server with an error, for the supervisor above to see.
- Workers end when this process is gone, even if it was killed, so that the port and the data root
  are free for the next start.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from granian.constants import HTTPModes, Interfaces, Loops, SSLProtocols
from granian.http import HTTP1Settings, HTTP2Settings
from granian.log import LogLevels
from granian.net import SocketHolder  # type: ignore[attr-defined]
from granian.server.mp import MPServer

from podstead.app.ending import Ending
from podstead.app.listening import BACKLOG
from podstead.app.logs import logging_config, server_level
from podstead.config import Settings
from podstead.core.errors import PodsteadError

logger = logging.getLogger("podstead.app")

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

LEAVE_S = 5.0
"""How long those who listen have to leave when the server stops."""

_STOP_SIGNALS = {signal.SIGINT, signal.SIGTERM}
_READY = b"ready"


def serve(
    settings: Settings,
    listeners: Sequence[socket.socket],
    *,
    factory: Callable[[Settings], Application],
    on_ready: Callable[[], None],
) -> Ending:
    """Serve until SIGTERM or SIGINT, or until a worker fails. To be called in the main thread.

    ``factory`` makes the application, in each worker. If that has a method ``drain`` it is called
    when the worker shall stop, before connections that have no end are cut off. ``on_ready`` is
    called once, in another thread, when all workers answer requests.
    """
    _raise_descriptor_limit()
    # Workers begin with what is loaded here, and share its memory. They also inherit which signals
    # are blocked; the other ways of starting a process may unblock them.
    multiprocessing.set_start_method("fork", force=True)
    reports, report = multiprocessing.Pipe(duplex=False)
    server = _make_server(settings)
    with _signals_blocked():
        stop = _Stop(server, listeners)
        _start_thread(stop.wait)
        _start_thread(partial(_await_readiness, server, settings.workers, reports, on_ready))
        try:
            server.serve(
                spawn_target=partial(_run_worker, listeners),
                target_loader=partial(_load_application, factory, settings, report),
                wrap_loader=False,
            )
        except SystemExit:
            logger.debug("The HTTP server ended with an error")
    if stop.ending is Ending.STOPPED and stop.elapsed_s() >= settings.drain_timeout_s:
        logger.warning(
            "Requests still in flight after %d seconds were cut off", settings.drain_timeout_s
        )
    return stop.ending or Ending.FAILED


def _make_server(settings: Settings) -> MPServer:
    return MPServer(
        target="podstead",
        # Its own socket is not used; it is bound, and closed again, on a port of the system.
        address="127.0.0.1",
        port=0,
        interface=Interfaces.ASGI,
        loop=Loops.uvloop,
        http=HTTPModes.auto,
        workers=settings.workers,
        workers_kill_timeout=settings.drain_timeout_s,
        backlog=BACKLOG,
        backpressure=settings.max_connections,
        http1_settings=HTTP1Settings(
            header_read_timeout=settings.header_read_timeout_s * 1000,
            keep_alive=settings.keep_alive,
            max_buffer_size=settings.max_header_bytes,
        ),
        http2_settings=HTTP2Settings(max_headers_size=settings.max_header_bytes),
        ssl_cert=settings.ssl_cert,
        ssl_key=settings.ssl_key,
        ssl_protocol_min=SSLProtocols.tls12,
        log_access=False,
        log_level=LogLevels(server_level(settings)),
        log_dictconfig=logging_config(settings),
        respawn_failed_workers=False,  # until all have started, see _await_readiness
    )


# --- In the main process --------------------------------------------------------------------


class _Stop:
    """Waits for signals, in a thread of its own."""

    def __init__(self, server: MPServer, listeners: Sequence[socket.socket]) -> None:
        self._server = server
        self._listeners = listeners
        self.ending: Ending | None = None
        self._asked_s = 0.0

    def elapsed_s(self) -> float:
        """Seconds since the first signal."""
        return time.monotonic() - self._asked_s

    def wait(self) -> None:
        signal.sigwait(_STOP_SIGNALS)
        self._asked_s = time.monotonic()
        self.ending = Ending.STOPPED
        # Without a listening socket clients are refused at once instead of waiting in a queue.
        for listener in self._listeners:
            listener.close()
        self._server.signal_handler_interrupt()  # type: ignore[no-untyped-call]
        signal.sigwait(_STOP_SIGNALS)
        self.ending = Ending.FORCED
        for worker in list(self._server.wrks):
            worker.kill()  # type: ignore[no-untyped-call]


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Keep the stop signals pending in this thread and in those, and the processes, it starts."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _await_readiness(
    server: MPServer, workers: int, reports: Connection, on_ready: Callable[[], None]
) -> None:
    try:
        for _ in range(workers):
            reports.recv_bytes()
        on_ready()
        # Only now: no process is forked while this thread may hold a lock.
        server.respawn_failed_workers = True
        while True:  # workers that were replaced report too
            reports.recv_bytes()
    except EOFError:
        return  # the server has ended


def _start_thread(target: Callable[[], None]) -> None:
    threading.Thread(target=target, daemon=True).start()


def _raise_descriptor_limit() -> None:
    # The customary soft limit of 1024 is for programs that use select(); each connection and each
    # file being sent takes a descriptor.
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        logger.debug("The limit of open files stays as it is")


# --- In a worker ----------------------------------------------------------------------------


def _run_worker(
    listeners: Sequence[socket.socket],
    worker_id: int,
    process_name: str | None,
    load: Callable[[], Application],
    _own_socket: object,
    *arguments: Any,  # noqa: ANN401 - handed through
) -> None:
    _start_thread(_end_with_parent)
    listener = listeners[worker_id - 1]
    for other in listeners:
        if other is not listener:
            other.close()
    holder = SocketHolder(listener.detach(), uds=False, backlog=BACKLOG)  # type: ignore[call-arg]
    MPServer._spawn_asgi_lifespan_worker(  # noqa: SLF001 - what granian would call here itself
        worker_id, process_name, load, ((None, holder), None), *arguments
    )


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _load_application(
    factory: Callable[[Settings], Application], settings: Settings, report: Connection
) -> Application:
    """What granian calls in a worker, with the event loop made and not yet running."""
    drain = _Drain(asyncio.get_event_loop())
    _start_thread(drain.wait)
    try:
        application = factory(settings)
        drain.first = getattr(application, "drain", None)
        return _Started(application, drain, report)
    except PodsteadError as error:
        logger.error("%s", error)  # noqa: TRY400 - expected trouble has no traceback
        sys.exit(1)


class _Drain:
    """Waits for SIGTERM in a thread, and has granian's handler called in the event loop, after
    those who listen have been told to leave: granian cuts open WebSockets off, and waits for
    answers that have no end.

    Granian would have the loop itself catch the signal. The loop loses one that comes while it is
    not running, as between the start of the application and the start of the server. SIGINT is
    left alone: a terminal sends it to every process, and the main process passes it on.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._handle: Callable[[], object] | None = None
        self.started = False
        self.first: Callable[[], Awaitable[None]] | None = None
        """What is to be done before, within LEAVE_S seconds."""
        loop.add_signal_handler = self._note_handler  # type: ignore[assignment, method-assign]

    def _note_handler(
        self, number: int, handler: Callable[..., object], *arguments: object
    ) -> None:
        if number == signal.SIGTERM:
            self._handle = partial(handler, *arguments)

    def wait(self) -> None:
        signal.sigwait({signal.SIGTERM})
        if not self.started or self._handle is None:
            os._exit(0)  # there is nothing to finish
        asyncio.run_coroutine_threadsafe(self._stop(self._handle), self._loop)

    async def _stop(self, handle: Callable[[], object]) -> None:
        try:
            if self.first is not None:
                async with asyncio.timeout(LEAVE_S):
                    await self.first()
        except Exception:
            logger.exception("Those who listen could not be told to leave")
        finally:
            handle()


class _Started:
    """The application, whose start is reported and whose failure to start is one.

    Granian takes an exception from the lifespan for an application that has none, and would serve.
    """

    def __init__(self, application: Application, drain: _Drain, report: Connection) -> None:
        self._application = application
        self._drain = drain
        self._report = report

    def __call__(
        self, scope: MutableMapping[str, Any], receive: Receive, send: Send
    ) -> Awaitable[None]:
        # Requests go straight to the application: no coroutine of ours in between.
        if scope["type"] == "lifespan":
            return self._live(scope, receive, send)
        return self._application(scope, receive, send)

    async def _live(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        async def send_and_report(message: Message) -> None:
            await send(message)
            if message["type"] == "lifespan.startup.complete":
                self._drain.started = True
                self._report.send_bytes(_READY)

        try:
            await self._application(scope, receive, send_and_report)
        except PodsteadError as error:
            await send(self._failure(str(error)))
        except Exception:
            logger.exception("The application failed outside of a request")
            await send(self._failure(""))

    def _failure(self, message: str) -> Message:
        phase = "shutdown" if self._drain.started else "startup"
        return {"type": f"lifespan.{phase}.failed", "message": message}
