"""Reverse proxies as operators set them up: they speak TLS and pass certificates on.

They reach the server from an address of their own, so that it can tell them from everybody else.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.server import DEADLINE_S
from tests.support.waiting import wait_until

ADDRESS = "127.0.0.2"
"""From which a proxy asks the server, which is on this machine as well."""
_ATTEMPTS = 20
_SEARCH_PATH = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin"


@dataclass(frozen=True)
class Place:
    """Where a proxy listens, what is behind it, and by which certificate it is known."""

    folder: Path
    port: int
    server_port: int
    certificate: Path
    key: Path
    sockets_port: int = 0
    """A port for WebSockets, if the server gets one."""


Configure = Callable[[Place], list[str]]
"""Writes the configuration and gives the command that runs the proxy."""


def nginx(place: Place) -> list[str]:
    """nginx, with the certificate as PEM in percent-encoding."""
    folder = place.folder
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    text = f"""
daemon off; master_process off; worker_processes 1;
pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
    access_log off;
    {temporary}
    server {{
        listen 127.0.0.1:{place.port} ssl;
        ssl_certificate {place.certificate};
        ssl_certificate_key {place.key};
        ssl_verify_client optional_no_ca;
        location / {{
            proxy_pass http://127.0.0.1:{place.server_port};
            proxy_bind {ADDRESS};
            proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-For $remote_addr;
            proxy_set_header Client-Cert $ssl_client_escaped_cert;
        }}
    }}
}}
"""
    (folder / "nginx.conf").write_text(text)
    return [program("nginx"), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", "stderr"]


def haproxy(written: str) -> Configure:
    """HAProxy, with the certificate written like that."""

    def configure(place: Place) -> list[str]:
        folder = place.folder
        both = folder / "server.pem"
        both.write_bytes(place.certificate.read_bytes() + place.key.read_bytes())
        text = f"""
defaults
    mode http
    timeout connect {DEADLINE_S}s
    timeout client {DEADLINE_S}s
    timeout server {DEADLINE_S}s
frontend https
    bind 127.0.0.1:{place.port} ssl crt {both} verify optional ca-file {place.certificate} \
crt-ignore-err all ca-ignore-err all
    http-request set-header X-Forwarded-For %[src]
    http-request del-header Client-Cert
    http-request set-header Client-Cert {written} if {{ ssl_c_used }}
    default_backend podstead
backend podstead
    server podstead 127.0.0.1:{place.server_port} source {ADDRESS}
"""
        (folder / "haproxy.cfg").write_text(text)
        return [program("haproxy"), "-db", "-q", "-f", str(folder / "haproxy.cfg")]

    return configure


RFC_9440 = ":%[ssl_c_der,base64]:"
BASE_64 = "%[ssl_c_der,base64]"


@contextlib.contextmanager
def running_proxy(configure: Configure, folder: Path, **files: Path) -> Iterator[Place]:
    """Run a proxy on a port that the system chose, before a server that need not run yet."""
    for _ in range(_ATTEMPTS):
        place = Place(folder, free_port(), free_port(), **files, sockets_port=free_port())
        process = subprocess.Popen(
            configure(place), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            wait_until(lambda: process.poll() is not None or listens(place.port), "the proxy")  # noqa: B023
            if process.poll() is None:
                yield place
                return
        finally:
            process.kill()
            process.wait(DEADLINE_S)
    raise AssertionError("the proxy does not start")


def program(name: str) -> str:
    """The path of a program that may be in root's path only."""
    found = shutil.which(name, path=_SEARCH_PATH)
    assert found is not None
    return found


def free_port() -> int:
    """A port that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def listens(port: int) -> bool:
    """Whether something listens there."""
    try:
        socket.create_connection(("127.0.0.1", port), DEADLINE_S).close()
    except ConnectionRefusedError:
        return False
    return True
