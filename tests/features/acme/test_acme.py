"""The server orders its certificate from an authority, and renews it in time (RFC 8555)."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import ssl
import stat
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509

from podstead.app.process.admin_http import MAX_REQUESTS
from podstead.config import Settings, StartRefused, read_settings
from podstead.config.sources import OptionValue
from podstead.features.acme.certificates import (
    AutomaticCertificate,
    OrderFailed,
    answering_challenges,
    host_names,
)
from tests.support.features import WEBID_TLS_OPTIONS
from tests.support.listeners import CERTIFICATE, KEY
from tests.support.proxies import free_port, listens, program
from tests.support.server import DEADLINE_S, START, ServerProcess, StartFailed
from tests.support.waiting import wait_until

# An ACME authority of its own for each test: Pebble, with every name on this machine.

_SETTINGS = {
    "PEBBLE_VA_NOSLEEP": "1",
    "PEBBLE_AUTHZREUSE": "0",
    "PEBBLE_WFE_NONCEREJECT": "0",
}
_TYPE_A = 1
_ANSWER = 0x8180
_POINTER = 0xC00C


@dataclass(frozen=True)
class Authority:
    """A running authority."""

    directory: str
    challenge_port: int
    """Where it asks for challenges, in place of port 80."""


@contextlib.contextmanager
def running_pebble(folder: Path) -> Iterator[Authority]:
    """Start Pebble. It asks for each challenge anew."""
    port, challenge_port = free_port(), free_port()
    config = {
        "pebble": {
            "listenAddress": f"127.0.0.1:{port}",
            "managementListenAddress": "",
            "certificate": str(CERTIFICATE),
            "privateKey": str(KEY),
            "httpPort": challenge_port,
            "tlsPort": free_port(),
            "retryAfter": {"authz": 1, "order": 1},
        }
    }
    path = folder / "pebble.json"
    path.write_text(json.dumps(config))
    log = folder / "pebble.log"
    with _names() as resolver, log.open("wb") as output:
        process = subprocess.Popen(
            [program("pebble"), "-config", str(path), "-dnsserver", resolver, "-strict"],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **_SETTINGS},
        )
        try:
            wait_until(lambda: process.poll() is not None or listens(port), "the authority")
            assert process.poll() is None, log.read_text()
            yield Authority(f"https://localhost:{port}/dir", challenge_port)
        finally:
            process.kill()
            process.wait()


@contextlib.contextmanager
def _names() -> Iterator[str]:
    """A resolver for which every name is at 127.0.0.1 and has no other records (RFC 1035)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as resolver:
        resolver.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=_answer_all, args=(resolver,), daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{resolver.getsockname()[1]}"
        finally:
            resolver.sendto(b"", resolver.getsockname())
            thread.join()


def _answer_all(resolver: socket.socket) -> None:
    while True:
        query, client = resolver.recvfrom(4096)
        if not query:
            return
        end = query.index(b"\0", 12) + 5
        (kind,) = struct.unpack_from("!H", query, end - 4)
        is_address = kind == _TYPE_A
        (number,) = struct.unpack_from("!H", query)
        answer = struct.pack("!HHHHHH", number, _ANSWER, 1, is_address, 0, 0)
        answer += query[12:end]
        if is_address:
            answer += struct.pack("!HHHIH", _POINTER, _TYPE_A, 1, 60, 4) + bytes([127, 0, 0, 1])
        resolver.sendto(answer, client)


NAME = "pods.example"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Authority]:
    with running_pebble(tmp_path_factory.mktemp("pebble")) as authority:
        yield authority


def settings_for(authority: Authority, root: Path, **changes: object) -> Settings:
    given: dict[str, object] = {
        "root": root,
        "host": "127.0.0.1",
        "base_url": f"https://{NAME}",
        "acme_email": "operator@pods.example",
        "acme_directory": authority.directory,
        "acme_ca_file": CERTIFICATE,
        "acme_port": authority.challenge_port,
        **changes,
    }
    root.mkdir(exist_ok=True)
    return Settings().with_values(**given)


