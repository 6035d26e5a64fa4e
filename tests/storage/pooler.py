"""PgBouncer in transaction mode, before a PostgreSQL server. It speaks TLS only.

Each transaction of a client may run in another session of the database.
"""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg

from tests.support.certificates import Holder
from tests.support.postgresql import as_server_account, give_to_server_account
from tests.support.proxies import free_port, listens, program
from tests.support.server import DEADLINE_S
from tests.support.waiting import wait_until

_ATTEMPTS = 20


@contextlib.contextmanager
def running_pooler(database: str, certificate: Holder) -> Iterator[str]:
    """The URL of a database of the shared server by way of a pooler on ``localhost``, without
    parameters for TLS."""
    parameters = psycopg.conninfo.conninfo_to_dict(database)
    with tempfile.TemporaryDirectory(prefix="podstead-") as created:
        folder = Path(created)
        chain, key = certificate.write(folder)
        file = folder / "pgbouncer.ini"
        for _ in range(_ATTEMPTS):
            port = free_port()
            file.write_text(
                f"""
[databases]
* = host={parameters["host"]} user={parameters["user"]}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 8
max_client_conn = 200
client_tls_sslmode = require
client_tls_cert_file = {chain}
client_tls_key_file = {key}
"""
            )
            give_to_server_account(folder)
            process = subprocess.Popen(
                as_server_account([program("pgbouncer"), str(file)]),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            try:
                wait_until(lambda: process.poll() is not None or listens(port), "PgBouncer")  # noqa: B023
                if process.poll() is None:
                    yield f"postgresql://{parameters['user']}@localhost:{port}/{parameters['dbname']}"
                    return
            finally:
                process.kill()
                process.wait(DEADLINE_S)
    raise AssertionError("PgBouncer does not start")
