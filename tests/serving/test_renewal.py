"""A renewed certificate of the server is used without a restart, on both TLS listeners."""

from __future__ import annotations

import signal
import ssl
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pytest
from cryptography import x509

from tests.support.certificates import Holder, holder, rsa_key
from tests.support.listeners import MakeServer, hold, sockets_port
from tests.support.server import DEADLINE_S, ServerProcess
from tests.support.waiting import wait_until

FAR_AWAY = ("--drain-timeout-s", "3600", "--header-read-timeout-s", "3600")
STAYS = "The certificate in use stays"

for_both = pytest.mark.parametrize("listener", ["https", "webid-tls"])
for_replaced_workers = pytest.mark.parametrize("listener", ["https"])
"""Granian's own TLS keeps its certificate for as long as a worker lives."""


@lru_cache
def for_localhost(number: int) -> Holder:
    return holder(names=[x509.DNSName("localhost")], key=rsa_key(number))


@dataclass(frozen=True)
class Renewable:
    """A server whose certificate and key lie in files that a test writes."""

    server: ServerProcess
    certificate: Path
    key: Path

    def start(self, first: Holder) -> None:
        self.replace(first)
        self.server.tls = self.trust(first)
        self.server.start()

    def replace(self, new: Holder) -> None:
        new.write(self.certificate.parent)

    def renew(self, new: Holder) -> None:
        """Replace the files and wait until every worker uses them."""
        self.replace(new)
        before = self.renewals()
        self.server.signal(signal.SIGHUP)
        self.server.tls = self.trust(new)
        self.wait_for_renewal(before)

    def be_reported(self) -> None:
        """Have the server look at the files, and wait until it says that they do not serve."""
        before = self.server.errors.count(STAYS)
        self.server.signal(signal.SIGHUP)
        wait_until(lambda: self.server.errors.count(STAYS) > before, "a line about the files")

    def renewals(self) -> int:
        return self.server.errors.count("The renewed certificate is in use")

    def wait_for_renewal(self, before: int) -> None:
        wait_until(lambda: self.renewals() > before, "the use of the renewed certificate")

    def shown(self, port: int | None = None) -> bytes:
        """The certificate, in DER, that a new connection is shown."""
        port = port or self.server.port
        assert port is not None
        pem = ssl.get_server_certificate(("127.0.0.1", port), timeout=DEADLINE_S)
        return ssl.PEM_cert_to_DER_cert(pem)

    @staticmethod
    def trust(someone: Holder) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=someone.der)


@pytest.fixture
def make_renewable(
    make_server: MakeServer, tmp_path: Path, listener: str
) -> Callable[..., Renewable]:
    def make(*options: str) -> Renewable:
        files = tmp_path / "files"
        files.mkdir()
        server = make_server(*FAR_AWAY, *options, listener=listener)
        certificate, key = files / "client.pem", files / "client-key.pem"
        server.options = (
            *(*server.options, "--ssl-cert", str(certificate)),
            *("--ssl-key", str(key)),
        )
        return Renewable(server, certificate, key)

    return make


@for_both
@pytest.mark.parametrize("workers", ["1", "2"])
def test_new_connections_get_the_renewed_certificate_and_old_ones_go_on(
    make_renewable: Callable[..., Renewable],
    threads: ThreadPoolExecutor,
    tmp_path: Path,
    workers: str,
) -> None:
    renewable = make_renewable("--workers", workers)
    old, new = for_localhost(0), for_localhost(1)
    renewable.start(old)
    assert renewable.shown() == old.der
    before = hold(renewable.server, threads)
    renewable.renew(new)
    wait_until(
        lambda: {renewable.shown() for _ in range(10)} == {new.der},
        "the end of the old certificate",
    )
    assert not before.done()
    (tmp_path / "release").touch()
    assert before.result(DEADLINE_S).status == 200
    assert renewable.server.stop() == 0


@for_both
def test_the_port_for_sockets_gets_the_renewed_certificate(
    make_renewable: Callable[..., Renewable],
) -> None:
    renewable = make_renewable("--workers", "2", "--sockets-port", "0")
    old, new = for_localhost(0), for_localhost(1)
    renewable.start(old)
    port = sockets_port(renewable.server)
    assert renewable.shown(port) == old.der
    renewable.renew(new)
    wait_until(
        lambda: {renewable.shown(port) for _ in range(10)} == {new.der},
        "the end of the old certificate",
    )
    assert renewable.server.stop() == 0