def shown(port: int) -> x509.Certificate:
    """The certificate that a client is shown that asks for the name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with (
        socket.create_connection(("127.0.0.1", port), DEADLINE_S) as plain,
        context.wrap_socket(plain, server_hostname=NAME) as connection,
    ):
        der = connection.getpeercert(binary_form=True)
    assert der is not None
    return x509.load_der_x509_certificate(der)


def is_shown_another(port: int, than: x509.Certificate) -> bool:
    """Whether a client is shown another certificate; who comes while it changes tries again."""
    try:
        return shown(port) != than
    except (ConnectionError, ssl.SSLError):
        return False


@pytest.mark.needs("pebble")
@pytest.mark.parametrize("more", [(), (*WEBID_TLS_OPTIONS, "--sockets-port", "0")])
def test_a_server_gets_its_certificate_at_its_first_start_and_a_new_one_in_time(
    authority: Authority, tmp_path: Path, more: tuple[str, ...]
) -> None:
    """It keeps the first for the second start, and uses a renewed one without a restart."""
    server = ServerProcess(
        tmp_path / "root",
        (
            *("--host", "127.0.0.1", "--base-url", f"https://{NAME}", "--workers", "1"),
            *("--acme-email", "operator@pods.example", "--acme-directory", authority.directory),
            *(
                "--acme-port",
                str(authority.challenge_port),
                "--acme-ca-file",
                str(CERTIFICATE),
                *more,
            ),
        ),
        START,
        port=free_port(),
    )
    assert server.port is not None
    try:
        server.launch()
        server.wait_for_line("Podstead is ready")
        first = shown(server.port)
        names = first.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert names.get_values_for_type(x509.DNSName) == [NAME]
        files = sorted((tmp_path / "root/acme").iterdir())
        assert [file.name for file in files] == ["account.pem", "certificate.pem"]
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
        # Renewed by this process here, as a thread of the server does.
        AutomaticCertificate(settings_for(authority, tmp_path / "root")).order()
        server.signal(signal.SIGHUP)
        wait_until(lambda: is_shown_another(server.port or 0, first), "the renewed certificate")
        renewed = x509.load_pem_x509_certificate(files[1].read_bytes())
        server.stop()
        server.launch()
        server.wait_for_line("Podstead is ready")
        assert shown(server.port) == renewed
        assert "Ordering" not in server.errors
    finally:
        server.close()


@pytest.mark.needs("pebble")
def test_a_certificate_is_renewed_when_a_third_of_its_time_is_left(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the server is told."""
    asked: list[int] = []
    monkeypatch.setattr(os, "kill", lambda _pid, number: asked.append(number))
    settings = settings_for(authority, tmp_path / "root")
    now = [time.time()]
    own = AutomaticCertificate(settings, now_s=lambda: now[0])
    own.ensure()
    path = tmp_path / "root/acme/certificate.pem"
    stored = path.read_bytes()
    certificate = x509.load_pem_x509_certificate(stored)
    begin_s = certificate.not_valid_before_utc.timestamp()
    lifetime_s = certificate.not_valid_after_utc.timestamp() - begin_s
    for part in (0, 0.3, 0.66):
        now[0] = begin_s + part * lifetime_s
        own.look()
    assert path.read_bytes() == stored
    assert asked == []
    now[0] = begin_s + 0.67 * lifetime_s
    own.look()
    assert path.read_bytes() != stored
    assert asked == [signal.SIGHUP]


@pytest.mark.needs("pebble")
def test_a_new_name_needs_a_new_certificate(authority: Authority, tmp_path: Path) -> None:
    root = tmp_path / "root"
    AutomaticCertificate(settings_for(authority, root)).ensure()
    more = settings_for(
        authority, root, idp=True, idp_base_url="https://login.example", host_aliases=("b.example",)
    )
    assert host_names(more) == [NAME, "login.example", "b.example"]
    AutomaticCertificate(more).ensure()
    stored = x509.load_pem_x509_certificate((root / "acme/certificate.pem").read_bytes())
    names = stored.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert set(names.get_values_for_type(x509.DNSName)) == set(host_names(more))


