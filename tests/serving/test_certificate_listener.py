"""The listener that asks for client certificates: who shows which one, and what reaches the
application (WebID-TLS, A-160). That it serves like the others is shown where those are."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import ssl
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from tests.support.certificates import Holder, holder, rsa_key
from tests.support.curl import curl
from tests.support.listeners import CERTIFICATE, LISTENERS, MakeServer, client_tls
from tests.support.server import DEADLINE_S, STUB_START, ServerProcess, running_server

pytestmark = pytest.mark.feature("webid_tls")

VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
WEB_ID = "https://alice.example/#me"


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("certificates") / "root"
    server = ServerProcess(root, LISTENERS["webid-tls"], STUB_START, tls=client_tls())
    with running_server(server):
        yield server


@pytest.fixture
def server(shared_server: ServerProcess) -> ServerProcess:
    """The server, and a client of its own for each test."""
    shared_server.tls = client_tls()
    return shared_server


@pytest.fixture
def own_server(make_server: MakeServer) -> ServerProcess:
    """A server whose memory and log no other test has used."""
    server = make_server(listener="webid-tls")
    server.own_interpreter = True
    server.start()
    return server


@dataclass(frozen=True)
class Folder:
    """Where the files of certificates lie."""

    path: Path

    def write(self, name: str, someone: Holder) -> tuple[Path, Path]:
        folder = self.path / name
        folder.mkdir()
        return someone.write(folder)

    def client(self, name: str, someone: Holder) -> ssl.SSLContext:
        """A client with that certificate."""
        context = client_tls()
        context.set_ciphers("DEFAULT:@SECLEVEL=1")  # or it has no use for a key of 1,024 bits
        context.load_cert_chain(*self.write(name, someone))
        return context


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def scope(server: ServerProcess) -> dict[str, Any]:
    """What the application is told of the connection."""
    facts: dict[str, Any] = json.loads(server.get("/scope").body)
    return facts


def chain(facts: dict[str, Any]) -> list[bytes]:
    """The certificates in DER."""
    return [ssl.PEM_cert_to_DER_cert(each) for each in facts["tls"]["client_cert_chain"]]


def read_all(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(65536), b""))


# --- Which certificates are taken -----------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: holder(WEB_ID), id="rsa-2048"),
        pytest.param(lambda: holder(WEB_ID, key=rsa_key(7, bits=4096)), id="rsa-4096"),
        pytest.param(lambda: holder(WEB_ID, key=rsa_key(8, bits=1024)), id="rsa-1024"),
        pytest.param(lambda: holder(key=ec.generate_private_key(ec.SECP256R1())), id="ec"),
        pytest.param(lambda: holder(WEB_ID, ends_s=-60), id="expired"),
        pytest.param(lambda: holder(WEB_ID, starts_s=1800), id="not-yet-valid"),
    ],
)
def test_any_certificate_is_accepted_and_passed_to_the_application(
    server: ServerProcess, folder: Folder, version: str, make: Callable[[], Holder]
) -> None:
    """A-160: what it is worth is for the application to say."""
    alice = make()
    server.tls = folder.client("alice", alice)
    server.tls.minimum_version = server.tls.maximum_version = VERSIONS[version]
    facts = scope(server)
    assert chain(facts) == [alice.der]
    assert facts["tls"]["client_cert_name"] == "CN=WebID"
    assert facts["tls"]["client_cert_error"]
    assert facts["tls"]["tls_version"] == {"1.2": 0x0303, "1.3": 0x0304}[version]


def test_a_certificate_that_cannot_be_read_is_passed_on_all_the_same(
    server: ServerProcess, folder: Folder
) -> None:
    """And the connection does not stay for ever, with nobody to read from it."""
    certificate, key = folder.write("alice", alice := holder(WEB_ID))
    of_version_4 = alice.der.replace(b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x03", 1)
    assert of_version_4 != alice.der
    certificate.write_text(ssl.DER_cert_to_PEM_cert(of_version_4), encoding="ascii")
    server.tls = client_tls()
    server.tls.load_cert_chain(certificate, key)
    facts = scope(server)
    assert chain(facts) == [of_version_4]
    assert facts["tls"]["client_cert_name"] is None


@pytest.mark.parametrize("version", VERSIONS)
def test_no_certificate_is_needed(server: ServerProcess, version: str) -> None:
    """A-160, A-161."""
    assert server.tls is not None
    server.tls.minimum_version = server.tls.maximum_version = VERSIONS[version]
    tls = scope(server)["tls"]
    assert tls["client_cert_chain"] == []
    assert (tls["client_cert_name"], tls["client_cert_error"]) == (None, None)


def test_the_scope_contains_what_the_asgi_tls_extension_requires(server: ServerProcess) -> None:
    """Nothing else in it tells how the request got there."""
    with server.open_socket() as connection:
        assert isinstance(connection, ssl.SSLSocket)
        connection.sendall(b"GET /scope HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        facts = json.loads(read_all(connection).partition(b"\r\n\r\n")[2])
        assert facts["client"] == ["127.0.0.1", str(connection.getsockname()[1])]
        cipher = connection.cipher()
    assert facts["server"] == ["127.0.0.1", str(server.port)]
    assert (facts["scheme"], facts["http_version"]) == ("https", "1.1")
    assert set(facts["tls"]) == {
        *("server_cert", "client_cert_chain", "client_cert_name", "client_cert_error"),
        *("tls_version", "cipher_suite"),
    }
    assert facts["tls"]["server_cert"].split() == CERTIFICATE.read_text(encoding="ascii").split()
    assert cipher is not None
    numbers = {"TLS_AES_128_GCM_SHA256": 0x1301, "TLS_AES_256_GCM_SHA384": 0x1302}
    assert facts["tls"]["cipher_suite"] == numbers[cipher[0]]


def test_what_an_authority_signed_is_shown_with_the_client_first(
    server: ServerProcess, folder: Folder
) -> None:
    authority, alice = holder(key=rsa_key(1)), holder(WEB_ID, key=rsa_key(2))
    signed = (
        x509.CertificateBuilder()
        .subject_name(alice.certificate.subject)
        .issuer_name(authority.certificate.subject)
        .public_key(alice.certificate.public_key())
        .serial_number(4711)
        .not_valid_before(alice.certificate.not_valid_before_utc)
        .not_valid_after(alice.certificate.not_valid_after_utc)
        .sign(authority.key, hashes.SHA256())
    )
    certificate, key = folder.write("alice", Holder(alice.key, signed))
    with certificate.open("a") as file:
        file.write(authority.pem)
    server.tls = client_tls()
    server.tls.load_cert_chain(certificate, key)
    assert chain(scope(server)) == [Holder(alice.key, signed).der, authority.der]


# --- What openssl sees ----------------------------------------------------------------------------


def s_client(server: ServerProcess, *options: str, sent: str = "") -> str:
    """What ``openssl s_client`` reports; the connection ends with what is sent."""
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{server.port}", *options]
    done = subprocess.run(
        command, input=sent, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.needs("openssl")
@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
@pytest.mark.parametrize(("listener", "is_asked"), [("https", False), ("webid-tls", True)])
def test_a_certificate_is_requested_only_with_webid_tls(
    make_server: MakeServer, listener: str, is_asked: bool, version: str
) -> None:
    """A-160: and of no authority in particular."""
    server = make_server(listener=listener)
    server.start()
    report = s_client(server, version, "-msg")
    assert ("CertificateRequest" in report) is is_asked
    assert "No client certificate CA names sent" in report


@pytest.mark.needs("openssl")
def test_no_session_is_resumed(server: ServerProcess, tmp_path: Path) -> None:
    """A-160: a resumed connection would not show the certificate."""
    report = s_client(server, "-tls1_2", "-reconnect")
    assert report.count("New, TLSv1.2") == 6
    assert "Reused" not in report
    session = tmp_path / "session"
    request = "GET /pid HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    for _ in range(2):
        resumed = ("-sess_in", str(session)) if session.exists() else ()
        options = ("-tls1_3", "-ign_eof", "-sess_out", str(session), *resumed)
        report = s_client(server, *options, sent=request)
        assert "HTTP/1.1 200" in report
        assert "New, TLSv1.3" in report
        assert "Reused" not in report


@pytest.mark.needs("openssl")
def test_nothing_is_renegotiated(server: ServerProcess) -> None:
    assert "no renegotiation" in s_client(server, "-tls1_2", sent="R\n")


@pytest.mark.needs("openssl")
@pytest.mark.parametrize(
    ("options", "is_taken"),
    [
        (("-tls1_1", "-cipher", "ALL:@SECLEVEL=0"), False),
        (
            ("-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA256"),
            False,
        ),  # encrypts, then authenticates
        (("-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256"), True),
        (("-tls1_2", "-cipher", "ECDHE-ECDSA-CHACHA20-POLY1305"), True),
        (("-tls1_3", "-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256"), True),
        (("-alpn", "spdy/3"), False),
        (("-alpn", "spdy/3,http/1.1"), True),
        (("-servername", "another.example"), True),
        (("-noservername",), True),
    ],
)
def test_only_current_protocols_are_spoken(
    server: ServerProcess, options: Sequence[str], is_taken: bool
) -> None:
    report = s_client(server, *options)
    assert ("Verify return code" in report and "Cipher is (NONE)" not in report) is is_taken


# --- Versions of HTTP -----------------------------------------------------------------------------


@pytest.mark.needs("curl")
@pytest.mark.parametrize(("option", "version"), [("--http1.1", "1.1"), ("--http2", "2")])
def test_both_versions_of_http_show_the_certificate(
    server: ServerProcess, folder: Folder, option: str, version: str
) -> None:
    alice = holder(WEB_ID)
    certificate, key = folder.write("alice", alice)
    who = ("--cacert", str(CERTIFICATE), "--cert", str(certificate), "--key", str(key))
    answer = curl(*who, option, f"{server.base_url}/scope")
    assert (answer.status, answer.http_version) == (200, version)
    facts = json.loads(answer.body)
    assert chain(facts) == [alice.der]
    assert facts["http_version"] == version


# --- Identities do not mix ------------------------------------------------------------------------


def test_two_hundred_connections_at_once_keep_their_identities(
    server: ServerProcess, folder: Folder
) -> None:
    holders = [holder(WEB_ID, key=rsa_key(number)) for number in range(3)]
    clients: list[tuple[ssl.SSLContext, list[bytes]]] = [(client_tls(), [])]
    clients += [(folder.client(str(n), each), [each.der]) for n, each in enumerate(holders)]

    async def run(number: int, ready: asyncio.Barrier) -> None:
        context, expected = clients[number % len(clients)]
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", server.port, ssl=context, server_hostname="localhost"
        )
        await ready.wait()  # all are open
        for _ in range(5):
            writer.write(b"GET /scope HTTP/1.1\r\nHost: localhost\r\n\r\n")
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head)
            assert length is not None, head
            facts = json.loads(await reader.readexactly(int(length[1])))
            assert chain(facts) == expected
            assert facts["client"][1] == str(writer.get_extra_info("sockname")[1])
        writer.close()
        await writer.wait_closed()

    async def run_all() -> None:
        ready = asyncio.Barrier(200)
        await asyncio.gather(*(run(number, ready) for number in range(200)))

    asyncio.run(run_all())


def test_a_later_connection_from_the_same_port_is_another_client(
    own_server: ServerProcess, folder: Folder
) -> None:
    server = own_server
    holders = [holder(key=rsa_key(number)) for number in range(2)]
    contexts = [folder.client(str(number), each) for number, each in enumerate(holders)]
    request = b"GET /scope HTTP/1.1\r\nHost: localhost\r\n\r\n"
    port = 0
    for turn in range(6):
        with socket.socket() as plain:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            plain.settimeout(DEADLINE_S)
            plain.bind(("127.0.0.1", port))
            port = plain.getsockname()[1]
            plain.connect(("127.0.0.1", server.port))
            context = contexts[turn % 2]
            with context.wrap_socket(plain, server_hostname="localhost") as connection:
                connection.sendall(request)
                answer = connection.recv(65536)
                while not answer.endswith(b"}"):
                    answer += connection.recv(65536)
                # Broken off, so that the port is free at once, with requests under way.
                connection.sendall(request * 5)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        facts = json.loads(answer.partition(b"\r\n\r\n")[2])
        assert chain(facts) == [holders[turn % 2].der]
        assert facts["client"] == ["127.0.0.1", str(port)]
    assert server.errors == ""


# --- Nobody gets past the listener ----------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """A server that has its private sockets in a known place."""

    server: ServerProcess
    temporary: Path

    def sockets(self) -> list[Path]:
        return [path for path in self.temporary.rglob("*") if path.is_socket()]


@pytest.fixture
def place(make_server: MakeServer) -> Iterator[Place]:
    server = make_server("--workers", "2", listener="webid-tls")
    with tempfile.TemporaryDirectory() as temporary:  # pytest's have long names
        server.environment = {**server.environment, "TMPDIR": temporary}
        server.start()
        yield Place(server, Path(temporary))
        server.close()


def test_the_sockets_behind_the_listener_are_out_of_reach_of_other_accounts(place: Place) -> None:
    (folder,) = place.temporary.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert len(place.sockets()) == 2
    assert all(folder in path.parents for path in place.sockets())


@pytest.mark.parametrize("has_name", [False, True])
def test_a_connection_that_bypasses_the_listener_is_refused(place: Place, has_name: bool) -> None:
    """Even of this account: no client stands behind its connection."""
    for path in place.sockets():
        with socket.socket(socket.AF_UNIX) as intruder:
            intruder.settimeout(DEADLINE_S)
            if has_name:  # one like those that the listener gives
                intruder.bind(str(path.with_name("4711")))
            intruder.connect(str(path))
            intruder.sendall(b"GET /pid HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = intruder.recv(65536)
        assert answer.startswith(b"HTTP/1.1 421 ")
        assert answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_no_socket_is_left_when_the_server_has_ended(place: Place, ending: str) -> None:
    getattr(place.server, ending)()
    assert list(place.temporary.iterdir()) == []


def test_a_temporary_folder_with_too_long_a_name_stops_the_start(
    make_server: MakeServer, tmp_path: Path
) -> None:
    temporary = tmp_path / ("x" * 100)
    temporary.mkdir()
    server = make_server("--port", "0", listener="webid-tls")
    server.environment = {**server.environment, "TMPDIR": str(temporary)}
    server.launch()
    assert server.wait() == 2
    assert "Set the variable TMPDIR to another folder" in server.errors
    assert list(temporary.iterdir()) == []


# --- Streams --------------------------------------------------------------------------------------

LARGE_BYTES = 100 * 1024 * 1024


def peak_bytes(server: ServerProcess) -> int:
    return int(server.get("/peak").text)


def test_a_hundred_megabytes_go_up(own_server: ServerProcess, folder: Folder) -> None:
    server = own_server
    server.tls = folder.client("alice", holder(WEB_ID))
    before = peak_bytes(server)
    answer = server.request("PUT", "/body", b"x" * LARGE_BYTES)
    assert answer.text == str(LARGE_BYTES)
    assert peak_bytes(server) - before < LARGE_BYTES / 4


def test_a_hundred_megabytes_go_down_to_a_slow_reader_without_being_kept_in_memory(
    own_server: ServerProcess, folder: Folder
) -> None:
    server = own_server
    server.tls = folder.client("alice", holder(WEB_ID))
    before = peak_bytes(server)
    connection = server.connect()
    connection.request("GET", f"/bytes?{LARGE_BYTES}")
    response = connection.getresponse()
    size_bytes = 0
    while piece := response.read(LARGE_BYTES // 50):
        size_bytes += len(piece)
        server.get("/pid")  # which takes its time, while the server could run ahead
    connection.close()
    assert size_bytes == LARGE_BYTES
    assert peak_bytes(server) - before < LARGE_BYTES / 4
