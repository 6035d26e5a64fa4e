"""Runs a worker from its start to its end: granian, and what granian lacks.

- It uses a listening socket that is already open (``listening.py``). With client certificates, that
  socket belongs to the terminator (``tls/``), which passes everything on to granian.
- It waits for SIGTERM in a thread: a worker that is still starting ends immediately, where
  granian's would miss the signal and run forever.
- It reports when its application has started.
- It limits its connections in time and number (``connections/``).
- It ends when the main process is gone, even if that was killed.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import signal
import socket
import ssl
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from granian.net import SocketHolder  # type: ignore[attr-defined]
from granian.server.mp import MPServer

from podstead.app.process.admin import Admin, open_control_socket
from podstead.app.process.certificate import RENEWAL_SIGNAL, prepare_keys
from podstead.app.process.connections.kernel import PacketFilter
from podstead.app.process.connections.supervisor import Supervisor, bounds_of
from podstead.app.process.listening import BACKLOG, ListeningSockets
from podstead.app.process.tls.front import TlsFrontend, remove_folder
from podstead.config import Settings
from podstead.core.errors import PodsteadError
from podstead.web.asgi import Application, Message, Receive, Scope, Send

if TYPE_CHECKING:
    from podstead.app.process.sockets.listener import SocketListener
    from podstead.app.process.tls.terminator import Terminator

logger = logging.getLogger("podstead.app")

Factory = Callable[[Settings], Application]
"""Builds the application. If it has a method ``drain``, the worker calls that before it stops, and
before connections without an end are aborted."""

_HTTP_1 = {"1", "1.0", "1.1"}

STOP_SIGNALS = {signal.SIGINT, signal.SIGTERM}
"""What stops the server."""

LEAVE_SIGNAL = signal.SIGUSR1
"""Announces to a worker that it will be stopped, and that another process goes on listening at its
socket."""

LEAVE_S = 5.0
"""How long clients that wait for notifications have to leave when the server stops."""


@dataclass(slots=True)
class WorkerContext:
    """What a worker inherits from the main process."""

    settings: Settings
    factory: Factory
    listening: ListeningSockets
    report: Connection
    """The pipe to which a worker writes its process id when it answers requests."""
    front: TlsFrontend | None
    """The TLS listener that requests client certificates, if it is used."""
    admin: Admin | None = None
    """The private address of the main process, if there is one."""
    socket_context: ssl.SSLContext | None = None
    """The TLS of the listener for WebSockets. Replaced, in any thread, when the certificate is
    renewed."""

    def folders(self) -> list[Path]:
        """The folders of the sockets between processes."""
        parts = (self.front, self.admin)
        return [part.folder for part in parts if part is not None]


def run_worker(
    context: WorkerContext,
    worker_id: int,
    process_name: str | None,
    _load: object,
    _own_socket: object,
    *arguments: Any,  # noqa: ANN401 - handed through
) -> None:
    """Run a worker from start to end; granian calls this in the new process."""
    start_thread(partial(_end_with_parent, context.folders()))
    if context.admin is not None:
        context.admin.listener.close()
    listener = context.listening.http[worker_id - 1]
    for_sockets = context.listening.websocket[worker_id - 1 : worker_id]
    own = [listener, *for_sockets]
    for other in context.listening.all:
        if other not in own:
            other.close()
    supervisor = Supervisor(
        filters={each.getsockname()[1]: PacketFilter(each.fileno()) for each in own},
        bounds=bounds_of(context.settings),
        trusted=context.settings.trusted_proxies,
    )
    accepting = listener.fileno()
    tls_proxy = None
    if context.front is not None:
        tls_proxy = _TlsProxy(listener, context.front, context.settings)
        listener = tls_proxy.open_inner()
    holder = SocketHolder(  # type: ignore[call-arg]
        listener.detach(), uds=tls_proxy is not None, backlog=BACKLOG
    )
    load = partial(_load_application, context, tls_proxy, for_sockets, supervisor, accepting)
    MPServer._spawn_asgi_lifespan_worker(  # noqa: SLF001 - what granian would call here itself
        worker_id, process_name, load, ((None, holder), None), *arguments
    )


def start_thread(target: Callable[[], None]) -> None:
    """Run the function in a daemon thread, which does not keep the process alive."""
    threading.Thread(target=target, daemon=True).start()


@contextmanager
def signals_blocked() -> Iterator[None]:
    """Block the signals of the main process in this thread, and in the threads and processes that
    it starts."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*STOP_SIGNALS, RENEWAL_SIGNAL, LEAVE_SIGNAL})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent(folders: Sequence[Path]) -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        for folder in folders:
            remove_folder(folder)
        os._exit(1)


