"""A data root is broken in each way; it is found, repaired, and the server runs."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sqlite3
import stat
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from podstead.app.adapters.provider_keys import KeyFolder
from podstead.app.adapters.system import SystemClock
from podstead.app.operator.checking.findings import Code, FindingCode
from podstead.cli.output import bytes_text
from podstead.storage.keys import KeyFiles
from tests.serving.recorded_writers import LARGE_BYTES, RecordedWriter, writing
from tests.support.client import Client, Pod, create_pod
from tests.support.features import GIT_OPTIONS
from tests.support.git import Git, url_of
from tests.support.server import ServerProcess, run_command, running_server, server_fixture

pytestmark = pytest.mark.embedded

LONG_AGO_S = 1_600_000_000
ELSEWHERE = {Code.DATABASE_DAMAGED.value, Code.DISK_LOW.value, Code.ROWS_ORPHANED.value}
"""The codes that tests of their own are about."""


@dataclass(frozen=True)
class Broken:
    """A root that a test breaks, and the pod in it."""

    root: Path
    pod: str

    def execute(self, statement: str, *values: object) -> None:
        with contextlib.closing(sqlite3.connect(self.root / "podstead.db")) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            with connection:
                connection.execute(statement, [str(value) for value in values])

    def blob(self, name: str) -> Path:
        """The file of the large body of a document."""
        with contextlib.closing(sqlite3.connect(self.root / "podstead.db")) as connection:
            (blob,) = connection.execute(
                "SELECT blob FROM resources WHERE path = ?", [self.path(name)]
            ).fetchone()
        return self.root.joinpath("blobs", blob[:2], blob[2:4], blob)

    def path(self, name: str) -> str:
        return f"/{self.pod}/{name}"

    @property
    def repository(self) -> Path:
        (found,) = (path for path in (self.root / "git").glob("*.git") if path.stem != "empty")
        return found

    def check(self, *options: str) -> tuple[int, list[dict[str, Any]]]:
        """The exit code and the findings."""
        ended = run_command("check", "--json", "--root", str(self.root), *options)
        assert ended.returncode in {0, 1}, ended.stderr
        return ended.returncode, [json.loads(line) for line in ended.stdout.splitlines()]

    def aside(self) -> list[dict[str, Any]]:
        """What was set aside; each file is there."""
        (folder,) = (self.root / "set-aside").iterdir()
        listed = [json.loads(line) for line in (folder / "list.jsonl").read_text().splitlines()]
        assert all((folder / each["file"]).exists() for each in listed if "file" in each)
        return listed


server = server_fixture((*GIT_OPTIONS, "--workers", "1"))


@pytest.fixture(scope="module")
def whole(
    server: ServerProcess, tmp_path_factory: pytest.TempPathFactory
) -> tuple[ServerProcess, Pod]:
    """A stopped server with some of everything."""
    pod = create_pod(server)
    with pod.owner() as client:
        for name in ("1.bin", "2.bin", "3.bin"):
            client.put(pod.root + name, name.encode() * (LARGE_BYTES // 5))
        for name in (
            "1.txt",
            "2.txt",
            "3.txt",
            "4.txt",
            "5.txt",
            "6.txt",
            "c/x",
            "d/e/deep.txt",
            "f/moved",
        ):
            assert client.put(pod.root + name, b"deep").status == 201
            if name.startswith(("3", "4", "5", "6")):
                acl = pod.acl(pod.root + name, public=["Read"])
                assert client.put(f"{pod.root}{name}.acl", acl, "text/turtle").status == 201
    if shutil.which("git") and GIT_OPTIONS:
        git = Git(tmp_path_factory.mktemp("work")).with_token(pod.token)
        work = git.new("work")
        work.commit("a", "1")
        work("push", "--quiet", url_of(pod, "private/notes"), "main")
    server.stop()
    KeyFolder(KeyFiles(server.root / "keys"), SystemClock()).maintain()
    return server, pod


@pytest.fixture
def broken(whole: tuple[ServerProcess, Pod], tmp_path: Path) -> Broken:
    server, pod = whole
    return Broken(Path(shutil.copytree(server.root, tmp_path / "root")), pod.name)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    path.chmod(0o600)
    path.write_bytes(content)


def add_old_file(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    os.utime(path, (LONG_AGO_S, LONG_AGO_S))
    os.utime(path.parent, (LONG_AGO_S, LONG_AGO_S))


def add_old_repository(repository: Path, other: Path) -> None:
    shutil.copytree(repository, other)
    os.utime(other, (LONG_AGO_S, LONG_AGO_S))


def _repository_codes() -> Any:  # noqa: ANN401 - of a feature, which may have been removed
    return pytest.importorskip("podstead.features.git.data_root").RepositoryCode


def damages(it: Broken) -> list[tuple[FindingCode, str, Callable[[], object]]]:
    """Ways to break a root: the code, where it is found, and how it is done."""
    repository = _repository_codes()
    (pack,) = it.repository.glob("objects/pack/*.pack")
    orphan = it.root / "blobs/00/00" / f"0000{'0' * 28}-{'0' * 64}"
    provider_key = min((it.root / "keys/provider").glob("*.json"))
    other = it.repository.with_name(f"{'0' * 32}.git")
    spoil = "UPDATE bodies SET content = zeroblob(length(content)) WHERE path = ?"
    upload = '{"target":"/a","size_bytes":9,"content_type":"a/b","offset_bytes":5}'
    return [
        (Code.BODY_MISSING, it.path("1.bin"), it.blob("1.bin").unlink),
        (Code.BODY_DAMAGED, it.path("2.bin"), partial(truncate, it.blob("2.bin"))),
        (Code.BODY_DAMAGED, it.path("3.bin"), partial(flip, it.blob("3.bin"))),
        (
            Code.BODY_MISSING,
            it.path("1.txt"),
            partial(it.execute, "DELETE FROM bodies WHERE path = ?", it.path("1.txt")),
        ),
        (Code.BODY_DAMAGED, it.path("2.txt"), partial(it.execute, spoil, it.path("2.txt"))),
        (Code.BODY_DAMAGED, it.path("3.txt.acl"), partial(it.execute, spoil, it.path("3.txt.acl"))),
        (
            Code.BODY_MISSING,
            it.path("c/"),
            partial(it.execute, "DELETE FROM bodies WHERE path = ?", it.path("c/")),
        ),
        (
            Code.BODY_ORPHANED,
            it.path("none"),
            partial(
                it.execute,
                "INSERT INTO bodies (path, content) VALUES (?, CAST('x' AS BLOB))",
                it.path("none"),
            ),
        ),
        (Code.FILE_ORPHANED, str(orphan), partial(add_old_file, orphan)),
        (
            Code.UPLOAD_ORPHANED,
            str(it.root / "blobs/drafts/old"),
            partial(add_old_file, it.root / "blobs/drafts/old"),
        ),
        (
            Code.UPLOAD_ORPHANED,
            str(it.root / "blobs/uploads/old"),
            partial(add_old_file, it.root / "blobs/uploads/old/body"),
        ),
        (
            Code.UPLOAD_INCOMPLETE,
            "a",
            partial(
                it.execute,
                "INSERT INTO entries (entry, version, value)"
                " VALUES ('upload/a', '1', CAST(? AS BLOB))",
                upload,
            ),
        ),
        (
            Code.CONTAINER_MISSING,
            it.path("d/e/deep.txt"),
            partial(
                it.execute,
                "DELETE FROM resources WHERE path = ?1",
                it.path("d/e/"),
            ),
        ),
        (
            Code.CONTAINER_MISSING,
            it.path("f/moved"),
            partial(
                it.execute,
                "UPDATE resources SET container = ? WHERE path = ?",
                it.path("d/"),
                it.path("f/moved"),
            ),
        ),
        (
            Code.COUNT_WRONG,
            it.path("c/"),
            partial(
                it.execute,
                "UPDATE resources SET member_count = member_count + 1 WHERE path = ?",
                it.path("c/"),
            ),
        ),
        (
            Code.USAGE_WRONG,
            it.path(""),
            partial(it.execute, "UPDATE storages SET used_bytes = 1 WHERE root = ?", it.path("")),
        ),
        (
            Code.ACL_UNREADABLE,
            it.path("4.txt.acl"),
            partial(
                it.execute,
                "UPDATE bodies SET sha256 = NULL,"
                " content = CAST('<<<' || substr(CAST(content AS TEXT), 4) AS BLOB) WHERE path = ?",
                it.path("4.txt.acl"),
            ),
        ),
        (
            Code.RULES_INDEX_WRONG,
            it.path("5.txt.acl"),
            partial(
                it.execute,
                "DELETE FROM entries WHERE entry = ?",
                f"access-rules/{it.path('5.txt.acl')}",
            ),
        ),
        (
            Code.RULES_INDEX_WRONG,
            it.path("none.acl"),
            partial(
                it.execute,
                "INSERT INTO entries SELECT 'access-rules/' || ?1, version, value, owner,"
                " expires_ms FROM entries WHERE entry = 'access-rules/' || ?2",
                it.path("none.acl"),
                it.path("6.txt.acl"),
            ),
        ),
        (repository.DAMAGED, it.path("private/notes/"), partial(flip, pack)),
        (repository.ORPHANED, str(other), partial(add_old_repository, it.repository, other)),
        (
            repository.MISSING,
            it.path("private/gone/"),
            partial(
                it.execute,
                "INSERT INTO entries (entry, version, value)"
                " VALUES ('repository/' || ?, '1', CAST(? AS BLOB))",
                it.path("private/gone/"),
                "1" * 32,
            ),
        ),
        (Code.KEY_DAMAGED, str(provider_key), partial(truncate, provider_key)),
        (
            Code.MODE_OPEN,
            str(it.root / "keys/token.key"),
            partial((it.root / "keys/token.key").chmod, 0o644),
        ),
    ]


def test_a_whole_root_has_no_finding(broken: Broken) -> None:
    assert broken.check("--repair") == (0, [])
    assert not (broken.root / "set-aside").exists()


def test_the_last_lines_say_how_much_space_is_used_and_free(
    broken: Broken, whole: tuple[ServerProcess, Pod]
) -> None:
    """As ``podstead pod list`` and ``df`` say."""
    listed = json.loads(run_command("pod", "list", "--json", "--root", str(broken.root)).stdout)
    used_bytes = sum(each["used_bytes"] for each in listed)
    free_bytes = shutil.disk_usage(broken.root).free
    settings = {"PODSTEAD_QUOTA_BYTES": str(used_bytes), "PODSTEAD_MIN_FREE_BYTES": "1048576"}
    ended = run_command("check", "--quick", "--root", str(broken.root), environment=settings)
    findings, pods, full, disk = ended.stdout.splitlines()
    assert (ended.returncode, findings) == (0, "0 findings.")
    size = bytes_text(used_bytes)
    assert pods == f"1 pod: {size} used of {size} in quotas."
    assert full == "1 pod at nine tenths of the quota or more: see 'podstead pod list'."
    assert re.fullmatch(r"Disk: [\d.]+ [GT]iB free; below 1.0 MiB, new content is refused.", disk)
    assert bytes_text(free_bytes).split()[1] in disk


@pytest.mark.needs("git")
def test_damage_of_each_kind_is_found_and_repaired_and_the_server_runs(
    broken: Broken, whole: tuple[ServerProcess, Pod]
) -> None:
    _, pod = whole
    expected = damages(broken)
    for _, _, breaks in expected:
        breaks()
    lost = broken.blob("3.bin").read_bytes()

    exit_code, found = broken.check()
    assert exit_code == 1
    follows = {(Code.BODY_ORPHANED, broken.path("d/e/")), (Code.COUNT_WRONG, broken.path("f/"))}
    assert {(each["code"], each["where"]) for each in found} == {
        (code.value, where) for code, where in {*follows, *(each[:2] for each in expected)}
    }
    codes = {code.value for code in (*Code, *_repository_codes())}
    assert {each["code"] for each in found} == codes - ELSEWHERE
    assert not any(each["repaired"] for each in found)
    assert not (broken.root / "set-aside").exists()

    exit_code, found = broken.check("--repair")
    # What could not be brought back is not called repaired.
    assert exit_code == 1
    left = {each["where"]: each["loss"] for each in found if not each["repaired"]}
    assert all(loss.endswith("Restore it from a backup.") for loss in left.values()), left
    assert left[broken.path("3.bin")].startswith(f"Deleted {broken.path('3.bin')}: its body is ")
    assert {each["code"] for each in found if each["loss"]} <= {
        Code.BODY_MISSING.value,
        Code.BODY_DAMAGED.value,
    }
    (kept,) = (each for each in broken.aside() if each["where"] == broken.path("3.bin"))
    (folder,) = (broken.root / "set-aside").iterdir()
    assert (folder / kept["file"]).read_bytes() == lost
    records = {
        each["where"]: folder / each["file"] for each in broken.aside() if each["code"] == "record"
    }
    assert json.loads(records["upload/a"].read_bytes())
    assert records[f"repository/{broken.path('private/gone/')}"].read_bytes() == b"1" * 32
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert broken.check() == (0, [])

    with (
        running_server(ServerProcess(broken.root, GIT_OPTIONS, port=pod.server.port)) as running,
        Client(running, token=pod.token) as client,
    ):
        assert client.get(broken.path("3.bin")).status == 404
        assert client.get(broken.path("d/e/deep.txt")).body == b"deep"
        for container in ("", "c/", "d/", "d/e/", "f/"):
            for member in client.members(broken.path(container)):
                assert client.get(member).status == 200
        assert client.put(broken.path("3.bin"), b"again").status == 201
        # An ACL is never just removed: the resource would inherit rules that may allow more.
        for name in ("3.txt", "4.txt"):
            acl = client.get(broken.path(f"{name}.acl"))
            assert f"acl:agent <{pod.web_id}>" in acl.text
            assert client.get(broken.path(name)).status == 200
            assert running.get(broken.path(name)).status == 401
        assert broken.check() == (0, []), "beside a running server"


def test_what_a_running_server_does_is_no_finding(
    broken: Broken, whole: tuple[ServerProcess, Pod]
) -> None:
    """Four clients store, replace and delete while everything is checked again and again."""
    _, pod = whole
    writers = [RecordedWriter(pod, number, seed="check") for number in range(4)]
    with (
        running_server(ServerProcess(broken.root, GIT_OPTIONS, port=pod.server.port)),
        writing(pod, writers),
    ):
        for _ in range(3):
            assert broken.check() == (0, [])


def test_a_damaged_signing_key_is_set_aside(broken: Broken) -> None:
    (broken.root / "keys/token.key").write_bytes(b"x")
    assert [each["code"] for each in broken.check("--repair")[1]] == [Code.KEY_DAMAGED.value]
    assert not (broken.root / "keys/token.key").exists()


def test_a_quick_check_compares_sizes(broken: Broken) -> None:
    flip(broken.blob("1.bin"))
    assert broken.check("--quick") == (0, [])
    truncate(broken.blob("1.bin"))
    assert [each["code"] for each in broken.check("--quick")[1]] == [Code.BODY_DAMAGED.value]


def test_a_damaged_database_is_found(broken: Broken) -> None:
    database = broken.root / "podstead.db"
    content = bytearray(database.read_bytes())
    for page in range(8, len(content) // 4096):
        content[page * 4096 : page * 4096 + 64] = b"\xff" * 64
    database.write_bytes(content)
    for log in broken.root.glob("podstead.db-*"):
        log.unlink()
    ended = run_command("check", "--root", str(broken.root))
    assert ended.returncode in {1, 2}
    assert (
        "database-damaged" in ended.stdout
        or "damaged" in ended.stderr
        or "malformed" in ended.stderr
    )


def test_a_full_disk_is_found(broken: Broken) -> None:
    configuration = broken.root.with_name("podstead.toml")
    configuration.write_text(f"min-free-bytes = {10**15}\n")
    exit_code, found = broken.check("--quick", "--config", str(configuration))
    assert (exit_code, [each["code"] for each in found]) == (1, [Code.DISK_LOW.value])


def test_a_folder_that_is_no_root_cannot_be_checked(tmp_path: Path) -> None:
    ended = run_command("check", "--root", str(tmp_path))
    assert ended.returncode == 2
    assert "There is no data" in ended.stderr


@pytest.mark.feature("git")
def test_each_code_has_a_remedy_and_a_row_in_the_documentation() -> None:
    page = Path(__file__).parents[2] / "docs/operate/check-and-compact.md"
    rows = [line for line in page.read_text().splitlines() if line.startswith("| `")]
    codes = (*Code, *_repository_codes())
    assert {row.split("`")[1] for row in rows} == {code.value for code in codes}
    assert all(code.remedy for code in codes)
