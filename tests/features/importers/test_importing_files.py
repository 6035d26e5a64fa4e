"""``podstead import folder`` and ``webdav``: files come into a pod beside what is there."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from podstead.features.importers.files import files_of
from podstead.features.importers.folders import Unreadable
from tests.support.client import Pod, create_pod
from tests.support.engine import engine_environment
from tests.support.listeners import CERTIFICATE, KEY
from tests.support.processes import clean_environment
from tests.support.proxies import Configure, Place, program, running_proxy
from tests.support.server import (
    DEADLINE_S,
    ServerProcess,
    run_command,
    server_fixture,
)

PNG = bytes.fromhex("89504e470d0a1a0a") + bytes(100)
FILES: Mapping[str, tuple[bytes, str]] = {
    "plain.txt": (b"plain", "text/plain"),
    "a b.md": (b"# A note", "text/markdown"),
    "deep/er/ünïcode ☕.ttl": (b"<#a> <#b> <#c>.", "text/turtle"),
    "100% sure.txt": (b"percent", "text/plain"),
    "photos/picture": (PNG, "image/png"),
    "photos/picture.jpg": (b"\xff\xd8\xff", "image/jpeg"),
    "notes without extension": ("café".encode() * 3000, "text/plain"),
    "bytes": (b"\x00\x01", "application/octet-stream"),
    "page": (b"<!DOCTYPE html><title>x</title>", "text/html"),
    "empty": (b"", "text/plain"),
}
PAST_S = 1_500_000_000


server = server_fixture()


@pytest.fixture
def pod(server: ServerProcess) -> Pod:
    return create_pod(server)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "files"
    for name, (content, _) in FILES.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        os.utime(file, (PAST_S, PAST_S))
    (root / "nothing in it").mkdir()
    return root


def import_into(pod: Pod, kind: str, place: str, *options: str, password: str = "") -> Any:  # noqa: ANN401 - JSON
    """The exit code and the report."""
    into = f"{pod.root.strip('/')}/private/imported/"
    command = ("import", kind, place, "--into", into, "--root", str(pod.server.root), "--json")
    ended = (
        run_with(pod.server.root, password, command)
        if password
        else run_command(*command, *options)
    )
    assert ended.stdout, ended.stderr
    return ended.returncode, json.loads(ended.stdout)


def run_with(
    root: Path, password: str, command: tuple[str, ...]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "podstead.cli", *command, "--user", "alice"],
        env={**clean_environment(), **engine_environment(root)},
        input=f"{password}\n",
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def assert_imported(pod: Pod, types: Mapping[str, str]) -> None:
    with pod.owner() as owner:
        for name, (content, _) in FILES.items():
            answer = owner.get(f"{pod.root}private/imported/{quoted(name)}")
            assert answer.status == 200, name
            assert answer.body == content, name
            assert answer.headers["content-type"].partition(";")[0] == types[name], name
            assert answer.headers["last-modified"] == formatdate(PAST_S, usegmt=True), name
        empty = owner.get(f"{pod.root}private/imported/nothing%20in%20it/")
        assert empty.status == 200
    assert pod.server.get(f"{pod.root}private/imported/plain.txt").status == 401


def quoted(name: str) -> str:
    return quote(name)


def test_a_folder_comes_with_types_and_dates(pod: Pod, folder: Path) -> None:
    code, report = import_into(pod, "folder", str(folder))
    assert (code, report["left_out"]) == (0, [])
    assert report["documents"] == len(FILES)
    assert_imported(pod, {name: media_type for name, (_, media_type) in FILES.items()})


def test_nothing_is_replaced_and_a_second_run_adds_what_is_new(pod: Pod, folder: Path) -> None:
    path = f"{pod.root}private/imported/plain.txt"
    with pod.owner() as owner:
        assert owner.put(path, "mine", "text/plain").status == 201
        first = import_into(pod, "folder", str(folder))[1]
        (folder / "new.txt").write_text("new")
        again = import_into(pod, "folder", str(folder))[1]
        assert owner.get(path).text == "mine"
        assert owner.get(f"{pod.root}private/imported/new.txt").text == "new"
    assert (first["documents"], again["documents"]) == (len(FILES) - 1, 1)


INTERRUPTED = """
import asyncio, os, signal, sys
from pathlib import Path
from podstead.features.importers.files import files_of, import_files, webdav_folder
from podstead.config import read_settings

def count(done):
    if done >= 300:
        os.kill(os.getpid(), signal.SIGKILL)

async def run(kind, place, root, into, password=""):
    settings = read_settings({"root": root}, os.environ, folder=Path.cwd())
    found = files_of(Path(place)) if kind == "folder" else webdav_folder(
        place, user="alice", password=password
    )
    async with found as source:
        await import_files(settings, source, source_id=kind, into=into, counting=count)

