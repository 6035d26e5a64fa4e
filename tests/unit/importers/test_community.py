"""Folders of a Community Solid Server that are odd, damaged or hostile."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from podstead.importers.community import CommunityServerData
from podstead.importers.values import FoundResource, LeftOut, NotThisServer

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
