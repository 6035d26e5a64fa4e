"""Every command explains a data root that cannot be used, as the start does."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import apsw
import pytest

from podstead.storage.sqlite.connection import explained
from tests.support.client import create_pod
from tests.support.processes import clean_environment
from tests.support.server import DEADLINE_S, ServerProcess, run_command, running_server

pytestmark = pytest.mark.embedded

COMMANDS = ("check", "doctor", "backup", "pod list")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> ServerProcess:
    server = ServerProcess(tmp_path_factory.mktemp("whole") / "root")
    with running_server(server):
        pod = create_pod(server)
        with pod.owner() as owner:
            for number in range(30):
                body = f"<> <#n> '{number}'."
                assert owner.put(f"{pod.root}{number}", body, "text/turtle").status == 201
        assert server.stop() == 0
    return server


@pytest.fixture
def server(whole: ServerProcess, tmp_path: Path) -> ServerProcess:
    shutil.copytree(whole.root, tmp_path / "root")
    return ServerProcess(tmp_path / "root", port=whole.port)


def broken_header(database: Path) -> None:
    with database.open("r+b") as file:
        file.write(b"no header" * 12)


def truncated(database: Path) -> None:
    with database.open("r+b") as file:
        file.truncate(database.stat().st_size // 2 // 4096 * 4096)


def cut_to_a_page(database: Path) -> None:
    with database.open("r+b") as file:
        file.truncate(4096)


def run(command: str, root: Path, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    place = (str(tmp_path / "backup"),) if command == "backup" else ()
    return run_command(*command.split(), *place, "--root", str(root))


@pytest.mark.parametrize("breaks", [broken_header, truncated, cut_to_a_page])
def test_a_damaged_file_is_called_damaged(
    server: ServerProcess, tmp_path: Path, breaks: Callable[[Path], None]
) -> None:
    database = server.root / "podstead.db"
    breaks(database)
    explained = f"{database} is damaged or no database"
    for command in COMMANDS:
        ended = run(command, server.root, tmp_path)
        said = ended.stdout + ended.stderr
        assert ended.returncode in {1, 2}, command
        assert explained in said, (command, said)
        assert "estore a backup" in said, (command, said)
        assert "Traceback" not in said
    server.launch()
    assert server.wait() == 2
    server.close()
    assert explained in server.errors


AS_NOBODY = """
import os, sys
os.setgid(65534), os.setuid(65534)
sys.argv[0] = "podstead"
from podstead.cli import main
main()
"""


def as_another_user(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", AS_NOBODY, *arguments],
        env={**clean_environment(), "HOME": "/"},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("open_folder", [True, False])
def test_a_wrong_owner_is_called_one(whole: ServerProcess, *, open_folder: bool) -> None:
    """In a folder that others may enter, unlike those that pytest makes."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        place.chmod(0o711)
        shutil.copytree(whole.root, place / "root")
        (place / "out").mkdir()
        (place / "out").chmod(0o777)
        (place / "root").chmod(0o755 if open_folder else 0o700)
        for command in (*COMMANDS, "start"):
            to = (str(place / "out/backup"),) if command == "backup" else ()
            ended = as_another_user(*command.split(), *to, "--root", str(place / "root"))
            said = ended.stdout + ended.stderr
            assert ended.returncode in {1, 2}, (command, said)
            assert "Traceback" not in said, said
            assert "belongs to root, and this is nobody" in said, (command, said)


def test_a_read_only_file_system_is_called_one(
    server: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What SQLite says of a file that it may not write does not tell why."""
    database = server.root / "podstead.db"
    error = apsw.ReadOnlyError("attempt to write a readonly database")
    said = explained(database, error, otherwise="It failed")
    assert said == "It failed: attempt to write a readonly database."
    status = SimpleNamespace(f_flag=os.ST_RDONLY)
    monkeypatch.setattr(os, "statvfs", lambda _: status)
    said = explained(database, error, otherwise="It failed")
    assert said.endswith(f"{database} is on a read-only file system.")


def test_a_deletion_is_no_repair(server: ServerProcess) -> None:
    with running_server(server):
        pod = create_pod(server)
        with pod.owner() as owner:
            assert owner.put(f"{pod.root}large", b"x" * 300_000, "text/plain").status == 201
            acl = f"{pod.root}large.acl"
            rules = (
                "@prefix acl: <http://www.w3.org/ns/auth/acl#>. <#o> a acl:Authorization; "
                f"acl:agent <{pod.web_id}>; acl:accessTo <large>; acl:mode acl:Read, acl:Control."
            )
            assert owner.put(acl, rules, "text/turtle").status == 201
        assert server.stop() == 0
    for file in (server.root / "blobs").glob("*/*/*"):
        file.unlink()
    ended = run_command("check", "--repair", "--root", str(server.root))
    assert ended.returncode == 1
    assert f"[Deleted {pod.root}large: its body is gone. Restore it from a backup.]" in ended.stdout
    assert "1 finding, 0 of them repaired." in ended.stdout
    [folder] = (server.root / "set-aside").iterdir()
    listed = [json.loads(line) for line in (folder / "list.jsonl").read_text().splitlines()]
    kept = {each["where"]: each for each in listed}
    assert kept[f"{pod.root}large"]["content_type"] == "text/plain"
    assert (folder / kept[acl]["file"]).read_text() == rules
    again = run_command("check", "--repair", "--root", str(server.root))
    assert (again.returncode, again.stdout.splitlines()[0]) == (0, "0 findings.")


def test_the_doctor_knows_a_strangers_private_address(
    server: ServerProcess, tmp_path: Path
) -> None:
    other = ServerProcess(tmp_path / "other", ("--admin-listen", "127.0.0.1:0"))
    with running_server(other), running_server(server):
        found = re.search(r"//([^/]+)/metrics", other.wait_for_line("  metrics"))
        assert found is not None
        address = found[1]
        for root, expected in ((other.root, "The server is ready"), (server.root, "another")):
            ended = run_command(
                "doctor", "--json", "--root", str(root), "--admin-listen", address,
                "--base-url", other.base_url,
            )  # fmt: skip
            [finding] = [
                each
                for each in json.loads(ended.stdout)["findings"]
                if each["check"] == "readiness"
            ]
            assert expected in finding["detail"], finding
            assert (finding["severity"] == "good") == (root == other.root), finding
