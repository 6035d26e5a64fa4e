"""The server's own TLS."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.client import Pod, create_pod
from tests.support.curl import CurlAnswer, curl, sending
from tests.support.features import WEBID_TLS_OPTIONS
from tests.support.server import ServerProcess, running_server
from tests.support.wire import Wire

#
# HTTPS with a self-signed certificate, on both listeners: current versions of TLS, links that
# say https.


TLS = Path(__file__).parent.parent / "support/tls"
CERTIFICATE, KEY = TLS / "certificate.pem", TLS / "key.pem"


@pytest.fixture(scope="module", params=[(), WEBID_TLS_OPTIONS], ids=["https", "webid-tls"])
def server(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[ServerProcess]:
    options = ("--ssl-cert", str(CERTIFICATE), "--ssl-key", str(KEY), *request.param)
    root = tmp_path_factory.mktemp("tls") / "root"
    tls = ssl.create_default_context(cafile=str(CERTIFICATE))
    with running_server(ServerProcess(root=root, options=options, tls=tls)) as server:
        yield server


@pytest.fixture
def pod(server: ServerProcess) -> Pod:
    return create_pod(server)


def over_tls(pod: Pod, target: str, *options: str) -> CurlAnswer:
    who = ("--header", f"Authorization: Bearer {pod.token}")
    url = pod.server.base_url + target
    return curl("--cacert", str(CERTIFICATE), *who, *options, url)


@pytest.mark.parametrize("tls_version", ["1.2", "1.3"])
@pytest.mark.parametrize(("option", "http_version"), [("--http1.1", "1.1"), ("--http2", "2")])
def test_both_versions_of_tls_carry_both_versions_of_http(
    pod: Pod, tls_version: str, option: str, http_version: str
) -> None:
    options = (f"--tlsv{tls_version}", "--tls-max", tls_version, option)
    target = f"{pod.root}a.txt"
    body = "x" * 100_000
    put = over_tls(
        *(pod, target, *options, "--request", "PUT", *sending("text/plain")), "--data-binary", body
    )
    assert (put.status, put.http_version) == (201, http_version)
    assert over_tls(pod, target, *options).body == body.encode()


def test_streams_that_share_a_connection_do_not_mix(pod: Pod, tmp_path: Path) -> None:
    """HTTP/2, many requests at once on one connection."""
    count = 50
    with pod.owner() as client:
        for number in range(count):
            client.put(f"{pod.root}{number}.txt", str(number) * 5000)
    answer = over_tls(
        *(pod, f"{pod.root}[0-{count - 1}].txt", "--http2", "--fail-early", "--fail"),
        *("--parallel", "--parallel-max", "25", "--output", str(tmp_path / "#1")),
    )
    assert answer.exit_code == 0
    for number in range(count):
        assert (tmp_path / str(number)).read_text() == str(number) * 5000


def test_older_versions_of_tls_are_refused(pod: Pod) -> None:
    answer = over_tls(pod, pod.root, "--tlsv1.0", "--tls-max", "1.1")
    assert (answer.status, answer.exit_code) == (0, 35)  # CURLE_SSL_CONNECT_ERROR


def test_all_links_say_https(pod: Pod) -> None:
    answer = over_tls(pod, f"{pod.root}public/", "--include")
    assert answer.status == 200
    urls = re.findall(rf"https?://localhost:{pod.server.port}", answer.body.decode())
    assert set(urls) == {pod.server.base_url}
    assert "strict-transport-security" in answer.body.decode().lower()
    assert pod.web_id.startswith("https://")


def test_there_are_no_redirects(pod: Pod) -> None:
    """The server speaks on one port only; plain HTTP there gets no answer (P-2)."""
    assert over_tls(pod, pod.root).status == 200
    with Wire(pod.server) as wire:
        wire.send_what_is_taken(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        wire.receive_bytes(100)  # a TLS alert at most
        wire.receive_end()
    assert over_tls(pod, pod.root).status == 200
