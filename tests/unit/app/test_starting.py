"""Is everything in memory before the first request? Every import inside a function is looked up."""

from __future__ import annotations

import ast
import asyncio
import json
import logging
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from podstead.app import lifespan
from podstead.app.adapters.system import SystemClock
from podstead.app.process.listening import chosen_port, closing_all, open_listeners
from podstead.app.process.logs import GranianLogFilter, JsonFormatter, TextFormatter, logging_config
from podstead.app.process.run import MAX_CORES, usable_cores
from podstead.app.process.tls import front
from podstead.app.process.tls.front import private_folder
from podstead.config import Settings
from podstead.core.errors import DiskFull, Overloaded, StorageError, StoreUnavailable
from podstead.features import WorkerFeature
from podstead.storage.protocol import Store
from tests.support.features import LEFT_OUT
from tests.support.processes import REPOSITORY
from tests.support.server import DEADLINE_S

SOURCES = REPOSITORY / "src"
_LOADED = """
import json, sys
import podstead.cli.start, podstead.app.services, podstead.app.process.run
from podstead.app.process.preload import preload
from podstead.config import Settings
from podstead.config.settings import settings_table
rows = {row.field: row for row in settings_table()}  # without those of features that are left out
given = {
    name: rows[name].kind.parse(value) if isinstance(value, str) else value
    for name, value in json.loads(sys.argv[1]).items()
    if name in rows
}
preload(Settings().with_values(**given))
print(json.dumps(sorted(sys.modules)))
"""
_FROZEN = """
import gc, json
from podstead.app.process.preload import preload
from podstead.config import Settings
preload(Settings())
print(json.dumps([gc.isenabled(), len(gc.get_objects()), gc.get_freeze_count()]))
"""
_BEFORE_THE_FIRST_REQUEST = {"podstead.features.nostr.profile_index"}
_OPTIONAL = {"podstead.app.adapters.open_telemetry"}
"""Loaded before workers start if traces are wanted."""
if "webid_tls" in LEFT_OUT:  # then no listener requests certificates
    _OPTIONAL |= {"podstead.app.process.tls.engine", "podstead.app.process.tls.terminator"}
_OF_COMMANDS = {
    "importlib.metadata",
    "podstead.features.access_limits.credentials",
    "podstead.features.git.data_root",
    "podstead.outbound.requests",
    "podstead.storage.copying.bodies",
    "podstead.storage.postgresql.inspection",
    "podstead.storage.sqlite.compacting",
    "podstead.storage.sqlite.inspection",
}
_OF_THE_RENDERER = {
    "email",
    "email.message",
    "podstead.features.previews.markdown",
    "podstead.features.previews.pictures",
    "podstead.features.previews.source",
    "pypdf",
}
"""What the processes that render previews and read documents load, one for each of these."""


DATABASE = "postgresql://podstead@db.example/podstead"
MAIL = "smtp://mail.example?from=pods@pods.example"
_INDENTED_IMPORT = re.compile(r"^[ \t]+(import|from) ", re.MULTILINE)


def _late_imports(path: Path) -> Iterator[str]:
    """The modules that functions of a file import."""
    text = path.read_text(encoding="utf-8")
    if _INDENTED_IMPORT.search(text) is None:
        return  # parsing takes longer
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    tree = ast.parse(text)
    for function in [node for node in ast.walk(tree) if isinstance(node, functions)]:
        for node in ast.walk(function):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.module is not None
                yield node.module


@pytest.fixture(scope="module")
def loaded() -> frozenset[str]:
    """What a server with everything switched on has in memory when it begins to answer."""
    return _loaded_by(
        idp=True,
        database=DATABASE,
        bodies="s3://bucket/pods",
        git=True,
        acme_email="me@pods.example",
        apps="apps.toml",
        webid_tls=True,
        sockets_port=0,
        mail=MAIL,
    )


def _loaded_by(**settings: bool | int | str) -> frozenset[str]:
    """The modules that a fresh process loads for these settings."""
    return frozenset(json.loads(_output_of(_LOADED, json.dumps(settings))))


