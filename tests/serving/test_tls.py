"""With a certificate and its key the server speaks HTTPS; without one of them it does not start.

The files of ``tls/`` are self-signed for ``localhost`` and of no use elsewhere.
"""

import ssl
from pathlib import Path

import pytest

from tests.serving.conftest import MakeServer
from tests.support.server import ServerProcess

TLS = Path(__file__).parent / "tls"
CERTIFICATE, KEY = TLS / "certificate.pem", TLS / "key.pem"


def with_tls(server: ServerProcess, version: ssl.TLSVersion) -> ServerProcess:
    server.options = (*server.options, "--ssl-cert", str(CERTIFICATE), "--ssl-key", str(KEY))
    server.tls = ssl.create_default_context(cafile=str(CERTIFICATE))
    server.tls.minimum_version = server.tls.maximum_version = version
    return server


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_current_versions_of_tls_are_spoken(
    make_server: MakeServer, version: ssl.TLSVersion
) -> None:
    server = with_tls(make_server(), version)
    server.start()  # the base URL it announces is https
    assert server.get("/pid").status == 200


@pytest.mark.parametrize(
    ("key", "reason"),
    [("other-key.pem", "key values mismatch"), ("encrypted-key.pem", "or has a password")],
)
def test_a_key_that_does_not_serve_stops_the_start(
    make_server: MakeServer, key: str, reason: str
) -> None:
    server = make_server("--port", "0", "--ssl-cert", str(CERTIFICATE), "--ssl-key", str(TLS / key))
    server.launch()
    assert server.wait() == 2
    assert reason in server.errors
    assert server.errors.count("\n") == 1


def test_a_missing_file_stops_the_start(make_server: MakeServer, tmp_path: Path) -> None:
    missing = tmp_path / "missing.pem"
    server = make_server("--port", "0", "--ssl-cert", str(missing), "--ssl-key", str(KEY))
    server.launch()
    assert server.wait() == 2
    assert (
        server.errors == f"Error: ssl-cert {missing} cannot be read (No such file or directory).\n"
    )
