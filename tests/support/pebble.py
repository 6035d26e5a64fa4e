"""An ACME authority of its own for each test: Pebble, with every name on this machine."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.listeners import CERTIFICATE, KEY
from tests.support.proxies import free_port, listens, program
from tests.support.waiting import wait_until

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