def _output_of(program: str, *arguments: str) -> str:
    """What a fresh process prints that runs this program."""
    finished = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
        cwd=REPOSITORY,
    )
    return finished.stdout


def _sources() -> list[Path]:
    """The files with imports in functions, but for the commands, which no server calls."""
    files = sorted((SOURCES / "podstead").rglob("*.py"))
    late = [path for path in files if any(_late_imports(path))]
    left_out = {"cli", *LEFT_OUT}
    return [path for path in late if path.parent.name not in left_out and path.stem != "command"]


@pytest.mark.parametrize(
    "path", _sources(), ids=lambda path: str(path.relative_to(SOURCES / "podstead"))
)
def test_nothing_is_imported_late(path: Path, loaded: frozenset[str]) -> None:
    """An upgrade may replace the package under a running server."""
    assert (
        set(_late_imports(path))
        - _OPTIONAL
        - _BEFORE_THE_FIRST_REQUEST
        - _OF_COMMANDS
        - _OF_THE_RENDERER
        <= loaded
    )


@pytest.mark.feature("mail")
def test_without_accounts_what_sends_mail_is_not_loaded(loaded: frozenset[str]) -> None:
    mail = {"aiosmtplib", "podstead.features.mail.sending", "podstead.features.mail.smtp"}
    assert mail <= loaded
    assert not mail & _loaded_by(idp=False)


def test_without_s3_its_library_is_not_loaded(loaded: frozenset[str]) -> None:
    library = {"obstore", "podstead.storage.blobs.s3"}
    assert library <= loaded
    assert not library & _loaded_by(idp=True, database=DATABASE)


def test_without_the_provider_what_belongs_to_it_is_not_loaded(loaded: frozenset[str]) -> None:
    provider = {
        "argon2",
        "authlib",
        "podstead.app.provider",
        "podstead.idp.accounts",
        "podstead.idp.clients",
        "podstead.idp.oauth",
        "podstead.idp.passwords",
        "podstead.idp.sessions",
        "podstead.web.account.first_steps",
        "podstead.web.oidc",
        "webauthn",
    }
    assert provider <= loaded
    assert not provider & _loaded_by(sharing_links=False)  # links may have passwords, too


def test_no_collection_visits_what_workers_share() -> None:
    """It would write to every object, and each worker would get a copy of every page."""
    is_enabled, visited, frozen = json.loads(_output_of(_FROZEN))
    assert is_enabled
    assert frozen > 10_000
    assert visited < frozen / 100


def test_a_start_loads_no_other_command() -> None:
    """A server keeps what it has loaded in memory for as long as it runs."""
    script = "import sys, podstead.cli.start; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "podstead.cli.commands" in loaded
    assert not loaded & {f"podstead.cli.{name}" for name in ("account", "backup", "pod", "watch")}


# --- The upkeep that a worker does beside answering --------------------------------------------


class _SweptStore:
    """A store whose first sweeps meet trouble."""

    def __init__(self) -> None:
        self.troubles = [StorageError("broken"), Overloaded("too many writes")]
        self.swept = asyncio.Event()

    async def sweep_own_files(self, *, now_ms: int) -> None:
        assert now_ms > 0

    async def sweep(self, *, now_ms: int) -> None:
        assert now_ms > 0
        if self.troubles:
            raise self.troubles.pop()
        self.swept.set()


class _SweptFeature(WorkerFeature):
    sweeps = 0

    async def sweep(self) -> None:
        self.sweeps += 1


async def test_sweeping_continues_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that is busy or broken for a while is swept again when it is not."""
    monkeypatch.setattr(lifespan, "AGAIN_S", 0)
    store, clock = _SweptStore(), SystemClock()
    feature = _SweptFeature()
    sweeping = lifespan.Sweeping(cast("Store", store), [feature], None, clock).in_background()
    sweeping.start()
    async with asyncio.timeout(30):
        await store.swept.wait()
    await sweeping.stop()
    assert feature.sweeps >= 1


# --- What connections inherit from the socket that they came by --------------------------------


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


# --- Where the sockets behind the TLS listener are ---------------------------------------------


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place that stands for the one in memory; the usual one is ``tmp_path``."""
    folder = tmp_path / "m"
    folder.mkdir()
    monkeypatch.setattr(front, "_MEMORY", str(folder))
    monkeypatch.setattr(front, "_MAX_BYTES", 200)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("TMPDIR", raising=False)
    return folder


