"""What connections inherit from the socket that they came by."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from podstead.app.process.listening import chosen_port, closing_all, open_listeners
from podstead.config import Settings


@pytest.mark.parametrize("workers", [1, 2])
def test_connections_are_kept_alive_and_send_at_once(tmp_path: Path, workers: int) -> None:
    """N-20, N-31: a client that vanished is noticed though nothing is sent to it."""
    settings = Settings(root=tmp_path, host="127.0.0.1", port=0)
    listeners = open_listeners(settings, workers).http
    with (
        closing_all(listeners),
        socket.create_connection(("127.0.0.1", chosen_port(listeners))) as client,
    ):
        accepted = None
        while accepted is None:  # whichever of them the system gave it to
            for listener in listeners:
                try:
                    accepted, _ = listener.accept()
                except BlockingIOError:
                    continue
        with accepted:
            assert accepted.getpeername() == client.getsockname()
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) != 0
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 60
