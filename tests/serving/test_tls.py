"""With a certificate and its key the server speaks HTTPS; without one of them it does not start."""

import ssl
from pathlib import Path

import pytest

from tests.support.listeners import CERTIFICATE, KEY, TLS, MakeServer, client_tls


@pytest.mark.parametrize("listener", ["https", "webid-tls"])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_current_versions_of_tls_are_spoken(
    make_server: MakeServer, version: ssl.TLSVersion, listener: str
) -> None:
    server = make_server(listener=listener)
    server.tls = client_tls()
    server.tls.minimum_version = server.tls.maximum_version = version
    server.start()  # the base URL it announces is https
    assert server.get("/pid").status == 200


@pytest.mark.parametrize(
    ("key", "reason"),
    [("other-key.pem", "key values mismatch"), ("encrypted-key.pem", "or has a passphrase")],
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
    assert server.errors == f"Error: Cannot read ssl-cert {missing}: No such file or directory.\n"