def test_names_of_sockets_are_in_memory(memory: Path) -> None:
    """On a disk, each new connection would take a tenth of a millisecond longer."""
    with private_folder("webid-tls") as folder:
        assert folder.parent == memory
        assert folder.stat().st_mode & 0o777 == 0o700
    assert list(memory.iterdir()) == []


def test_the_operator_can_choose_another_place(
    memory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with private_folder("webid-tls") as folder:
        assert folder.parent == tmp_path
    assert list(memory.iterdir()) == []


def test_without_room_in_memory_the_usual_place_is_used(memory: Path, tmp_path: Path) -> None:
    memory.rmdir()
    with private_folder("webid-tls") as folder:
        assert folder.parent == tmp_path


# --- The number of usable cores respects every limit that the kernel knows ---------------------


@pytest.fixture
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)


def system(folder: Path, memberships: str, files: dict[str, str]) -> Path:
    """A folder with the files that the kernel shows to a process in these control groups."""
    for name, text in {"proc/self/cgroup": memberships, **files}.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
    return folder


@pytest.mark.usefixtures("eight_cores")
@pytest.mark.parametrize(
    ("memberships", "files", "expected"),
    [
        ("0::/", {}, 8),
        ("0::/", {"cpu.max": "max 100000"}, 8),
        ("0::/", {"cpu.max": "300000 100000"}, 3),
        ("0::/", {"cpu.max": "150000 100000"}, 1),
        ("0::/", {"cpu.max": "20000 100000"}, 1),
        ("0::/", {"cpu.max": "1600000 100000"}, 8),
        ("0::/a/b", {"a/b/cpu.max": "400000 100000", "a/cpu.max": "max 100000"}, 4),
        ("0::/a/b", {"a/b/cpu.max": "400000 100000", "a/cpu.max": "200000 100000"}, 2),
        ("0::/unknown/here", {"cpu.max": "200000 100000"}, 2),
        ("0::/../other", {"cpu.max": "200000 100000"}, 2),
        ("2:cpu,cpuacct:/a", {"cpu/a/cpu.cfs_quota_us": "-1"}, 8),
        (
            "3:memory:/a\n2:cpu,cpuacct:/a\n0::/",
            {"cpu/a/cpu.cfs_quota_us": "250000", "cpu/a/cpu.cfs_period_us": "50000"},
            5,
        ),
        ("4:cpuset:/a", {"cpu/a/cpu.cfs_quota_us": "1", "cpu/a/cpu.cfs_period_us": "1"}, 8),
        ("0::/", {"cpu.max": "what is this"}, 8),
    ],
)
def test_the_limits_of_control_groups_apply(
    tmp_path: Path, memberships: str, files: dict[str, str], expected: int
) -> None:
    mounted = {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
    assert usable_cores(system(tmp_path, memberships, mounted)) == expected


def test_a_process_bound_to_one_core_uses_one() -> None:
    """As taskset does it; in a process of its own, since affinity is for good."""
    code = (
        "import os; from podstead.app.process.run import usable_cores;"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); print(usable_cores())"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True, timeout=60
    )
    assert printed.stdout == "1\n"


@pytest.mark.usefixtures("eight_cores")
def test_a_system_without_control_groups_has_its_cores(tmp_path: Path) -> None:
    assert usable_cores(tmp_path) == 8


def test_without_affinity_all_cores_are_usable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert usable_cores(tmp_path) == 6
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_cores(tmp_path) == 1
    monkeypatch.setattr(os, "cpu_count", lambda: 1000)
    assert usable_cores(tmp_path) == MAX_CORES