@for_both
def test_a_certificate_that_does_not_serve_is_reported_and_left_alone(
    make_renewable: Callable[..., Renewable],
) -> None:
    """Nor do workers that replace dead ones take it up."""
    renewable = make_renewable()
    old = for_localhost(0)
    renewable.start(old)
    for content in ("", "no certificate", for_localhost(1).pem):  # the last without its key
        renewable.certificate.write_text(content)
        renewable.be_reported()
        assert renewable.shown() == old.der
    pid = renewable.server.get("/pid").text
    with pytest.raises(OSError, match=r".*"):
        renewable.server.get("/die")
    assert renewable.server.get("/pid").text != pid
    assert renewable.shown() == old.der
    renewable.renew(for_localhost(2))
    assert renewable.server.stop() == 0


@for_replaced_workers
def test_a_stop_waits_for_what_an_old_worker_has_begun(
    make_renewable: Callable[..., Renewable], threads: ThreadPoolExecutor, tmp_path: Path
) -> None:
    renewable = make_renewable()
    renewable.start(for_localhost(0))
    before = hold(renewable.server, threads)
    renewable.renew(for_localhost(1))
    renewable.server.signal(signal.SIGTERM)
    renewable.server.wait_for_line("closing")  # the new worker, which has nothing to do
    assert not before.done()
    (tmp_path / "release").touch()
    assert before.result(DEADLINE_S).status == 200
    assert renewable.server.wait() == 0


@for_replaced_workers
def test_a_second_signal_ends_old_workers_too(
    make_renewable: Callable[..., Renewable], threads: ThreadPoolExecutor
) -> None:
    renewable = make_renewable()
    renewable.start(for_localhost(0))
    before = hold(renewable.server, threads)
    renewable.renew(for_localhost(1))
    renewable.server.signal(signal.SIGTERM)
    renewable.server.wait_for_line("closing")
    renewable.server.signal(signal.SIGTERM)
    assert renewable.server.wait() == 1
    with pytest.raises(OSError, match=r".*"):
        before.result(DEADLINE_S)


@for_replaced_workers
def test_a_worker_that_cannot_start_leaves_the_old_one_where_it_is(
    make_renewable: Callable[..., Renewable], tmp_path: Path
) -> None:
    renewable = make_renewable()
    old, new = for_localhost(0), for_localhost(1)
    renewable.start(old)
    (tmp_path / "broken").touch()
    renewable.replace(new)
    renewable.server.signal(signal.SIGHUP)
    wait_until(lambda: "did not start" in renewable.server.errors, "a line about it")
    assert renewable.shown() == old.der
    (tmp_path / "broken").unlink()
    renewable.renew(new)  # once the operator says so again
    assert renewable.server.stop() == 0


@pytest.mark.parametrize("listener", ["webid-tls"])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_no_connection_suffers_where_tls_is_ours(
    make_renewable: Callable[..., Renewable], threads: ThreadPoolExecutor, workers: str
) -> None:
    """Neither one that is open and idle nor any that is made meanwhile."""
    renewable = make_renewable("--workers", workers)
    renewable.start(for_localhost(0))
    either = ssl.create_default_context()  # both have the same name, which OpenSSL mixes up
    either.check_hostname = False
    either.verify_mode = ssl.CERT_NONE
    renewable.server.tls = either
    idle = renewable.server.connect()
    idle.connect()
    stop = threading.Event()

    def make_connections() -> int:
        count = 0
        while not stop.is_set():
            assert renewable.server.get("/pid").status == 200
            count += 1
        return count

    makers = [threads.submit(make_connections) for _ in range(3)]
    for number in (1, 0, 1):
        before = renewable.renewals()
        renewable.replace(for_localhost(number))
        renewable.server.signal(signal.SIGHUP)
        renewable.wait_for_renewal(before)
    stop.set()
    assert all(maker.result(DEADLINE_S) for maker in makers)
    idle.request("GET", "/pid")
    assert idle.getresponse().status == 200
    idle.close()
