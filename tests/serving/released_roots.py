"""Data roots as released versions have left them, for the tests of upgrades.

There is one for each number of the schema, in ``tests/storage/released``: a compressed archive with
the root and with ``answers.json``, which has what the server of that version answered. With
PostgreSQL, it also has the database as SQL, in ``dump.sql``. Before a migration is added, the root
of the schema so far is written by the code that is about to be changed:

    python -m tests.serving.released_roots [--postgresql]

``--source`` names the folder ``src`` of an earlier version instead.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import apsw
import psycopg

from tests.support.postgresql import new_database
from tests.support.processes import REPOSITORY, clean_environment

FOLDER: Final = REPOSITORY / "tests/storage/released"
BASE_URL: Final = "http://localhost:3000"
HOST: Final = "localhost:3000"
PASSWORD: Final = "correct horse battery staple"
ACCOUNT: Final = "carol"
SCHEMA_OF_ACCOUNTS: Final = 2
_NOT_KEPT: Final = {"reserve", "podstead.lock", "write-turns", "change-pipes", "doorbells"}
_LARGE: Final = "0123456789abcdef" * 5000
"""More than a database keeps of a body."""
_TEXTS: Final = {
    "/alice/notes.ttl": ("text/turtle", "<#it> <http://purl.org/dc/terms/title> 'Grüße', 1 .\n"),
    "/alice/card.jsonld": ("application/ld+json", '{"@id": "#me", "http://x.example/n": "A"}'),
    "/alice/data/one.txt": ("text/plain", "one"),
    "/alice/data/two.txt": ("text/plain; charset=utf-8", "zwei ü"),
    "/alice/data/deep/er/three.txt": ("text/plain", "three"),
    "/alice/data/large.txt": ("text/plain", _LARGE),
    "/alice/shared/for-bob.txt": ("text/plain", "for Bob"),
}
_GONE: Final = "/alice/data/gone.txt"
_RULES: Final = f"""@prefix acl: <http://www.w3.org/ns/auth/acl#>.
<#owner> a acl:Authorization; acl:agent <{BASE_URL}/alice/#me>; acl:accessTo <./>;
  acl:default <./>; acl:mode acl:Read, acl:Write, acl:Control.
<#bob> a acl:Authorization; acl:agent <{BASE_URL}/bob/#me>; acl:accessTo <./>;
  acl:default <./>; acl:mode acl:Read.
"""


@dataclass(frozen=True)
class Recorded:
    """A GET and its answer. ``agent`` is a pod whose owner asked; the public if it is empty."""

    path: str
    agent: str
    status: int
    content_type: str
    body: str


def send(
    port: int,
    method: str,
    path: str,
    body: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> tuple[http.client.HTTPResponse, str]:
    """One request to the server on that port, under its base URL; the response and its body."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as client:
        content = None if body is None else body.encode()
        client.request(method, path, content, {"Host": HOST, **(headers or {})})
        response = client.getresponse()
        return response, response.read().decode()


def bearer(token: str) -> dict[str, str]:
    """The header field for a token; none for none."""
    return {"Authorization": f"Bearer {token}"} if token else {}


def fill(port: int) -> tuple[dict[str, str], list[Recorded]]:
    """Fill a running server. Returns the tokens of its pods, and what it answers then."""
    tokens = {"": ""}
    for pod in ("alice", "bob"):
        sent = json.dumps({"name": pod}), {"Content-Type": "application/json"}
        response, body = send(port, "POST", "/.pods", *sent)
        assert response.status == http.client.CREATED, body
        tokens[pod] = json.loads(body)["token"]
    alice = bearer(tokens["alice"])
    for path, (media_type, text) in {**_TEXTS, _GONE: ("text/plain", "gone")}.items():
        for version in ("an earlier version", text) if media_type == "text/plain" else (text,):
            _require(send(port, "PUT", path, version, {**alice, "Content-Type": media_type}))
    rules = {**alice, "Content-Type": "text/turtle"}
    _require(send(port, "PUT", "/alice/shared/.acl", _RULES, rules))
    _require(send(port, "DELETE", _GONE, None, alice))
    return tokens, [
        _recorded(port, path, agent, tokens[agent])
        for path in (*_TEXTS, _GONE, "/alice/", "/alice/data/", "/alice/shared/", "/bob/")
        for agent in tokens
    ]


def _require(answered: tuple[http.client.HTTPResponse, str]) -> None:
    response, body = answered
    assert response.status < http.client.MULTIPLE_CHOICES, (response.status, body)