asyncio.run(run(*sys.argv[1:]))
"""


def many_files(folder: Path, count: int) -> Path:
    folder.mkdir()
    for number in range(count):
        (folder / f"{number}.txt").write_text(str(number))
    return folder


def assert_continued_after_a_kill(
    pod: Pod, kind: str, place: str, *, count: int, password: str = ""
) -> None:
    """Assert that the command continues an import that was killed, until all files are here."""
    into = f"{pod.name}/private/imported/"
    killed = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, kind, place, str(pod.server.root), into, password],
        env={**clean_environment(), **engine_environment(pod.server.root)},
        timeout=DEADLINE_S,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    code, report = import_into(pod, kind, place, password=password)
    assert (code, report["left_out"]) == (0, [])
    assert report["already_there"] >= 300
    assert report["documents"] > 0
    with pod.owner() as owner:
        names = {path.rpartition("/")[2] for path in owner.members(f"/{into}")}
        assert names == {f"{number}.txt" for number in range(count)}
        assert owner.get(f"/{into}{count - 1}.txt").text == str(count - 1)


def test_an_import_that_was_killed_is_continued(pod: Pod, tmp_path: Path) -> None:
    folder = many_files(tmp_path / "many", 900)
    assert_continued_after_a_kill(pod, "folder", str(folder), count=900)


def test_a_trial_stores_nothing(pod: Pod, folder: Path) -> None:
    code, report = import_into(pod, "folder", str(folder), "--dry-run")
    assert (code, report["documents"]) == (0, len(FILES))
    with pod.owner() as owner:
        assert owner.get(f"{pod.root}private/imported/").status == 404


def test_what_cannot_be_taken_is_listed(pod: Pod, tmp_path: Path) -> None:
    root = tmp_path / "odd"
    root.mkdir()
    (root / "good.txt").write_text("good")
    (root / "broken.ttl").write_text("<a> <b>")
    (root / "rules.acl").write_text("")
    (root / "link").symlink_to("/etc/passwd")
    os.mkfifo(root / "pipe")
    (root / ".DAV").mkdir()
    code, report = import_into(pod, "webdav", str(root))
    assert code == 1
    assert report["documents"] == 1
    refused = f"{pod.root}private/imported/broken.ttl"
    assert {each["path"] for each in report["left_out"]} == {
        ".DAV", "rules.acl", "link", "pipe", refused,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("into", "exit_code"), [("nobody/private/", 1), ("../x/", 2), ("{pod}/rules.acl/", 2)]
)
def test_a_wrong_place_is_refused(
    server: ServerProcess, pod: Pod, folder: Path, into: str, exit_code: int
) -> None:
    place = into.format(pod=pod.root.strip("/"))
    command = ("import", "folder", str(folder), "--into", place, "--root", str(server.root))
    ended = run_command(*command)
    assert ended.returncode == exit_code
    assert ended.stderr.splitlines()[-1].startswith("Error: ")


# --- a WebDAV server --------------------------------------------------------------------------

APACHE = """
ServerName localhost
Listen 127.0.0.1:{port}
ServerRoot {folder}
PidFile {folder}/apache.pid
DefaultRuntimeDir {folder}
Mutex sem default
ErrorLog {folder}/error.log
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule authn_core_module {modules}/mod_authn_core.so
LoadModule authn_file_module {modules}/mod_authn_file.so
LoadModule authz_user_module {modules}/mod_authz_user.so
LoadModule auth_basic_module {modules}/mod_auth_basic.so
LoadModule mime_module {modules}/mod_mime.so
LoadModule dav_module {modules}/mod_dav.so
LoadModule dav_fs_module {modules}/mod_dav_fs.so
DavLockDB {folder}/locks
TypesConfig /dev/null
AddType text/plain .txt
AddType text/turtle .ttl
AddType image/jpeg .jpg
DocumentRoot {folder}/site
<Location />
  Dav On
  AuthType Basic
  AuthName files
  AuthUserFile {folder}/users
  Require valid-user
</Location>
"""
PASSWORD = "a password"


def webdav_server(site: Path) -> Configure:
    """Apache with mod_dav, for people with a password."""

    def configure(place: Place) -> list[str]:
        folder = place.folder
        modules = Path("/usr/lib/apache2/modules")
        text = APACHE.format(port=place.port, folder=folder, modules=modules)
        (folder / "apache.conf").write_text(text)
        hashed = subprocess.check_output(["openssl", "passwd", "-apr1", PASSWORD], text=True)
        (folder / "users").write_text(f"alice:{hashed}")
        shutil.copytree(site, folder / "site/my files", dirs_exist_ok=True)
        return [program("apache2"), "-X", "-f", str(folder / "apache.conf")]

    return configure


@pytest.mark.needs("apache2", "openssl")
def test_a_webdav_server_is_read_as_by_its_clients(pod: Pod, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "apache").mkdir(mode=0o755)
    files = {"certificate": CERTIFICATE, "key": KEY}
    with running_proxy(webdav_server(folder), tmp_path / "apache", **files) as place:
        url = f"http://localhost:{place.port}/my%20files"
        code, report = import_into(pod, "webdav", url, password=PASSWORD)
    assert (code, report["left_out"]) == (0, [])
    # Types are those that the server states, then those of extensions.
    known = {"plain.txt", "a b.md", "deep/er/ünïcode ☕.ttl", "100% sure.txt", "photos/picture.jpg"}
    assert_imported(
        pod,
        {
            name: media_type if name in known else "application/octet-stream"
            for name, (_, media_type) in FILES.items()
        },
    )


@pytest.mark.needs("apache2", "openssl")
def test_an_import_from_a_webdav_server_that_was_killed_is_continued(
    pod: Pod, tmp_path: Path
) -> None:
    folder = many_files(tmp_path / "many", 450)
    (tmp_path / "apache").mkdir(mode=0o755)
    files = {"certificate": CERTIFICATE, "key": KEY}
    with running_proxy(webdav_server(folder), tmp_path / "apache", **files) as place:
        url = f"http://localhost:{place.port}/my%20files"
        assert_continued_after_a_kill(pod, "webdav", url, count=450, password=PASSWORD)


async def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="photos cannot be read"):
        async with files_of(tmp_path / "photos"):
            pass
