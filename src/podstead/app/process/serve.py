"""Runs the HTTP server granian, with its own handling of signals, failures and renewals.

This is the main process; ``worker.py`` is what each worker runs. It adds to granian:

- Only this process handles signals, in a thread that waits for them: the first one drains and
  stops the server, the second one stops it immediately.
- A worker reports when its application has started; when all have, the server is ready.
- A worker that fails before that stops the start, because it would fail again. Later it is
  replaced: one request that kills a worker must not take every pod offline. If a worker keeps
  failing, the server stops with an error, which its supervisor sees.
- When the certificate is renewed, workers behind our own TLS listener load the new one. Granian
  cannot change its certificate, so its workers are replaced one by one: the new one accepts
  connections from the same socket before the old one stops to, and the old one finishes its
  requests, however long that takes.
"""

import logging
import multiprocessing
import os
import queue
import resource
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import partial
from multiprocessing.connection import Connection

from granian.constants import HTTPModes, Interfaces, Loops, SSLProtocols
from granian.http import HTTP1Settings, HTTP2Settings
from granian.log import LogLevels
from granian.server.mp import MPServer, WorkerProcess

from podstead.app.process import worker as process_worker
from podstead.app.process.admin import Admin, Monitor, serve_admin
from podstead.app.process.certificate import RENEWAL_SIGNAL, CertificatePair, Renewal, ServerKeys
from podstead.app.process.listening import BACKLOG, ListeningSockets
from podstead.app.process.logs import logging_config, server_level
from podstead.app.process.tls.front import TlsFrontend, private_folder
from podstead.config import Settings
from podstead.core.messages import counted
from podstead.features import client_certificate_setting


class ExitReason(Enum):
    """Why :func:`podstead.app.process.serve.serve` returned."""

    STOPPED = "stopped"
    """It was told to stop, and every request in progress was answered or timed out."""
    FORCED = "forced"
    """It was told to stop a second time, and requests in progress were aborted."""
    FAILED = "failed"
    """A worker did not start, or kept failing."""


logger = logging.getLogger("podstead.app")

MAX_HEADER_BYTES = 64 * 1024
"""The maximum size of a request line and its headers together, several times the size of the
largest signed tokens; larger ones get 431."""

_POLL_S = 0.1
_LEAST_TLS = str(SSLProtocols.tls12)


def serve(
    settings: Settings,
    listening: ListeningSockets,
    keys: ServerKeys | None,
    *,
    factory: process_worker.Factory,
    on_ready: Callable[[], None],
    admin: Admin | None = None,
    keep_certificate: Callable[[], None] | None = None,
    others_serve: bool = False,
) -> ExitReason:
    """Serve until SIGTERM or SIGINT, or until a worker fails. To be called in the main thread.

    There is one worker for each listener of ``listening``. ``keys`` are for TLS. ``factory`` builds
    the application, in each worker. ``on_ready`` is called once, in another thread, when all
    workers answer requests. ``admin`` is the private address, if there is one.
    ``keep_certificate`` renews the certificate, in a thread of its own. ``others_serve``
    means that another process serves the same clients when this one ends: at the same socket, or as
    another node. Raises StartRefused.
    """
    _raise_descriptor_limit()
    # Workers start with the modules loaded here, and share their memory. They also inherit the
    # signal mask; other start methods may unblock signals.
    multiprocessing.set_start_method("fork", force=True)
    reports, report = multiprocessing.Pipe(duplex=False)
    with ExitStack() as held:
        front = held.enter_context(_front(settings, keys))
        context = process_worker.WorkerContext(settings, factory, listening, report, front, admin)
        if keys is not None:
            context.socket_context = keys.socket_context
        server = _Server(context, keys)
        with process_worker.signals_blocked():
            stop = _Stop(server, listening.all, others_serve=others_serve)
            process_worker.start_thread(stop.wait)
            ready = on_ready
            if admin is not None:
                monitor = Monitor(settings, admin.folder, _Workers(server, stop))
                process_worker.start_thread(partial(serve_admin, admin, monitor))
                ready = partial(_note_readiness, monitor, on_ready)
            process_worker.start_thread(
                partial(_await_readiness, server, len(listening.http), reports, ready)
            )
            if keys is not None:
                process_worker.start_thread(
                    Renewal(settings, server.keys_in_use, server.adopt).watch
                )
            if keep_certificate is not None:
                process_worker.start_thread(keep_certificate)
            try:
                server.serve(
                    spawn_target=partial(process_worker.run_worker, context),
                    target_loader=_load_nothing,
                    wrap_loader=False,
                )
            except SystemExit:
                logger.debug("The HTTP server ended with an error")
    if stop.ending is ExitReason.STOPPED and stop.elapsed_s() >= settings.drain_timeout_s:
        logger.warning(
            "Requests still in flight after %s were cut off",
            counted(settings.drain_timeout_s, "second"),
        )
    return stop.ending or ExitReason.FAILED


