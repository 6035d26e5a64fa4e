"""A push is decided about once more when all of it is there, just before references change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from podstead.features.git.service import GitService
from tests.support import http_fixtures
from tests.support.application import Server, Start
from tests.support.git import NOTHING, Git, push_of

pytestmark = pytest.mark.needs("git")

start = http_fixtures.start
"""In this process, unlike those of the other tests."""

CONTAINER = "/alice/private/notes/"
RECEIVE = {"Content-Type": "application/x-git-receive-pack-request"}
REFUSED = b"pre-receive hook declined"


def all_has_arrived(root: Path) -> bool:
    """Whether a push has been taken in and checked, and is not part of its repository yet."""
    return any((root / "git").glob("*.git/objects/tmp_objdir-*/pack/pack-*.idx"))


def branches(root: Path) -> set[str]:
    [repository] = [each for each in (root / "git").glob("*.git") if each.name != "empty.git"]
    return set(Git(repository)("for-each-ref", "--format=%(refname)").split())


@pytest.fixture
async def shared(start: Start) -> Server:
    """A server on which Bob may push to a container of Alice's."""
    server = await start(git=True)
    await server.alice.put(CONTAINER, "", "text/turtle", link=_CONTAINER_LINK)
    await may_push(server, "Read Write")
    return server


_CONTAINER_LINK = '<http://www.w3.org/ns/ldp#BasicContainer>; rel="type"'


async def may_push(server: Server, modes: str) -> None:
    inherited = " ".join(f"+{mode}" for mode in modes.split())
    answer = await server.put_acl(CONTAINER, (f"acl:agent <{server.bob_web_id}>", inherited))
    assert answer.status in {201, 204}


@pytest.fixture
def content(tmp_path: Path) -> bytes:
    """A push of one commit."""
    work = Git(tmp_path).new("work")
    work.commit("a", "1")
    return push_of(work, old=NOTHING)


@pytest.mark.parametrize("ends", [True, False])
async def test_write_access_is_checked_just_before_references_change(
    shared: Server,
    content: bytes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ends: bool,
) -> None:
    root = tmp_path / "root"
    asked_at: list[bool] = []
    admit = GitService._admit

    async def admit_later(self: GitService, *arguments: Any) -> Any:  # noqa: ANN401
        asked_at.append(all_has_arrived(root))
        if asked_at[-1] and ends:
            await may_push(shared, "Read")
        return await admit(self, *arguments)

    monkeypatch.setattr(GitService, "_admit", admit_later)
    answer = await shared.bob.request(
        "POST", f"{CONTAINER}git-receive-pack", headers=RECEIVE, body=content
    )
    assert answer.status == 200
    assert asked_at[-1], "it was not asked about when everything was there"
    assert (REFUSED in answer.body) == ends
    assert branches(root) == (set() if ends else {"refs/heads/main"})


async def test_a_push_that_nobody_decides_about_changes_no_reference(
    shared: Server, content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    admit = GitService._admit

    async def admit_until_then(self: GitService, *arguments: Any) -> Any:  # noqa: ANN401
        if all_has_arrived(root):
            raise RuntimeError("a defect")
        return await admit(self, *arguments)

    monkeypatch.setattr(GitService, "_admit", admit_until_then)
    answer = await shared.bob.request(
        "POST", f"{CONTAINER}git-receive-pack", headers=RECEIVE, body=content
    )
    assert REFUSED in answer.body
    assert branches(root) == set()
