"""A folder as a ZIP archive: what is in it, how it is named, and that any program opens it."""

from __future__ import annotations

import asyncio
import io
import stat
import subprocess
import zipfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from podstead.resources.archives import MAX_OF_REQUESTER, ArchiveFolder, Archives, archive_name
from podstead.resources.outcome import ResourceRequest
from podstead.storage.open_body import OpenBody
from podstead.storage.records import Metadata
from tests.support.application import Server, acl_turtle
from tests.support.asgi import Answer
from tests.support.browser import Browser
from tests.support.pod_pages import csrf_token_of
from tests.support.rdf import TURTLE
from tests.support.transfers import put

ROOT = "/alice/private/"
ZIP = "/.pages/zip"


async def archive(browser: Browser, path: str) -> zipfile.ZipFile:
    answer = (await browser.get(ZIP + path)).answer
    assert answer.status == 200
    assert answer.header("content-type") == "application/zip"
    return zipfile.ZipFile(io.BytesIO(answer.body))


def check_with_unzip(answer: Answer, tmp_path: Path) -> None:
    """Info-ZIP reads it, too."""
    place = tmp_path / "archive.zip"
    place.write_bytes(answer.body)
    ended = subprocess.run(["unzip", "-t", str(place)], capture_output=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert b"No errors detected" in ended.stdout


@pytest.mark.needs("unzip")
async def test_a_folder_is_downloaded_with_everything_in_it(
    server: Server, alice: Browser, tmp_path: Path
) -> None:
    content = {
        "a.txt": b"hello",
        "large.bin": bytes(range(256)) * 2000,
        "inner/b.ttl": b"<#a> <#b> <#c>.",
        "inner/deep/d.txt": b"",
        "empty/": b"",
    }
    for name, body in content.items():
        kind = TURTLE if name.endswith((".ttl", "/")) else "application/octet-stream"
        await put(server.alice, f"{ROOT}tree/{name}", body.decode("latin-1"), kind)
    content["large.bin"] = bytes(range(256)).decode("latin-1").encode() * 2000
    page = await alice.get(f"{ZIP}{ROOT}tree/")
    disposition = page.answer.header("content-disposition") or ""
    assert disposition == "attachment; filename=\"tree.zip\"; filename*=UTF-8''tree.zip"
    found = zipfile.ZipFile(io.BytesIO(page.answer.body))
    assert found.testzip() is None
    assert {name: found.read(f"tree/{name}") for name in content} == content
    assert set(found.namelist()) == {
        "tree/",
        "tree/inner/",
        "tree/inner/deep/",
        *(f"tree/{name}" for name in content),
    }
    check_with_unzip(page.answer, tmp_path)


async def test_a_file_has_the_time_of_its_change(server: Server, alice: Browser) -> None:
    await put(server.alice, f"{ROOT}tree/a.txt")
    info = (await archive(alice, f"{ROOT}tree/")).getinfo("tree/a.txt")
    time = datetime(*info.date_time, tzinfo=UTC)
    assert abs((datetime.now(UTC) - time).total_seconds()) < 60
    assert info.extra[:2] == b"UT"


async def test_what_is_unpacked_can_be_read_by_everybody(server: Server, alice: Browser) -> None:
    await put(server.alice, f"{ROOT}tree/a.txt")
    found = await archive(alice, f"{ROOT}tree/")
    modes = {each.filename: stat.filemode(each.external_attr >> 16) for each in found.infolist()}
    assert modes == {"tree/": "drwxr-xr-x", "tree/a.txt": "-rw-r--r--"}


async def test_only_what_one_may_read_is_in_it(
    server: Server, alice: Browser, bob: Browser
) -> None:
    who = f"acl:agent <{server.bob_web_id}>"
    for name in ("open", "closed", "closed-folder/x", "open-folder/x"):
        await put(server.alice, f"{ROOT}tree/{name}")
    for name, rules in (("", [(who, "+Read")]), ("closed", []), ("closed-folder/", [])):
        turtle = acl_turtle(f"{ROOT}tree/{name}", *rules)
        await put(server.alice, f"{ROOT}tree/{name}.acl", turtle, TURTLE)
    seen = set((await archive(bob, f"{ROOT}tree/")).namelist())
    assert seen == {"tree/", "tree/open.txt", "tree/open-folder/", "tree/open-folder/x.txt"}
    assert len((await archive(alice, f"{ROOT}tree/")).namelist()) == 7
    assert not any("acl" in name for name in seen)


async def test_members_can_be_selected(server: Server, alice: Browser) -> None:
    for name in ("a.txt", "b/x.txt", "c.txt", "d/a.txt"):
        await put(server.alice, f"{ROOT}tree/{name}")
    found = await archive(alice, f"{ROOT}tree/?selection=yes&name=a.txt&name=b/")
    assert set(found.namelist()) == {"tree/", "tree/a.txt", "tree/b/", "tree/b/x.txt"}


async def test_one_person_has_few_archives_made_at_once(
    server: Server, alice: Browser, bob: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(server.alice, "/alice/public/a.txt", "x", "text/plain")
    running, most = Counter[str](), Counter[str]()
    may_read = Archives._readable_body
    everybody = asyncio.Event()

    async def counted(
        self: Archives, request: ResourceRequest, listed: Metadata
    ) -> tuple[Metadata, OpenBody] | None:
        agent = request.agent.iri if request.agent else ""
        running[agent] += 1
        most[agent] = max(most[agent], running[agent])
        if running.total() == MAX_OF_REQUESTER + 1:
            everybody.set()
        try:
            async with asyncio.timeout(60):
                await everybody.wait()
            return await may_read(self, request, listed)
        finally:
            running[agent] -= 1

    monkeypatch.setattr(Archives, "_readable_body", counted)
    archives = await asyncio.gather(
        *(archive(alice, "/alice/public/") for _ in range(MAX_OF_REQUESTER + 3)),
        archive(bob, "/alice/public/"),
    )
    assert all("public/a.txt" in each.namelist() for each in archives)
    assert sorted(most.values()) == [1, MAX_OF_REQUESTER]


async def test_others_are_answered_while_an_archive_of_small_files_is_made(
    server: Server, alice: Browser, bob: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing in it waits for anything: it went on until 64 KiB were ready to be sent."""
    for number in range(40):
        await put(server.alice, f"/alice/public/many/{number}.txt", "x", "text/plain")
    read: list[int] = []
    may_read = Archives._readable_body
    began = asyncio.Event()

    async def counted(
        self: Archives, request: ResourceRequest, listed: Metadata
    ) -> tuple[Metadata, OpenBody] | None:
        read.append(1)
        began.set()
        return await may_read(self, request, listed)

    async def meanwhile() -> int:
        await began.wait()
        for _ in range(5):
            await asyncio.sleep(0)
        return len(read)

    monkeypatch.setattr(Archives, "_readable_body", counted)
    made, read_before = await asyncio.gather(archive(alice, "/alice/public/many/"), meanwhile())
    assert len(made.namelist()) == 41
    assert read_before <= 10


async def test_a_document_is_no_archive(server: Server, alice: Browser) -> None:
    await put(server.alice, f"{ROOT}a.txt")
    assert (await alice.get(f"{ZIP}{ROOT}a.txt")).status == 405
    assert (await alice.get(f"{ZIP}{ROOT}none/")).status == 404


@pytest.mark.needs("unzip")
async def test_names_are_safe_wherever_they_are_unpacked(
    server: Server, alice: Browser, tmp_path: Path
) -> None:
    names = [
        "..%2F..%2Fetc%2Fpasswd",
        "%2Fabsolute",
        "C:%5CWindows",
        "a%5C..%5Cb",
        "con.txt",
        "AUX",
        "dots...",
        "space%20",
        "x",
        "X",
        "x.txt",
        "caf%C3%A9",
        "cafe%CC%81",
        "%E2%80%AEgpj.exe",
        "a%3Fb%2Ac%22",
        f"{'l' * 250}.txt",
        "%F0%9F%98%80" * 60,
    ]
    for name in names:
        await put(server.alice, f"{ROOT}tree/{name}")
        await put(server.alice, f"{ROOT}folders/{name}/x")
    for folder in ("tree", "folders"):
        page = await alice.get(f"{ZIP}{ROOT}{folder}/")
        found = zipfile.ZipFile(io.BytesIO(page.answer.body))
        paths = found.namelist()
        assert len({path.casefold() for path in paths}) == len(paths)
        assert len(paths) == 1 + len(names) * (1 if folder == "tree" else 2)
        for path in paths:
            parts = path.rstrip("/").split("/")
            assert parts[0] == folder
            assert len(parts) <= 3
            for part in parts:
                assert part not in ("", ".", "..")
                assert not set(part) & set('\\:*?"<>|\u202e')
                assert part == part.rstrip(". ")
                assert len(part.encode()) <= 210
                assert part.partition(".")[0].casefold() not in ("con", "aux")
        target = tmp_path / folder
        found.extractall(target)
        assert sum(1 for path in target.rglob("*") if path.is_file()) == len(names)
        check_with_unzip(page.answer, tmp_path)


@pytest.mark.parametrize(
    ("segment", "content_type", "name"),
    [
        ("note", "text/turtle", "note.ttl"),
        ("note.ttl", "text/turtle", "note.ttl"),
        ("note.TTL", "text/turtle", "note.TTL"),
        ("note", "application/ld+json; charset=utf-8", "note.jsonld"),
        ("photo", "image/jpeg", "photo.jpg"),
        ("photo.jpeg", "image/jpeg", "photo.jpeg"),
        ("v1.2", "text/plain", "v1.2.txt"),
        ("data", "application/octet-stream", "data"),
        ("data", "application/x-unheard-of", "data"),
        ("my.folder", None, "my.folder"),
        (".hidden", "text/plain", ".hidden.txt"),
        ("%FF", "text/plain", "\ufffd.txt"),
    ],
)
def test_extensions_tell_the_type(segment: str, content_type: str | None, name: str) -> None:
    assert archive_name(segment, content_type) == name


def test_siblings_have_different_names_on_every_system() -> None:
    folder = ArchiveFolder()
    names = [folder.free(name) for name in ("a.txt", "A.TXT", "a.txt", "a (2).txt", "ﬁ", "FI")]
    assert names == ["a.txt", "A (2).TXT", "a (3).txt", "a (2) (2).txt", "ﬁ", "FI (2)"]


async def test_more_members_than_an_address_has_room_for_are_selected_by_a_form(
    server: Server, alice: Browser
) -> None:
    names = [f"a-name-that-is-rather-long-{number:03}.txt" for number in range(200)]
    for name in (*names, "other.txt"):
        await put(server.alice, f"{ROOT}tree/{name}", "x", "text/plain")
    page = await alice.get(f"/.pages/files{ROOT}tree/")
    selected = [("selection", "yes"), *(("name", name) for name in names)]
    fields = [*selected, ("csrf_token", csrf_token_of(page))]
    answer = (await alice.post(f"{ZIP}{ROOT}tree/", fields)).answer
    assert answer.status == 200
    found = zipfile.ZipFile(io.BytesIO(answer.body))
    assert {each.rpartition("/")[2] for each in found.namelist()} - {""} == set(names)
    refused = await alice.post(f"{ZIP}{ROOT}tree/", [*selected, ("csrf_token", "0" * 64)])
    assert refused.status == 403