_SETTLE_S = 1.0
"""How long connections that have just been accepted have to send their first request, before a
worker ends in whose place another one serves. Its HTTP server would close them without an answer,
and a TLS handshake takes two round trips."""


@contextmanager
def _front(settings: Settings, keys: ServerKeys | None) -> Iterator[TlsFrontend | None]:
    if keys is None or keys.context is None:
        yield None
        return
    with private_folder(client_certificate_setting(settings) or "") as folder:
        yield TlsFrontend(keys.context, folder)


def _note_readiness(monitor: Monitor, on_ready: Callable[[], None]) -> None:
    monitor.is_ready = True
    on_ready()


def _load_nothing() -> Callable[..., object]:
    """Workers load the application themselves."""
    raise NotImplementedError


class _Server(MPServer):
    """Granian's main process, which can also make the workers use a renewed certificate."""

    def __init__(self, context: process_worker.WorkerContext, keys: ServerKeys | None) -> None:
        settings = context.settings
        super().__init__(
            target="podstead",
            # Granian's own socket is not used; it is bound to a port that the system chooses, and
            # closed.
            address="127.0.0.1",
            port=0,
            interface=Interfaces.ASGI,
            loop=Loops.uvloop,
            http=HTTPModes.auto,
            workers=len(context.listening.http),
            workers_kill_timeout=settings.drain_timeout_s,
            backlog=BACKLOG,
            backpressure=settings.max_connections,
            http1_settings=HTTP1Settings(
                header_read_timeout=settings.header_read_timeout_s * 1000,
                max_buffer_size=MAX_HEADER_BYTES,
            ),
            http2_settings=HTTP2Settings(max_headers_size=MAX_HEADER_BYTES),
            log_access=False,
            log_level=LogLevels(server_level(settings)),
            log_dictconfig=logging_config(settings),
            respawn_failed_workers=False,  # until all have started, see _await_readiness
        )
        self._context = context
        self._pair = None if keys is None else keys.pair
        self._content_hash = b"" if keys is None else keys.content_hash
        self._renewed: ServerKeys | None = None
        self._retired: list[WorkerProcess] = []
        self.late_starts = 0
        """How many workers have started since all had."""
        self.planned_starts = 0
        """How many of these replaced a worker because of a renewed certificate."""
        self.started: queue.SimpleQueue[int] = queue.SimpleQueue()
        """The process ids of the workers that answer requests, as they report them."""
        if keys is not None and keys.pair is not None:
            self._use(keys.pair)

    @property
    def all_workers(self) -> list[WorkerProcess]:
        """Also workers that only finish their requests."""
        return [*self.wrks, *self._retired]

    def keys_in_use(self) -> bytes:
        """The content hash of the keys."""
        return self._content_hash

    def adopt(self, keys: ServerKeys) -> None:
        """Use other keys for new connections. Not to be called by two threads at once."""
        front = self._context.front
        if front is None or keys.context is None:
            self._renewed = keys
            self.signal_handler_reload()  # type: ignore[no-untyped-call]
            return
        front.context = keys.context  # for future workers
        self._context.socket_context = keys.socket_context
        for worker in self.wrks:
            if worker.inner.pid is not None and _is_alive(worker):
                os.kill(worker.inner.pid, RENEWAL_SIGNAL)
        self._note_use(keys.content_hash)

    def _note_use(self, content_hash: bytes) -> None:
        self._content_hash = content_hash
        logger.info("The renewed certificate is in use")

    def _use(self, pair: CertificatePair) -> None:
        """Make granian use these keys in future workers."""
        files = (str(pair.chain), str(pair.key), None)
        self.ssl_ctx = (True, *files, _LEAST_TLS, None, [], False)  # type: ignore[assignment]

    def _reload(self, spawn_target: object, target_loader: object) -> None:
        """Granian calls this in the main thread when workers are to be replaced."""
        self.reload_signal = False
        self.main_loop_interrupt.clear()
        renewed, before = self._renewed, self._pair
        if renewed is not None and renewed.pair is not None and before is not None:
            contexts = self._context.socket_context, renewed.socket_context
            self._use(renewed.pair)
            self._context.socket_context = contexts[1]
            if all(
                self._replace(index, spawn_target, target_loader) for index in range(self.workers)
            ):
                self._pair = renewed.pair
                before.forget()
                self._note_use(renewed.content_hash)
            else:
                self._use(before)
                self._context.socket_context = contexts[0]
                renewed.pair.forget()
            self._end_retired()
        # A signal that arrived meanwhile may have been cleared.
        if self.interrupt_signal or self.interrupt_children:
            self.main_loop_interrupt.set()

    def _replace(self, index: int, spawn_target: object, target_loader: object) -> bool:
        """Replace the worker with that index. Returns whether the new one has taken over."""
        new = self._spawn_worker(index, spawn_target, target_loader)
        new.interrupt_by_parent = True  # from now on this class handles its failure
        new.start()  # type: ignore[no-untyped-call]
        if not self._has_started(new):
            new.kill()  # type: ignore[no-untyped-call]
            if not self.interrupt_signal:
                logger.error("A worker with the renewed certificate did not start")
            return False
        new.interrupt_by_parent = False
        self.planned_starts += 1
        old, self.wrks[index] = self.wrks[index], new
        self._retired.append(old)
        _leave(old)
        return True

    def _end_retired(self) -> None:
        """Stop the workers that have been replaced, when the connections that they accepted last
        have sent their requests."""
        time.sleep(_SETTLE_S)
        self._retired = [each for each in self._retired if _is_alive(each)]
        for worker in self._retired:
            worker.terminate()  # type: ignore[no-untyped-call]

    def _has_started(self, worker: WorkerProcess) -> bool:
        while _is_alive(worker) and not self.interrupt_signal:
            try:
                if self.started.get(timeout=_POLL_S) == worker.inner.pid:
                    return True
            except queue.Empty:
                continue
        return False

    def leave(self) -> None:
        for worker in self.all_workers:
            _leave(worker)

    def _stop_workers(self) -> None:
        self.wrks, self._retired = self.all_workers, []
        super()._stop_workers()  # type: ignore[no-untyped-call]


