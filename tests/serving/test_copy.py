"""``podstead copy``: clients find everything as it was, on the other engine and back again."""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import obstore
import psycopg
import pytest
from obstore.store import S3Store

from podstead.storage.blobs.s3_location import parse_s3_location
from tests.serving.recorded_writers import LARGE_BYTES
from tests.support.client import Client, Pod, create_pod
from tests.support.commands import invoke
from tests.support.features import GIT_OPTIONS
from tests.support.git import Git, url_of
from tests.support.postgresql import new_database
from tests.support.processes import clean_environment, start_process
from tests.support.seaweedfs import bodies_of
from tests.support.server import (
    DEADLINE_S,
    ServerProcess,
    StartFailed,
    run_command,
    running_server,
)

pytestmark = pytest.mark.embedded

PASSWORD = "correct horse battery staple"
JSON = {"Content-Type": "application/json"}
OPTIONS = ("--workers", "1", "--idp", "--registration", "closed", *GIT_OPTIONS)
DOCUMENTS = ("private/notes.ttl", "public/page.ttl", "private/large.bin", "private/")
KILLED_AT = ("Copying bodies", "Copying facts", "Verifying entries")
"""The steps at which a copy is killed: when nothing, much, and everything is there."""


def operator(root: Path, *arguments: str, typed: str = "") -> str:
    ended = invoke(root, *arguments, typed=typed)
    assert ended.exit_code == 0, ended.output
    return ended.stdout.strip()


@dataclass(frozen=True)
class Source:
    """A stopped server, and what its clients know of it."""

    server: ServerProcess
    pod: Pod
    etags: dict[str, str]
    members: set[str]

    def check(self, server: ServerProcess, work: Git | None) -> None:
        """The clients of the source are clients of another server in its place."""
        with Client(server, token=self.pod.token) as owner, Client(server) as anybody:
            for name, etag in self.etags.items():
                found = owner.get(self.pod.root + name, **{"If-None-Match": etag})
                assert found.status == 304, name
                expected = 200 if name.startswith("public/") else 401
                assert anybody.get(self.pod.root + name).status == expected
            assert owner.get(f"{self.pod.root}private/large.bin").body == b"x" * LARGE_BYTES
            assert owner.members(f"{self.pod.root}private/") == self.members
            changed = f"{self.pod.root}private/notes.ttl"
            etag = self.etags["private/notes.ttl"]
            answer = owner.put(changed, b"<#a> <#b> 2.", "text/turtle", **{"If-Match": etag})
            assert answer.status in {204, 205}
        credentials = json.dumps({"email": "a@example.org", "password": PASSWORD})
        signed_in = server.request("POST", "/idp/credentials", credentials, JSON)
        assert signed_in.status == 200, signed_in.text
        with Client(server, token=json.loads(signed_in.body)["access_token"]) as owner:
            assert owner.get(f"{self.pod.root}private/").status == 200
        if work is not None:
            work.commit("later", "2")
            work("push", "--quiet")


@pytest.fixture(scope="module")
def git(tmp_path_factory: pytest.TempPathFactory) -> Git | None:
    return Git(tmp_path_factory.mktemp("work")) if shutil.which("git") and GIT_OPTIONS else None


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory, git: Git | None) -> Iterator[Source]:
    root = tmp_path_factory.mktemp("copy") / "root"
    with running_server(ServerProcess(root, OPTIONS)) as server:
        web_id = operator(
            *(root, "account", "create", "alice", "--email", "a@example.org"),
            typed=f"{PASSWORD}\n",
        )
        pod = Pod(server, "alice", operator(root, "token", "create", "alice"), web_id)
        with pod.owner() as owner:
            assert owner.put(f"{pod.root}private/large.bin", b"x" * LARGE_BYTES).status == 201
            for name in ("private/notes.ttl", "public/page.ttl"):
                written = owner.put(pod.root + name, b"<#a> <#b> 1.", "text/turtle")
                assert written.status == 201, written.text
            rules = pod.acl(f"{pod.root}public/page.ttl", public=["Read"])
            owner.put(f"{pod.root}public/page.ttl.acl", rules, "text/turtle")
            etags = {name: owner.get(pod.root + name).headers["etag"] for name in DOCUMENTS}
            if git is not None:
                work = git.with_token(pod.token).new("repository")
                work.commit("a", "1")
                work("remote", "add", "origin", url_of(pod, "private/repository"))
                work("push", "--quiet", "--set-upstream", "origin", "main")
                etags["private/"] = owner.get(f"{pod.root}private/").headers["etag"]
            members = owner.members(f"{pod.root}private/")
        server.stop()
        yield Source(server, pod, etags, members)


