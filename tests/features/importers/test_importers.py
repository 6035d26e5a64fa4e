"""Folders of a Community Solid Server that are odd, damaged or hostile."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from podstead.features.importers.community import CommunityServerData
from podstead.features.importers.file_sources import WebDavFolder, WebDavRefused
from podstead.features.importers.folders import (
    MAX_LEVELS,
    EntryKind,
    Folder,
    Unreadable,
    readable_path,
)
from podstead.features.importers.values import FoundResource, LeftOut, NotThisServer
from podstead.outbound.fetch import trusted_certificates
from podstead.outbound.guard import Guard
from podstead.outbound.urls import UrlRules
from tests.support.peer import Peer, ScriptedResolver, answer, redirect

BASE = "https://pods.example/"
HASH = "$2a$10$" + "x" * 53


def write(path: Path, content: str | bytes = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def record(path: Path, payload: object) -> None:
    write(path, json.dumps({"key": path.name, "payload": payload}))


def account(*pods: str, owners: tuple[str, ...] = (f"{BASE}alice/profile/card#me",)) -> Any:  # noqa: ANN401 - JSON
    return {
        "id": "1",
        "**password**": {"p": {"email": "a@example.com", "password": HASH, "verified": True}},
        "**webIdLink**": {str(i): {"webId": owner} for i, owner in enumerate(owners)},
        "**pod**": {
            pod: {
                "baseUrl": pod,
                "**owner**": {str(i): {"webId": owner} for i, owner in enumerate(owners)},
            }
            for pod in pods
        },
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    record(tmp_path / ".internal/setup/current-base-url$.json", BASE)
    record(tmp_path / ".internal/setup/current-server-version$.json", "7.1.8")
    record(tmp_path / ".internal/accounts/data/1$.json", account(f"{BASE}alice/"))
    write(tmp_path / "alice/.acl")
    return tmp_path


def read(folder: Path) -> tuple[dict[str, FoundResource], dict[str, str]]:
    """What is found in the only pod, and what is left out, by their paths."""
    server = CommunityServerData(folder)
    [pod] = server.pods
    every = list(server.resources(pod))
    found = {each.path: each for each in every if isinstance(each, FoundResource)}
    left = [each for each in every if isinstance(each, LeftOut)] + server.left_out
    return found, {each.path: each.reason for each in left}


def test_links_pipes_and_names_that_are_not_text_are_reported(folder: Path) -> None:
    (folder / "alice/link.ttl").symlink_to("/etc/passwd")
    (folder / "alice/up").symlink_to("..")
    os.mkfifo(folder / "alice/pipe")
    (folder / os.fsdecode(b"alice/caf\xe9")).write_bytes(b"")
    write(folder / "alice/line\nfeed")
    found, left = read(folder)
    assert set(found) == {"", ".acl"}
    assert set(left) == {
        "alice/link.ttl", "alice/up", "alice/pipe", "alice/caf\\xe9", "alice/line\nfeed",
    }  # fmt: skip


def test_two_files_of_one_url_are_not_merged(folder: Path) -> None:
    write(folder / "alice/notes")
    write(folder / "alice/notes$.ttl")
    found, left = read(folder)
    assert found["notes"].parts == ("alice", "notes")
    assert left == {"alice/notes$.ttl": "It has the same URL as the file notes"}


async def test_policies_become_rules_that_grant_nothing(folder: Path) -> None:
    write(folder / "alice/private/.acr", "<#a> a <#Policy>.")
    write(folder / "alice/notes$.ttl.acr", "<#a> a <#Policy>.")
    server = CommunityServerData(folder)
    found, left = read(folder)
    assert set(left) == {"alice/private/.acr", "alice/notes$.ttl.acr"}
    rules = found["private/.acl"]
    assert [piece async for piece in server.content(rules)] == [b""]


@pytest.mark.parametrize(
    "url",
    [
        f"{BASE}../outside/",
        f"{BASE}%2E%2E/outside/",
        f"{BASE}..%2Foutside/",
        f"{BASE}alice/../../outside/",
        "https://other.example/alice/",
        f"{BASE}link/",
    ],
)
def test_an_account_names_no_folder_outside(folder: Path, url: str) -> None:
    outside = folder.parent / "outside"
    outside.mkdir(exist_ok=True)
    (folder / "link").symlink_to(outside)
    record(folder / ".internal/accounts/data/2$.json", account(url))
    server = CommunityServerData(folder)
    assert [pod.name for pod in server.pods] == ["alice"]
    assert f"There are no files for the pod {url}" in {each.reason for each in server.left_out}


def test_damaged_accounts_are_reported(folder: Path) -> None:
    write(folder / ".internal/accounts/data/2$.json", "{")
    record(folder / ".internal/accounts/data/3$.json", {"**pod**": 7})
    server = CommunityServerData(folder)
    assert len(server.accounts) == 1
    assert {each.path for each in server.left_out} == {
        ".internal/accounts/data/2$.json", ".internal/accounts/data/3$.json",
    }  # fmt: skip


def test_accounts_of_another_version_are_not_read(folder: Path) -> None:
    record(folder / ".internal/setup/current-server-version$.json", "5.1.0")
    write(
        folder / "alice/.meta",
        f"<{BASE}alice/> a <http://www.w3.org/ns/pim/space#Storage>.",
    )
    server = CommunityServerData(folder)
    assert server.accounts == ()
    assert [pod.name for pod in server.pods] == ["alice"]
    assert "5.1.0" in server.left_out[0].reason


def test_a_second_owner_and_what_is_in_no_pod_are_reported(folder: Path) -> None:
    owners = (f"{BASE}alice/profile/card#me", "https://bob.example/#me")
    record(folder / ".internal/accounts/data/1$.json", account(f"{BASE}alice/", owners=owners))
    write(folder / "index.html")
    server = CommunityServerData(folder)
    [pod] = server.pods
    assert pod.owner == owners[0]
    reasons = {each.path: each.reason for each in server.left_out}
    assert owners[1] in reasons["alice"]
    assert reasons["index.html"] == "It is in no pod"


def test_a_pod_at_the_root_has_no_name_of_its_own(folder: Path) -> None:
    record(folder / ".internal/accounts/data/1$.json", account(BASE))
    found, left = read(folder)
    assert CommunityServerData(folder).pods[0].name == ""
    assert set(found) == {"", "alice/", "alice/.acl"}
    assert left == {}


def test_a_type_without_extension_is_in_the_description(folder: Path) -> None:
    write(folder / "alice/odd$.unknown", b"\x00")
    write(
        folder / "alice/odd.meta",
        f'<{BASE}alice/odd> <http://www.w3.org/ns/ma-ont#format> "application/x-odd".',
    )
    write(folder / "alice/other.unheard-of")
    found, left = read(folder)
    assert found["odd"].content_type == "application/x-odd"
    assert "odd.meta" not in found
    assert found["other.unheard-of"].content_type == "application/octet-stream"
    assert set(left) == {"alice/other.unheard-of"}


def test_another_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotThisServer):
        CommunityServerData(tmp_path)
    (tmp_path / ".internal").mkdir()
    with pytest.raises(NotThisServer):
        CommunityServerData(tmp_path)
    assert CommunityServerData(tmp_path, base_url="https://a.example").base_url == (
        "https://a.example/"
    )


# --- A folder that somebody else has written is never left, whatever is in it ------------------


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    secret = tmp_path / "outside"
    secret.mkdir()
    (secret / "secret.txt").write_bytes(b"secret")
    return secret


@pytest.fixture
def tree(tmp_path: Path, outside: Path) -> Path:
    root = tmp_path / "root"
    (root / "inner").mkdir(parents=True)
    (root / "inner/a.txt").write_bytes(b"a")
    (root / "link").symlink_to(outside)
    (root / "link.txt").symlink_to(outside / "secret.txt")
    (root / "inner/up").symlink_to("..")
    os.mkfifo(root / "pipe")
    return root


def test_each_entry_says_what_it_is(tree: Path) -> None:
    kinds = {entry.name: entry.kind for entry in Folder(tree).entries()}
    assert kinds == {
        "inner": EntryKind.FOLDER,
        "link": EntryKind.LINK,
        "link.txt": EntryKind.LINK,
        "pipe": EntryKind.OTHER,
    }


@pytest.mark.parametrize(
    "parts",
    [
        ("link.txt",),
        ("link", "secret.txt"),
        ("inner", "up", "inner", "a.txt"),
        ("..", "outside", "secret.txt"),
        ("inner", "..", "..", "outside", "secret.txt"),
        ("inner/../../outside/secret.txt",),
        ("/etc/passwd",),
        ("inner", "", "a.txt"),
        ("inner", ".", "a.txt"),
        ("pipe",),
        ("inner",),
        ("nothing",),
        ("a\0b",),
    ],
)
async def test_nothing_is_read_through_links_dots_and_pipes(
    tree: Path, parts: tuple[str, ...]
) -> None:
    found = Folder(tree)
    assert not found.has_file(parts)
    with pytest.raises(Unreadable):
        found.read(parts)
    with pytest.raises(Unreadable):
        async for _ in found.pieces(parts):
            pass


@pytest.mark.parametrize("parts", [("link",), ("..",), ("inner", "up"), ("inner/..",)])
def test_no_folder_is_listed_through_links_and_dots(tree: Path, parts: tuple[str, ...]) -> None:
    found = Folder(tree)
    assert not found.has_folder(parts)
    with pytest.raises(Unreadable):
        found.entries(parts)


async def test_a_file_that_becomes_a_link_meanwhile_is_not_followed(
    tree: Path, outside: Path
) -> None:
    found = Folder(tree)
    [entry] = [each for each in found.entries(("inner",)) if each.name == "a.txt"]
    (tree / "inner/a.txt").unlink()
    (tree / "inner/a.txt").symlink_to(outside / "secret.txt")
    with pytest.raises(Unreadable):
        found.read(entry.parts)
    (tree / "inner").rename(tree / "gone")
    (tree / "inner").symlink_to(outside)
    with pytest.raises(Unreadable):
        found.read(("inner", "secret.txt"))


async def test_files_are_read_in_pieces_and_records_up_to_a_limit(tree: Path) -> None:
    content = os.urandom(700_000)
    (tree / "large").write_bytes(content)
    found = Folder(tree)
    assert b"".join([piece async for piece in found.pieces(("large",))]) == content
    assert found.beginning(("large",), 10) == content[:10]
    with pytest.raises(Unreadable):
        found.read(("large",), max_bytes=699_999)


def test_names_that_are_not_text_are_said_to_be_so(tmp_path: Path) -> None:
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))).write_bytes(b"")
    [entry] = Folder(tmp_path).entries()
    assert not entry.is_text
    assert readable_path(entry.parts) == "caf\\xe9"


def test_what_is_too_deep_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unreadable):
        Folder(tmp_path).entries(("a",) * (MAX_LEVELS + 1))


# --- A WebDAV server that answers with what it should not --------------------------------------


FOLDER = "<d:resourcetype><d:collection/></d:resourcetype>"


def listing(*members: tuple[str, str]) -> bytes:
    responses = "".join(
        f"<d:response><d:href>{href}</d:href><d:propstat><d:prop>{properties}</d:prop>"
        "<d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response>"
        for href, properties in members
    )
    return f'<d:multistatus xmlns:d="DAV:">{responses}</d:multistatus>'.encode()


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    peer = Peer()
    await peer.start()
    yield peer
    await peer.stop()


def collection(peer: Peer) -> WebDavFolder:
    guard = Guard(UrlRules(loopback_allowed=True), ScriptedResolver({}))
    return WebDavFolder(peer.url("/files"), guard, tls=trusted_certificates())


async def everything(found: WebDavFolder) -> list[FoundResource | LeftOut]:
    return [each async for each in found.resources()]


async def test_only_members_of_the_folder_are_followed(peer: Peer) -> None:
    peer.replies["/files/"] = answer(
        "207 Multi-Status",
        body=listing(
            ("/files/", FOLDER),
            ("/files/a.txt", "<d:getcontenttype>text/plain; charset=utf-8</d:getcontenttype>"),
            ("/files/inner", FOLDER),
            ("/files/rules.acl", ""),
            ("/other/secret.txt", ""),
            ("/files/../secret.txt", ""),
            ("/files/%2E%2E/secret.txt", ""),
            ("/files//b.txt", ""),
            ("http://elsewhere.example/files/c.txt", ""),
            ("", ""),
        ),
    )
    # The folder says that it contains itself and the one above it.
    peer.replies["/files/inner/"] = answer(
        "207 Multi-Status",
        body=listing(("/files/inner/", FOLDER), ("/files/", FOLDER), ("/files/inner/d.ttl", "")),
    )
    found = await everything(collection(peer))
    taken = {each.path: each for each in found if isinstance(each, FoundResource)}
    assert set(taken) == {"", "a.txt", "inner/", "inner/d.ttl"}
    assert taken["a.txt"].content_type == "text/plain; charset=utf-8"
    assert taken["inner/d.ttl"].content_type == "text/turtle"
    assert {request.path for request in peer.requests} == {"/files/", "/files/inner/"}


@pytest.mark.parametrize(
    "body",
    [
        b"not XML",
        b'<!DOCTYPE x [<!ENTITY a "aaaa">]><d:multistatus xmlns:d="DAV:">&a;</d:multistatus>',
        b"",
    ],
)
async def test_a_list_that_is_none_is_refused(peer: Peer, body: bytes) -> None:
    peer.replies["/files/"] = answer("207 Multi-Status", body=body)
    with pytest.raises(WebDavRefused):
        await everything(collection(peer))


async def test_redirects_are_not_followed_and_missing_files_are_reported(peer: Peer) -> None:
    peer.replies["/files/"] = redirect(peer.url("/other/"))
    with pytest.raises(WebDavRefused, match="302"):
        await everything(collection(peer))
    gone = FoundResource("gone.txt", peer.url("/files/gone.txt"), "text/plain", content=b"")
    with pytest.raises(Unreadable, match="404"):
        async for _ in collection(peer).content(gone):
            pass
