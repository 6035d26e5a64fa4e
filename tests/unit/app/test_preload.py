"""Is everything in memory before the first request? Every import inside a function is looked up."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes import REPOSITORY
from tests.support.server import DEADLINE_S

SOURCES = REPOSITORY / "src"
_LOADED = """
import json, sys
import podstead.cli.start, podstead.app.services, podstead.app.process.run
from podstead.app.process.preload import preload
from podstead.config import Settings
from podstead.outbound.mail import parse_mail_destination
from podstead.storage.blobs.s3_location import parse_s3_location
given = json.loads(sys.argv[1])
if "mail" in given:
    given["mail"] = parse_mail_destination(given["mail"])
if "bodies" in given:
    given["bodies"] = parse_s3_location(given["bodies"])
preload(Settings(**given))
print(json.dumps(sorted(sys.modules)))
"""
_FROZEN = """
import gc, json
from podstead.app.process.preload import preload
from podstead.config import Settings
preload(Settings())
print(json.dumps([gc.isenabled(), len(gc.get_objects()), gc.get_freeze_count()]))
"""
_BEFORE_THE_FIRST_REQUEST = {"podstead.app.adapters.profile_index"}
_OPTIONAL = {"podstead.app.adapters.open_telemetry"}
"""Loaded before workers start if traces are wanted."""
_OF_COMMANDS = {
    "podstead.outbound.submission",
    "podstead.storage.copying.bodies",
    "podstead.storage.postgresql.copying",
    "podstead.storage.postgresql.inspection",
    "podstead.storage.sqlite.compacting",
    "podstead.storage.sqlite.copying",
    "podstead.storage.sqlite.inspection",
}
_OF_THE_RENDERER = {
    "podstead.previews.markdown",
    "podstead.previews.pictures",
    "podstead.previews.source",
}
"""What the process that renders previews loads, which is started anew for each of them."""


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
        webid_tls=True,
        database=DATABASE,
        bodies="s3://bucket/pods",
        git=True,
        sockets_port=0,
        mail=MAIL,
        acme_email="me@pods.example",
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
    return [path for path in late if path.parent.name != "cli"]


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


def test_without_mail_what_sends_it_is_not_loaded(loaded: frozenset[str]) -> None:
    mail = {"aiosmtplib", "podstead.app.adapters.mail", "podstead.outbound.smtp"}
    assert mail <= loaded
    assert not mail & _loaded_by(idp=True)


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
        "podstead.web.idp",
        "webauthn",
    }
    assert provider <= loaded
    assert not provider & _loaded_by()


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