def _recorded(port: int, path: str, agent: str, token: str) -> Recorded:
    accept = "text/turtle" if path.endswith("/") else "*/*"
    response, body = send(port, "GET", path, None, {**bearer(token), "Accept": accept})
    is_good = response.status == http.client.OK
    content_type = (response.getheader("Content-Type") or "") if is_good else ""
    return Recorded(path, agent, response.status, content_type, body if is_good else "")


def _environment(source: Path, database: str | None) -> dict[str, str]:
    stored = {} if database is None else {"PODSTEAD_DATABASE": database}
    return {**clean_environment(), "PYTHONPATH": str(source), **stored}


@contextlib.contextmanager
def _running(source: Path, root: Path, database: str | None, *options: str) -> Iterator[int]:
    command = [sys.executable, "-m", "podstead.cli", "start", "--root", str(root), "--port", "0"]
    how = ["--base-url", BASE_URL, "--workers", "1", "--token-lifetime-s", "0", *options]
    environment = _environment(source, database)
    with subprocess.Popen(
        [*command, *how], stdout=subprocess.PIPE, text=True, env=environment, cwd=source
    ) as server:
        try:
            assert server.stdout is not None
            for line in server.stdout:
                if ", port " in line:
                    yield int(line.split(", port ")[1].split(",")[0])
                    break
        finally:
            server.terminate()
            assert server.stdout is not None
            server.stdout.read()


def _add_account(source: Path, root: Path, database: str | None) -> None:
    command = [sys.executable, "-m", "podstead.cli", "account", "create", ACCOUNT]
    subprocess.run(
        [*command, "--email", f"{ACCOUNT}@example.org", "--root", str(root)],
        input=f"{PASSWORD}\n",
        text=True,
        check=True,
        env={**_environment(source, database), "PODSTEAD_IDP": "true"},
        cwd=source,
    )


def schema_of(root: Path, database: str | None = None) -> int:
    """The number of the schema of a root, or of its database."""
    query = "SELECT version FROM schema_version"
    if database is not None:
        with psycopg.connect(database) as session:
            ((version,),) = session.execute(query).fetchall()
            return int(version)
    connection = apsw.Connection(str(root / "podstead.db"))
    with contextlib.closing(connection):
        number: int = connection.execute(query).get
        return number


def unpack(archive: Path, folder: Path) -> tuple[dict[str, str], list[Recorded]]:
    """Unpack a root into the folder. Returns the tokens of its pods, and the answers."""
    with tarfile.open(archive) as opened:
        opened.extraction_filter = getattr(tarfile, "data_filter", None)  # since Python 3.11.4
        opened.extractall(folder)
    kept = json.loads((folder / "answers.json").read_text(encoding="utf-8"))
    return kept["tokens"], [Recorded(**each) for each in kept["answers"]]


def load_dump(folder: Path, database: str) -> None:
    """Load the database of an unpacked root into an empty one."""
    with psycopg.connect(database) as session:
        session.execute((folder / "dump.sql").read_bytes())


def _dump(database: str) -> bytes:
    """The database as SQL that any later server takes: without the parameters of a session, and
    without commands to psql."""
    command = ["pg_dump", "--no-owner", "--no-privileges", "--inserts", database]
    written = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    left_out = r"^(SET .*|SELECT pg_catalog\.set_config.*|\\.*|--.*)?\n"
    return re.sub(left_out, "", written, flags=re.MULTILINE).encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, default=REPOSITORY / "src")
    parser.add_argument("--postgresql", action="store_true")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        database = None
        if options.postgresql:
            database = stack.enter_context(new_database())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        _write(options.source.resolve(), folder / "root", database)


def _write(source: Path, root: Path, database: str | None) -> None:
    with _running(source, root, database) as port:
        tokens, answers = fill(port)
    if (source / "podstead/cli/account.py").exists():
        with _running(source, root, database, "--idp"):
            pass  # creates the keys of the provider
        _add_account(source, root, database)
    schema = schema_of(root, database)
    name = f"{'schema' if database is None else 'postgresql'}-{schema:04}.tar.xz"
    kept = {"tokens": tokens, "answers": [asdict(each) for each in answers]}
    files = {"answers.json": json.dumps(kept, indent=1).encode()}
    if database is not None:
        files["dump.sql"] = _dump(database)
    FOLDER.mkdir(exist_ok=True)
    with tarfile.open(FOLDER / name, "w:xz", preset=9) as archive:
        for path in sorted(root.iterdir()):
            if path.name not in _NOT_KEPT:
                archive.add(path, f"root/{path.name}")
        for file, content in files.items():
            entry = tarfile.TarInfo(file)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    sys.stdout.write(f"{name} written\n")


if __name__ == "__main__":
    os.umask(0o077)
    main()
