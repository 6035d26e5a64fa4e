"""A pod leaves as an archive that any program can read, and arrives as it was."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest
from rdflib import Graph
from rdflib.compare import isomorphic

from podstead.app.operator.importing import OpenedPods
from podstead.app.operator.pod_archives import export_pod, import_pod
from podstead.config import Settings
from podstead.core.errors import Conflict, NotFound, QuotaExceeded
from podstead.resources.exporting.archive import ContentsChanged, PodArchive
from podstead.resources.exporting.contents import PodContents, read_contents
from podstead.resources.importing.pod_archive import (
    NotAPodArchive,
    opened_archive,
)
from podstead.resources.importing.values import ImportReport
from podstead.storage.layout import RootLayout
from podstead.storage.sqlite import SqliteFacts
from tests.support.application import BASE, Server

PHOTO = b"\x89PNG" + bytes(range(256)) * 2000


async def contents_of(
    pods: OpenedPods, name: str = "alice", *, with_versions: bool = False
) -> PodContents:
    store = pods.records.store
    pod = await store.read_pod(name)
    assert pod is not None
    return await read_contents(store, pod, base_url=BASE, issuer=BASE, with_versions=with_versions)


async def archive_of(pods: OpenedPods, *, with_versions: bool = False) -> PodArchive:
    return PodArchive(pods.records.store, await contents_of(pods, with_versions=with_versions))


async def whole(archive: PodArchive, start: int = 0, end: int | None = None) -> bytes:
    return b"".join([piece async for piece in archive.chunks(start, end)])


async def fill(server: Server) -> None:
    """Resources of every kind, with names that are hard to unpack."""
    alice = server.alice
    await alice.put("/alice/notes/a.ttl", f"<> <#of> <{BASE}/alice/notes/b>, <b>.", "text/turtle")
    await alice.put("/alice/notes/b", '{"@id": "", "http://e.org/p": 1}', "application/ld+json")
    await alice.put("/alice/notes/photo", PHOTO, "image/png")
    await alice.put("/alice/notes/photo.meta", "<photo> <#shows> <a.ttl>.", "text/turtle")
    await alice.put("/alice/notes/caf%C3%A9%3F%20%22.txt", "hot", "text/plain")
    await alice.put("/alice/notes/CON", "", "text/plain")
    await alice.put("/alice/empty/", "", "text/turtle")
    await alice.put("/alice/notes/.meta", "<> <#title> 'Notes'.", "text/turtle")
    await server.put_acl("/alice/notes/", ("acl:agent <https://bob.example/#me>", "+Read"))
    await server.put_acl("/alice/notes/photo", ("acl:agentClass foaf:Agent", "Read"))


async def test_any_program_reads_the_archive(
    pods: OpenedPods, server: Server, tmp_path: Path
) -> None:
    await fill(server)
    archive = await archive_of(pods)
    octets = await whole(archive)
    assert len(octets) == archive.size_bytes
    file = tmp_path / "alice.zip"
    file.write_bytes(octets)
    with zipfile.ZipFile(file) as opened:
        assert opened.testzip() is None
        assert opened.read("alice/notes/photo.png") == PHOTO
        assert {"alice/notes/photo.png.acl", "alice/notes/photo.png.meta", "alice/empty/",
                "alice/.acl", "alice/.meta", "alice/notes/.acl", "alice/notes/.meta",
                "alice/notes/b.jsonld", "alice/notes/café_ _.txt", "alice/notes/_CON.txt",
                "index.html", "ro-crate-metadata.json"} <= set(opened.namelist())  # fmt: skip
        crate = json.loads(opened.read("ro-crate-metadata.json"))
        files = {each["@id"]: each for each in crate["@graph"] if each["@type"] == "File"}
        assert len(files) == len([name for name in opened.namelist() if name[-1] != "/"]) - 1
        for each in files.values():
            content = opened.read(unquote(each["@id"]))
            assert each["sha256"] == hashlib.sha256(content).hexdigest()
            assert each["contentSize"] == str(len(content))
        page = opened.read("index.html").decode()
    assert "alice/notes/café_%20_.txt" in page
    assert files["alice/notes/b.jsonld"]["url"] == f"{BASE}/alice/notes/b"
    assert files["alice/notes/b.jsonld"]["encodingFormat"] == "application/ld+json"


def unzipped(file: Path) -> tuple[int, str, str]:
    tested = subprocess.run(["unzip", "-tqq", file], capture_output=True, text=True, check=False)
    return tested.returncode, tested.stdout, tested.stderr


@pytest.mark.needs("unzip")
async def test_unzip_finds_nothing_wrong(pods: OpenedPods, server: Server, tmp_path: Path) -> None:
    await fill(server)
    file = tmp_path / "alice.zip"
    file.write_bytes(await whole(await archive_of(pods)))
    assert unzipped(file) == (0, "", "")


async def test_every_part_of_an_archive_can_be_had_later(pods: OpenedPods, server: Server) -> None:
    await fill(server)
    first = await archive_of(pods)
    octets = await whole(first)
    again = await archive_of(pods)
    assert again.tag == first.tag
    for start in [*range(0, len(octets), len(octets) // 40), len(octets) - 1]:
        assert await whole(again, start) == octets[start:]
        assert await whole(again, start, start + 1000) == octets[start : start + 1000]
    await server.alice.put("/alice/notes/b", "{}", "application/ld+json")
    assert (await archive_of(pods)).tag != first.tag


@pytest.mark.feature("history")
async def test_former_versions_of_documents_are_in_an_archive_when_they_are_wanted(
    pods: OpenedPods, server: Server, settings: Settings, tmp_path: Path
) -> None:
    await fill(server)
    for content in ("one", "two" * 50_000, "three"):
        for name in ("a.txt", "gone.txt"):
            await server.alice.put(f"/alice/notes/{name}", content, "text/plain")
    await server.alice.delete("/alice/notes/gone.txt")
    await server.alice.put("/alice/notes/gone.txt", "another document", "text/plain")
    archive, plain = await archive_of(pods, with_versions=True), await archive_of(pods)
    octets = await whole(archive)
    assert archive.tag != plain.tag
    assert len(octets) == archive.size_bytes
    for start in range(0, len(octets), len(octets) // 20):
        assert await whole(archive, start, start + 1000) == octets[start : start + 1000]
    file = tmp_path / "alice.zip"
    await export_pod(settings, "alice", file, with_versions=True, on_step=lambda *_: None)
    with zipfile.ZipFile(file) as opened:
        assert opened.testzip() is None
        names = [name for name in opened.namelist() if name.startswith("former versions/alice")]
        assert [opened.read(name) for name in sorted(names)] == [b"one", b"two" * 50_000]
        crate = json.loads(opened.read("ro-crate-metadata.json"))
        page = opened.read("index.html").decode()
    for name in names:
        assert name.startswith("former versions/alice/notes/a.txt/")
        (entity,) = [each for each in crate["@graph"] if unquote(each["@id"]) == name]
        assert entity["exampleOfWork"] == {"@id": "alice/notes/a.txt"}
        assert entity["@id"] in page
    # They are not imported, and neither hinder what is.
    report = await moved(settings, file)
    assert (report.not_taken, report.closed, report.not_renamed) == ([], [], [])
    after = await contents_of(pods, "alicia", with_versions=True)
    assert len(after.resources) == len((await contents_of(pods)).resources)
    assert list(after.versions) == []


async def test_an_archive_never_mixes_two_states(pods: OpenedPods, server: Server) -> None:
    await fill(server)
    archive = await archive_of(pods)
    await server.alice.put("/alice/notes/a.ttl", "<> a <#Other>.", "text/turtle")
    with pytest.raises(ContentsChanged):
        await whole(archive)


async def test_a_lenient_archive_says_what_was_changed(pods: OpenedPods, server: Server) -> None:
    await fill(server)
    archive = PodArchive(pods.records.store, await contents_of(pods), lenient=True)
    await server.alice.put("/alice/notes/a.ttl", "<> a <#Other>, <#Longer>.", "text/turtle")
    await server.alice.put("/alice/notes/new", "new", "text/plain")
    await server.alice.delete("/alice/notes/photo")
    octets = await whole(archive)
    assert {"/alice/notes/a.ttl", "/alice/notes/new", "/alice/notes/photo"} <= set(archive.changed)
    with zipfile.ZipFile(io.BytesIO(octets)) as opened:
        assert opened.testzip() is None
        assert b"#Longer" in opened.read("alice/notes/a.ttl")
        crate = json.loads(opened.read("ro-crate-metadata.json"))
    described = next(each for each in crate["@graph"] if each["@id"] == "./")
    assert "/alice/notes/a.ttl" in described["description"]


async def moved(
    settings: Settings, file: Path, name: str = "alicia", *, dry_run: bool = False
) -> ImportReport:
    with opened_archive(file) as archive:
        _, report = await import_pod(
            settings, archive, name=name, dry_run=dry_run, on_step=lambda *_: None
        )
    return report


async def exported(settings: Settings, folder: Path) -> Path:
    file = folder / "alice.zip"
    await export_pod(settings, "alice", file, on_step=lambda *_: None)
    return file


async def test_a_pod_arrives_under_another_name_as_it_was(
    pods: OpenedPods, server: Server, settings: Settings, tmp_path: Path
) -> None:
    await fill(server)
    file = await exported(settings, tmp_path)
    report = await moved(settings, file)
    assert (report.not_taken, report.closed, report.not_renamed) == ([], [], [])
    before, after = await contents_of(pods), await contents_of(pods, "alicia")
    assert [each.path.replace("/alice/", "/alicia/", 1) for each in before.resources] == [
        each.path for each in after.resources
    ]
    for old, new in zip(before.resources, after.resources, strict=True):
        assert (new.kind, new.content_type) == (old.kind, old.content_type)
        if old.kind.is_member and not old.kind.is_container:
            assert (new.created_ms, new.modified_ms) == (old.created_ms, old.modified_ms)
    public = server.public
    assert (await public.get("/alicia/notes/photo")).body == PHOTO
    # Only that document says a URL of the pod in full; in the others they are relative.
    document = await server.alice.get("/alice/notes/a.ttl")
    assert (await public.get("/alicia/notes/a.ttl")).status == 401
    new = next(each for each in after.resources if each.path == "/alicia/notes/a.ttl")
    body = await pods.documents.read_bytes(new)
    expected = document.text.replace("/alice/", "/alicia/")
    assert isomorphic(
        Graph().parse(data=body, format="turtle", publicID=f"{BASE}/alicia/notes/a.ttl"),
        Graph().parse(data=expected, format="turtle", publicID=f"{BASE}/alicia/notes/a.ttl"),
    )
    pod = await pods.records.store.read_pod("alicia")
    assert pod is not None
    assert pod.owner == f"{BASE}/alicia/#me"


async def test_nothing_happens_twice_and_nothing_over_something(
    pods: OpenedPods, server: Server, settings: Settings, tmp_path: Path
) -> None:
    file = await exported(settings, tmp_path)
    with pytest.raises(Conflict):
        await exported(settings, tmp_path)
    with pytest.raises(NotFound):
        await export_pod(settings, "nobody", tmp_path / "b.zip", on_step=lambda *_: None)
    dry = await moved(settings, file, dry_run=True)
    assert await pods.records.store.read_pod("alicia") is None
    assert await moved(settings, file) == dry
    with pytest.raises(Conflict):
        await moved(settings, file)
    with pytest.raises(Conflict):
        await moved(settings, file, "alice")


# --- archives that are made to deceive --------------------------------------------------------


def rewritten(file: Path, change: dict[str, bytes], *more: tuple[str, bytes]) -> Path:
    """The archive with other content in some files, and further files."""
    other = file.with_name("other.zip")
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(other, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            new.writestr(info.filename, change.get(info.filename, old.read(info)))
        for name, content in more:
            new.writestr(name, content)
    return other


def with_entity(file: Path, old: str, new: str) -> Path:
    """The archive with something replaced in its manifest."""
    with zipfile.ZipFile(file) as opened:
        manifest = opened.read("ro-crate-metadata.json").decode()
    assert old in manifest
    return rewritten(file, {"ro-crate-metadata.json": manifest.replace(old, new).encode()})


async def test_changed_files_are_not_taken(
    pods: OpenedPods, server: Server, settings: Settings, tmp_path: Path
) -> None:
    file = await exported(settings, tmp_path)
    card = (await server.public.get("/alice/profile/card")).body
    other = rewritten(file, {"alice/profile/card.ttl": card.replace(b"Person", b"Robots")})
    report = await moved(settings, other)
    assert report.not_taken[0].path == "/alicia/profile/card"
    assert "SHA-256" in report.not_taken[0].reason


@pytest.mark.parametrize(
    "name", ["../evil", "/etc/passwd", "a/../../b", "a\\..\\b"], ids=lambda name: name
)
async def test_paths_that_lead_elsewhere_are_refused(
    pods: OpenedPods, settings: Settings, tmp_path: Path, name: str
) -> None:
    file = await exported(settings, tmp_path)
    with pytest.raises(NotAPodArchive), opened_archive(rewritten(file, {}, (name, b"x"))):
        pass


@pytest.mark.parametrize(
    "url",
    ["/alice/../bob/x", "/alice/%2e%2e/bob/x", "/alice/a//b", "/alice/x?y", "/alice/x.acl.acl"],
)
async def test_urls_that_are_not_of_the_pod_are_not_taken(
    pods: OpenedPods, server: Server, settings: Settings, tmp_path: Path, url: str
) -> None:
    file = await exported(settings, tmp_path)
    old = f'"url": "{BASE}/alice/profile/card"'
    report = await moved(settings, with_entity(file, old, f'"url": "{BASE}{url}"'))
    assert len(report.not_taken) >= 1
    after = await contents_of(pods, "alicia")
    assert not [each.path for each in after.resources if each.path.startswith("/alicia/x")]
    assert (await server.bob.get("/bob/x")).status == 404


@pytest.mark.parametrize(
    ("owner", "taken"),
    [
        (f"{BASE}/bob/#me", False),
        (f"{BASE.replace('http', 'HTTP')}/b%6Fb/#me", False),
        (f"{BASE}/of-a-deleted-pod/#me", False),
        ("https://former.example/bob/#me", False),
        ("https://e.example/#me>; a <https://e.example/", False),
        ("urn:somebody", False),
        ("https://e.example/#me", True),
    ],
)
async def test_nobody_comes_as_another_person_of_this_server(
    pods: OpenedPods, settings: Settings, tmp_path: Path, owner: str, taken: bool
) -> None:
    file = await exported(settings, tmp_path)
    with zipfile.ZipFile(file) as opened:
        manifest = json.loads(opened.read("ro-crate-metadata.json"))
    root = next(each for each in manifest["@graph"] if each["@id"] == "./")
    assert root["creator"]["@id"] == f"{BASE}/alice/#me"
    root["creator"]["@id"] = owner
    other = rewritten(file, {"ro-crate-metadata.json": json.dumps(manifest).encode()})
    facts = SqliteFacts(RootLayout(settings.root).database)
    facts.write_fact("former-base-urls", "https://former.example")
    report = await moved(settings, other)
    pod = await pods.records.store.read_pod("alicia")
    assert pod is not None
    assert pod.owner == (owner if taken else f"{BASE}/alicia/#me")
    assert [each.path for each in report.not_taken] == ([] if taken else ["/alicia/"])


async def test_a_small_archive_does_not_become_a_large_pod(
    pods: OpenedPods, settings: Settings, tmp_path: Path
) -> None:
    file = await exported(settings, tmp_path)
    bomb = bytes(5_000_000)
    other = rewritten(file, {"alice/profile/card.ttl": bomb})
    assert other.stat().st_size < 50_000
    report = await moved(settings, other)
    assert report.not_taken[0].path == "/alicia/profile/card"
    assert report.size_bytes < 50_000


async def test_entries_that_share_their_bytes_are_refused(
    pods: OpenedPods, settings: Settings, tmp_path: Path
) -> None:
    file = await exported(settings, tmp_path)
    octets = bytearray(file.read_bytes())
    with zipfile.ZipFile(file) as opened:
        first, second = [each for each in opened.infolist() if each.file_size][:2]
    # The place of the second file, in its entry of the directory.
    at = octets.rindex(second.filename.encode()) - 4
    octets[at : at + 4] = first.header_offset.to_bytes(4, "little")
    file.write_bytes(octets)
    with pytest.raises(NotAPodArchive), opened_archive(file):
        pass


async def test_an_archive_beyond_the_quota_is_refused(
    pods: OpenedPods, server: Server, settings: Settings, tmp_path: Path
) -> None:
    await server.alice.put("/alice/large", bytes(200_000), "text/plain")
    file = await exported(settings, tmp_path)
    small = replace(settings, quota_bytes=100_000)
    for dry_run in (True, False):
        with pytest.raises(QuotaExceeded):
            await moved(small, file, dry_run=dry_run)
    # With enough room, the same import goes on.
    report = await moved(settings, file)
    assert report.documents + report.already_there > 3
    assert (await contents_of(pods, "alicia")).resources