class _TlsProxy:
    """Connects the listening socket, the terminator, granian and the application."""

    def __init__(self, listener: socket.socket, front: TlsFrontend, settings: Settings) -> None:
        self._listener = listener
        self._front = front
        self._max_connections = settings.max_connections
        self._inner = Path(tempfile.mkdtemp(dir=front.folder, prefix="")) / "http"

    def open_inner(self) -> socket.socket:
        """The socket on which granian listens."""
        inner = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        inner.bind(str(self._inner))
        inner.listen(BACKLOG)
        inner.settimeout(0)
        return inner

    def connect(self, application: Application) -> tuple[Terminator, Application]:
        """The terminator, and the application as granian calls it."""
        from podstead.app.process.tls.terminator import Clients, Terminator, WithClientScope

        clients: Clients = {}
        terminator = Terminator(
            self._listener,
            self._front,
            self._inner,
            max_connections=self._max_connections,
            clients=clients,
            loop=asyncio.get_event_loop(),
        )
        return terminator, WithClientScope(application, clients)


def _load_application(
    context: WorkerContext,
    tls_proxy: _TlsProxy | None,
    for_sockets: Sequence[socket.socket],
    supervisor: Supervisor,
    accepting: int,
) -> Application:
    """Granian calls this in a worker, when the event loop exists and does not run yet."""
    drain = _Drain(asyncio.get_event_loop(), partial(_renew, context), supervisor, accepting)
    start_thread(drain.wait)
    try:
        application = context.factory(context.settings)
    except PodsteadError as error:
        logger.error("%s", error)  # noqa: TRY400 - expected trouble has no traceback
        sys.exit(1)
    drain.first = getattr(application, "drain", None)
    answer: Application = partial(supervisor.requests.track, application)
    for each in for_sockets:
        drain.websockets = _socket_listener(each, answer, context)
    if tls_proxy is not None:
        drain.terminator, answer = tls_proxy.connect(answer)
    return _ReportingApplication(application, answer, drain, context)


async def _answer_nothing(_query: str) -> bytes:
    """The answer of an application without metrics: that it runs."""
    return b"{}"


def _socket_listener(
    listener: socket.socket, application: Application, context: WorkerContext
) -> SocketListener:
    from podstead.app.process.sockets.listener import SocketListener

    settings = context.settings
    return SocketListener(
        listener,
        application,
        tls=lambda: context.socket_context,
        handshake_timeout_s=settings.header_read_timeout_s,
        max_connections=settings.max_connections,
        loop=asyncio.get_event_loop(),
    )


def _renew(context: WorkerContext) -> None:
    """Use the renewed certificate, which the main process has checked, for new connections."""
    if context.front is None:
        return
    try:
        keys = prepare_keys(context.settings)
    except PodsteadError as error:
        logger.error("The certificate in use stays. %s", error)  # noqa: TRY400 - as above
        return
    if keys is not None and keys.context is not None:
        context.front.context = keys.context
        context.socket_context = keys.socket_context