# --- Log lines carry all that was logged, as text or as JSON -----------------------------------


def record(message: str = "Served %s", *arguments: object, **extra: object) -> logging.LogRecord:
    made = logging.LogRecord("podstead.web", logging.INFO, __file__, 1, message, arguments, None)
    made.created = 1_700_000_000.25
    made.__dict__.update(extra)
    return made


def failed(message: str, error: Exception | None = None) -> logging.LogRecord:
    made = record(message)
    raised = error or ValueError("a fault")
    made.exc_info = (type(raised), raised, None)
    return made


def test_a_text_line_has_time_level_logger_message_and_facts() -> None:
    line = TextFormatter().format(record("Served %s", "it", request_id="r1", status=200))
    assert line == (
        "2023-11-14T22:13:20.250Z info podstead.web: Served it (request_id=r1 status=200)"
    )


def test_a_json_line_is_one_object() -> None:
    line = JsonFormatter().format(record("Sérved\n%s", "it", request_id="r1", status=200))
    assert "\n" not in line
    assert json.loads(line) == {
        "time": "2023-11-14T22:13:20.250Z",
        "level": "info",
        "logger": "podstead.web",
        "message": "Sérved\nit",
        "request_id": "r1",
        "status": 200,
    }


def test_a_fact_that_json_does_not_know_is_written_as_text() -> None:
    line = JsonFormatter().format(record("x", peer=b"\xff"))
    assert json.loads(line)["peer"] == "b'\\xff'"


def test_a_traceback_is_kept() -> None:
    assert "ValueError: a fault" in TextFormatter().format(failed("It failed"))
    assert "ValueError: a fault" in json.loads(JsonFormatter().format(failed("x")))["exception"]


@pytest.mark.parametrize(
    ("trouble", "cause"),
    [
        (ConnectionResetError("gone\nfor good"), "ConnectionResetError: gone for good"),
        (TimeoutError(), "TimeoutError"),
        (Overloaded("Too many"), "Too many"),
        (ExceptionGroup("both", [TimeoutError("late"), DiskFull()]), "TimeoutError: late"),
    ],
)
def test_trouble_outside_of_the_program_is_one_line_with_its_cause(
    trouble: Exception, cause: str
) -> None:
    unavailable = StoreUnavailable()
    unavailable.__cause__ = trouble
    for error in (trouble, unavailable):
        line = TextFormatter().format(failed("It failed", error))
        assert line.endswith(f"It failed: {cause}")
        assert "\n" not in line
        entry = json.loads(JsonFormatter().format(failed("It failed", error)))
        assert (entry["cause"], "exception" in entry) == (cause, False)


def test_a_body_that_was_cut_is_not_reported_again() -> None:
    assert not GranianLogFilter().filter(
        record("Application callable raised\nTraceback …\nBodyTruncated")
    )
    assert GranianLogFilter().filter(record("Application callable raised\nTraceback …\nKeyError"))


def test_a_text_line_cannot_be_forged_by_a_line_break() -> None:
    line = TextFormatter().format(record("Served %s", "x\n2023 error podstead: forged", p="a\nb"))
    assert "\n" not in line


@pytest.mark.parametrize(
    ("settings", "ours", "granians"),
    [
        (Settings(), "INFO", "WARNING"),
        (Settings(log_level="debug"), "DEBUG", "INFO"),
        (Settings(log_level="error"), "ERROR", "ERROR"),
        (Settings(quiet=True), "ERROR", "ERROR"),
    ],
)
def test_the_http_servers_own_news_is_less_important(
    settings: Settings, ours: str, granians: str
) -> None:
    loggers: dict[str, Any] = logging_config(settings)["loggers"]
    assert loggers["podstead"]["level"] == ours
    assert loggers["_granian"]["level"] == granians


def test_what_granian_wrongly_says_about_stopping_is_dropped() -> None:
    news = GranianLogFilter()
    assert not news.filter(record("Killing worker-1 after it refused to gracefully stop"))
    assert news.filter(record("Unexpected exit from worker-1"))