@pytest.fixture
def database() -> Iterator[str]:
    with new_database() as url:
        yield url


def copy(*places: str | Path, code: int = 0) -> str:
    """What was printed."""
    ended = run_command("copy", *map(str, places))
    assert ended.returncode == code, ended.stderr
    return ended.stdout if code == 0 else ended.stderr


def kill_at(step: str, *places: str | Path) -> None:
    command = [sys.executable, "-m", "podstead.cli", "copy", *map(str, places)]
    process = start_process(command, environment=clean_environment())
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        assert any(line.strip() == step for line in process.stderr)
        process.kill()
        process.wait(DEADLINE_S)


def lose_objects(bodies: str) -> None:
    location = parse_s3_location(bodies)
    store = S3Store(
        location.bucket,
        prefix=location.prefix,
        config={"endpoint": location.endpoint or "", "region": location.region or ""},
        client_options={"allow_http": True},
    )
    obstore.delete(store, [each["path"] for each in obstore.list(store).collect()])


def entries_of(root: Path) -> set[tuple[object, ...]]:
    with closing(sqlite3.connect(root / "podstead.db")) as connection:
        return entries_in(connection)


def entries_in(connection: sqlite3.Connection) -> set[tuple[object, ...]]:
    """All but the leases of workers, which are not copied."""
    return set(connection.execute("SELECT * FROM entries WHERE entry NOT LIKE 'lease/%'"))


def test_what_is_copied_there_and_back_is_the_same(
    source: Source, git: Git | None, database: str, tmp_path: Path
) -> None:
    """It is killed a few times on the way, and no server starts before it is complete."""
    root, there, back = source.server.root, tmp_path / "there", tmp_path / "back"
    bodies = bodies_of(there)
    to_there = ("--from", root, "--to", there, database, bodies)
    environment = {"PODSTEAD_DATABASE": database, "PODSTEAD_BODIES": bodies}
    on_postgresql = ServerProcess(there, OPTIONS, port=source.server.port, environment=environment)
    for step in KILLED_AT:
        kill_at(step, *to_there)
        with pytest.raises(StartFailed, match="unfinished copy"):
            on_postgresql.start()
    assert "Copied and verified 1 pod" in copy(*to_there)
    copy("--from", there, database, bodies, "--to", back)
    assert entries_of(back) == entries_of(root)
    work = None if git is None else git.with_token(source.pod.token).at("repository")
    with running_server(ServerProcess(back, OPTIONS, port=source.server.port)) as server:
        source.check(server, None)
    with running_server(on_postgresql) as server:
        source.check(server, work)
        refused = copy("--from", there, database, bodies, "--to", tmp_path / "other", code=1)
        assert "A server is running" in refused
    at = ("--root", str(there), "--database", database, "--bodies", bodies)
    for name, options in (("first", ()), ("second", ("--previous", str(tmp_path / "first")))):
        ended = run_command("backup", str(tmp_path / name), "--json", *options, *at)
        assert ended.returncode == 0, ended.stderr
        manifest = json.loads(ended.stdout)
        assert manifest["faults"] == []
        assert (manifest["linked"]["bytes"] >= LARGE_BYTES) == (name == "second")
    restored = run_command(
        "restore", str(tmp_path / "second"), "--root", str(tmp_path / "restored")
    )
    assert restored.returncode == 0, restored.stderr
    assert run_command("check", "--root", str(tmp_path / "restored")).returncode == 0
    assert run_command("check", *at).returncode == 0
    lose_objects(bodies)
    found = run_command("check", "--json", *at)
    assert [json.loads(line)["where"] for line in found.stdout.splitlines()] == [
        f"{source.pod.root}private/large.bin"
    ]
    refused = copy("--from", there, database, "--to", tmp_path / "other", code=2)
    assert "The large bodies of these records are at s3://" in refused


def test_a_copy_begins_in_an_empty_place_only(
    source: Source, database: str, tmp_path: Path
) -> None:
    root, there = source.server.root, tmp_path / "there"
    kill_at("Copying bodies", "--from", root, "--to", there, database)
    other = tmp_path / "other"
    shutil.copytree(root, other)
    with running_server(ServerProcess(other, OPTIONS, port=source.server.port)) as server:
        with Client(server, token=source.pod.token) as owner:
            owner.put(f"{source.pod.root}later.txt", b"later")
        refused = copy("--from", other, "--to", there, database, code=1)
        assert "A server is running" in refused
    refused = copy("--from", other, "--to", there, database, code=1)
    assert "unfinished copy" in refused
    copy("--from", other, "--to", there, database, "--start-over")
    for options in ((), ("--start-over",)):
        refused = copy("--from", root, "--to", there, database, *options, code=1)
        assert "not empty" in refused