class _Drain:
    """Waits for SIGTERM in a thread, and has granian's handler called in the event loop, after
    those who listen have been told to leave: granian cuts open WebSockets off, and waits for
    answers that have no end.

    Granian would have the loop itself catch the signal. The loop loses one that comes while it is
    not running, as between the start of the application and the start of the server. SIGINT is
    left alone: a terminal sends it to every process, and the main process passes it on.

    What announces a renewed certificate, or that the worker will leave, is waited for in the same
    thread.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        renew: Callable[[], None],
        supervisor: Supervisor,
        accepting: int,
    ) -> None:
        """``accepting`` is the descriptor of the listening socket."""
        self._loop = loop
        self._renew = renew
        self.supervisor = supervisor
        self._accepting = accepting
        self._handle: Callable[[], object] | None = None
        self.started = False
        self.is_leaving = False
        self.terminator: Terminator | None = None
        self.websockets: SocketListener | None = None
        self.first: Callable[[], Awaitable[None]] | None = None
        """Call this first, for at most LEAVE_S seconds."""
        loop.add_signal_handler = self._note_handler  # type: ignore[assignment, method-assign]

    def _note_handler(
        self, number: int, handler: Callable[..., object], *arguments: object
    ) -> None:
        if number == signal.SIGTERM:
            self._handle = partial(handler, *arguments)

    def wait(self) -> None:
        waited_for = {signal.SIGTERM, RENEWAL_SIGNAL, LEAVE_SIGNAL}
        while (number := signal.sigwait(waited_for)) != signal.SIGTERM:
            if number == RENEWAL_SIGNAL:
                self._renew()
            else:
                self._leave()
        self.supervisor.block_nobody()
        if not self.started or self._handle is None:
            os._exit(0)  # nothing is in progress
        if self.terminator is not None:
            self._loop.call_soon_threadsafe(self.terminator.stop)
        if self.websockets is not None:
            self._loop.call_soon_threadsafe(self.websockets.leave)
        asyncio.run_coroutine_threadsafe(self._stop(self._handle), self._loop)

    def _leave(self) -> None:
        """Accept nothing more, and go on serving the connections there are."""
        self.is_leaving = True
        if self.websockets is not None:
            self._loop.call_soon_threadsafe(self.websockets.leave)
        if self.terminator is not None:
            self._loop.call_soon_threadsafe(self.terminator.leave)
        else:
            _stop_accepting(self._accepting)

    async def _stop(self, handle: Callable[[], object]) -> None:
        try:
            if self.first is not None:
                async with asyncio.timeout(LEAVE_S):
                    await self.first()
        except Exception:
            logger.exception("Those who listen could not be told to leave")
        finally:
            handle()


def _stop_accepting(descriptor: int) -> None:
    """Put a socket to which nobody connects in the place of the listening one. The HTTP server
    cannot be told to stop accepting and go on serving; now it finds nothing more to accept."""
    with socket.socket() as quiet:
        quiet.bind(("127.0.0.1", 0))
        quiet.listen()
        quiet.settimeout(0)
        os.dup2(quiet.fileno(), descriptor, inheritable=False)


def _closing(send: Send) -> Send:
    """Have the client of an HTTP/1 connection use another one for its next request (RFC 9112
    section 9.6)."""

    async def send_and_close(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], (b"connection", b"close")]}
        await send(message)

    return send_and_close


class _ReportingApplication:
    """The application, whose start is reported and whose failure to start is one.

    Granian takes an exception from the lifespan for an application that has none, and would serve.
    """

    def __init__(
        self, application: Application, answer: Application, drain: _Drain, context: WorkerContext
    ) -> None:
        """``answer`` takes the requests, and the application what the lifespan brings. If the
        application has a method ``answer``, it answers what the main process asks."""
        self._application = application
        self._answer = answer
        self._drain = drain
        self._report = context.report
        self._admin = context.admin
        self._control_socket: asyncio.AbstractServer | None = None

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] == "lifespan":
            return self._live(scope, receive, send)
        if self._drain.is_leaving and scope["http_version"] in _HTTP_1:
            send = _closing(send)
        return self._answer(scope, receive, send)

    async def _live(self, scope: Scope, receive: Receive, send: Send) -> None:
        terminator = self._drain.terminator

        async def receive_when_drained() -> Message:
            message = await receive()
            if message["type"] == "lifespan.shutdown" and terminator is not None:
                await terminator.drained()  # granian has sent all, which may not be all the way
            return message

        async def send_and_report(message: Message) -> None:
            await send(message)
            if message["type"] == "lifespan.startup.complete":
                self._drain.started = True
                if terminator is not None:
                    terminator.start()
                if self._drain.websockets is not None:
                    self._drain.websockets.start()
                start_thread(self._drain.supervisor.watch)
                if self._admin is not None:
                    folder, known = self._admin.folder, getattr(self._application, "answer", None)
                    self._control_socket = await open_control_socket(
                        folder, known or _answer_nothing
                    )
                self._report.send_bytes(str(os.getpid()).encode("ascii"))

        try:
            await self._application(scope, receive_when_drained, send_and_report)
        except PodsteadError as error:
            await send(self._failure(str(error)))
        except Exception:
            logger.exception("The application failed outside of a request")
            await send(self._failure(""))

    def _failure(self, message: str) -> Message:
        phase = "shutdown" if self._drain.started else "startup"
        return {"type": f"lifespan.{phase}.failed", "message": message}