def _leave(worker: WorkerProcess) -> None:
    """Have a worker accept nothing more, and go on serving the connections there are."""
    if worker.inner.pid is not None and _is_alive(worker):
        os.kill(worker.inner.pid, process_worker.LEAVE_SIGNAL)


def _is_alive(worker: WorkerProcess) -> bool:
    return bool(worker.is_alive())  # type: ignore[no-untyped-call]


class _Stop:
    """Waits for signals, in its own thread."""

    def __init__(
        self, server: _Server, listeners: Sequence[socket.socket], *, others_serve: bool
    ) -> None:
        self._server = server
        self._listeners = listeners
        self._others_serve = others_serve
        self.ending: ExitReason | None = None
        self._asked_s = 0.0

    def elapsed_s(self) -> float:
        """Seconds since the first signal."""
        return time.monotonic() - self._asked_s

    def wait(self) -> None:
        signal.sigwait(process_worker.STOP_SIGNALS)
        self.ending = ExitReason.STOPPED
        # Once the workers have closed them as well, clients are refused immediately instead of
        # waiting in a queue.
        for listener in self._listeners:
            listener.close()
        is_forced = self._others_serve and self._leave()
        self._asked_s = time.monotonic()
        self._server.signal_handler_interrupt()  # type: ignore[no-untyped-call]
        if not is_forced:
            signal.sigwait(process_worker.STOP_SIGNALS)
        self.ending = ExitReason.FORCED
        for worker in self._server.all_workers:
            worker.kill()  # type: ignore[no-untyped-call]

    def _leave(self) -> bool:
        """Let the connections that were accepted a moment ago send their requests; later ones are
        for whoever else serves. Returns whether there was a second signal."""
        self._server.leave()
        if not hasattr(signal, "sigtimedwait"):  # macOS
            time.sleep(_SETTLE_S)
            return False
        return signal.sigtimedwait(process_worker.STOP_SIGNALS, _SETTLE_S) is not None


@dataclass(frozen=True, slots=True)
class _Workers:
    """The workers, as the private address shows them."""

    server: _Server
    stop: _Stop

    def worker_pids(self) -> Sequence[int]:
        pids = [worker.inner.pid for worker in self.server.wrks if _is_alive(worker)]
        return [pid for pid in pids if pid is not None]

    @property
    def restarts(self) -> int:
        return self.server.late_starts - self.server.planned_starts

    @property
    def is_stopping(self) -> bool:
        return self.stop.ending is not None


def _await_readiness(
    server: _Server, workers: int, reports: Connection, on_ready: Callable[[], None]
) -> None:
    try:
        for _ in range(workers):
            reports.recv_bytes()
        on_ready()
        # Only now, because no process may be forked while this thread holds a lock.
        server.respawn_failed_workers = True
        while True:  # workers that have been replaced report as well
            pid = int(reports.recv_bytes())
            server.late_starts += 1
            server.started.put(pid)
    except EOFError:
        return  # the server has ended


def _raise_descriptor_limit() -> None:
    # The usual soft limit of 1024 is for programs that use select(); each connection and each file
    # being sent needs a descriptor.
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        logger.debug("The limit of open files stays as it is")