def test_a_database_in_use_is_not_copied(source: Source, database: str, tmp_path: Path) -> None:
    """A server may use it with a data root of its own, whose lock nobody else sees."""
    copy("--from", source.server.root, "--to", tmp_path / "there", database)
    with psycopg.connect(database):
        refused = copy(*("--from", tmp_path / "there", database, "--to", tmp_path / "back"), code=1)
    assert "1 other programs are connected" in refused


ROWS = ("resources", "bodies", "changes", "pods", "tokens", "entries", "deleted_acls")
"""The tables whose rows are the same after any number of copies."""


def rows_of(root: Path) -> dict[str, set[tuple[object, ...]]]:
    with closing(sqlite3.connect(root / "podstead.db")) as connection:
        rows = {name: set(connection.execute(f"SELECT * FROM {name}")) for name in ROWS}
        return rows | {"entries": entries_in(connection)}


@dataclass
class Stream:
    """An event stream of a channel, which goes on after what was heard last."""

    path: str
    position: str = ""

    def heard(self, server: ServerProcess, count: int) -> list[str]:
        """The types of so many further messages."""
        types: list[str] = []
        fields = {"Last-Event-ID": self.position} if self.position else {}
        with closing(server.connect()) as connection:
            connection.request("GET", self.path, headers=fields)
            response = connection.getresponse()
            assert response.status == 200
            while len(types) < count:
                name, _, value = response.readline().decode().rstrip().partition(": ")
                if name == "id":
                    self.position = value
                elif name == "data":
                    types.append(str(json.loads(value)["type"]))
            response.close()
        return types


def test_a_round_by_each_kind_of_place_ends_where_it_began(tmp_path: Path) -> None:
    """From files to a second folder, to a database and a bucket without a data root, to others of
    them, and back. Watchers hear what they have missed."""
    options = ("--workers", "1")
    root, back = tmp_path / "root", tmp_path / "back"
    with ExitStack() as stack:
        first, second = (stack.enter_context(new_database()) for _ in range(2))
        places: list[tuple[str | Path, ...]] = [
            (root,),
            (tmp_path / "parted", tmp_path / "bodies"),
            (first, bodies_of(tmp_path / "first")),
            (second, bodies_of(tmp_path / "second")),
            (back,),
        ]
        with running_server(ServerProcess(root, options)) as server:
            pod = create_pod(server)
            path = f"{pod.root}private/notes.ttl"
            with pod.owner() as owner:
                sent = {
                    "@context": ["https://www.w3.org/ns/solid/notification/v1"],
                    "type": "EventSourceChannel2023",
                    "topic": server.base_url + path,
                }
                made = owner.request(
                    *("POST", "/.notifications/EventSourceChannel2023/", json.dumps(sent)),
                    {"Content-Type": "application/ld+json"},
                )
                stream = Stream(urlsplit(json.loads(made.body)["receiveFrom"]).path)
                assert owner.put(path, b"<#a> <#b> 0.", "text/turtle").status == 201
                assert stream.heard(server, 1) == ["Create"]
                for number in range(3):
                    text = f"<#a> <#b> {number + 1}.".encode()
                    assert owner.put(path, text, "text/turtle").status == 204
                assert owner.delete(path).status == 204
                large = b"x" * LARGE_BYTES
                assert owner.put(f"{pod.root}private/large.bin", large).status == 201
            server.stop()
        for here, there in pairwise(places):
            copy("--from", *here, "--to", *there)
        assert rows_of(back) == rows_of(root)
        with running_server(ServerProcess(back, options, port=server.port)) as again:
            assert stream.heard(again, 4) == ["Update"] * 3 + ["Delete"]
            with Client(again, token=pod.token) as owner:
                assert owner.get(f"{pod.root}private/large.bin").body == large
        database, bodies = places[-2]
        environment = {"PODSTEAD_DATABASE": str(database), "PODSTEAD_BODIES": str(bodies)}
        node = ServerProcess(tmp_path / "node", options, environment=environment, port=server.port)
        stream.position = ""
        with running_server(node):
            assert stream.heard(node, 5)[0] == "Create"