@pytest.mark.needs("pebble")
def test_a_failed_renewal_leaves_the_certificate_in_use(
    authority: Authority,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The authority asks elsewhere, as it does if port 80 leads to another machine."""
    monkeypatch.setattr(os, "kill", lambda _pid, _number: pytest.fail("nothing was renewed"))
    root = tmp_path / "root"
    elsewhere = {free_port(), free_port()} - {authority.challenge_port}
    other_port = elsewhere.pop()
    with pytest.raises(OrderFailed, match=f"could not verify the host names. {NAME}: "):
        AutomaticCertificate(settings_for(authority, root, acme_port=other_port)).ensure()
    AutomaticCertificate(settings_for(authority, root)).ensure()
    stored = (root / "acme/certificate.pem").read_bytes()
    late = AutomaticCertificate(
        settings_for(authority, root, acme_port=other_port), now_s=lambda: 4_000_000_000
    )
    late.ensure()
    late.look()
    assert (root / "acme/certificate.pem").read_bytes() == stored
    assert caplog.text.count("could not be renewed") == 2


def test_a_start_without_a_certificate_says_why(tmp_path: Path) -> None:
    """With an exit code after which a service manager tries again."""
    port = free_port()
    server = ServerProcess(
        tmp_path / "root",
        (
            *("--base-url", f"https://{NAME}", "--acme-email", "operator@pods.example"),
            *("--acme-directory", f"https://localhost:{port}/dir", "--acme-port", str(free_port())),
        ),
        port=free_port(),
    )
    try:
        server.launch()
        with pytest.raises(StartFailed, match=r"exit code 1: [^\n]*\n?.*cannot be reached"):
            server.wait_for_line("Podstead is ready")
    finally:
        server.close()


@pytest.mark.needs("pebble")
def test_an_authority_that_is_not_trusted_is_told_in_one_sentence(
    authority: Authority, tmp_path: Path
) -> None:
    untrusting = settings_for(authority, tmp_path / "root", acme_ca_file=None)
    with pytest.raises(OrderFailed, match=r"set acme-ca-file to the file with its certificates\.$"):
        AutomaticCertificate(untrusting).order()


@pytest.mark.needs("pebble")
def test_the_port_for_challenges_is_open_only_while_they_are(
    authority: Authority, tmp_path: Path
) -> None:
    AutomaticCertificate(settings_for(authority, tmp_path / "root")).ensure()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", authority.challenge_port), DEADLINE_S)
    with (
        socket.create_server(("127.0.0.1", authority.challenge_port)),
        pytest.raises(OrderFailed, match="it is in use"),
    ):
        AutomaticCertificate(settings_for(authority, tmp_path / "root")).order()


PATH = "/.well-known/acme-challenge/token"


@pytest.fixture
def port() -> Iterator[int]:
    """The port of challenges, of which one is published."""
    port = free_port()
    with answering_challenges("127.0.0.1", port) as publish:
        publish(PATH, b"answer")
        yield port


def answer(port: int, path: str = PATH) -> tuple[int, bytes]:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
    try:
        client.request("GET", path)
        response = client.getresponse()
        return response.status, response.read()
    finally:
        client.close()


def test_a_challenge_is_answered_and_nothing_else(port: int) -> None:
    assert answer(port) == (200, b"answer")
    assert answer(port, "/")[0] == 404


@pytest.mark.parametrize("beginning", [b"", b"GET / HTTP/1.1\r\nX-Slow: "])
def test_silent_connections_keep_nobody_waiting_and_threads_are_few(
    port: int, beginning: bytes
) -> None:
    before = threading.active_count()
    with ExitStack() as stack:
        for _ in range(5 * MAX_REQUESTS):
            address = ("127.0.0.1", port)
            silent = stack.enter_context(socket.create_connection(address, DEADLINE_S))
            silent.sendall(beginning)
        for _ in range(5):
            assert answer(port) == (200, b"answer")
        assert threading.active_count() <= before + MAX_REQUESTS
    wait_until(lambda: threading.active_count() <= before, "all threads have ended")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "no authority issues a certificate for localhost"),
        ({"base_url": "https://192.0.2.1"}, "for 192.0.2.1"),
        ({"base_url": "https://[2001:db8::1]"}, "for 2001:db8::1"),
        ({"base_url": "http://pods.example"}, "https://"),
        (
            {"base_url": "https://a.example", "ssl_cert": "c.pem", "ssl_key": "k.pem"},
            "together with ssl-cert",
        ),
        (
            {"base_url": "https://a.example", "database": "postgresql://db.example/podstead"},
            "together with database",
        ),
    ],
)
def test_a_certificate_is_ordered_for_a_domain_name(
    given: dict[str, OptionValue], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(StartRefused) as caught:
        read_settings({"acme_email": "me@pods.example", **given}, {}, folder=tmp_path)
    assert sentence in str(caught.value)
