"""Who may be at a repository, and what is left over: by locks of the system, on a real disk."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from podstead.core.errors import StorageError
from podstead.core.identifiers import ResourcePath
from podstead.features.git.directories import Directories, DirectoryClaim
from podstead.features.git.entries import RepositoryName

PLACE = ResourcePath("/alice/notes/")
ONE, TWO = RepositoryName("1" * 32), RepositoryName("2" * 32)


@pytest.fixture
def directories(tmp_path: Path) -> Iterator[Directories]:
    made = Directories(tmp_path / "git")
    yield made
    made.close()


def holder(claim: DirectoryClaim) -> subprocess.Popen[bytes]:
    """A process that holds a claim until its input ends."""
    return subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"],
        stdin=subprocess.PIPE,
        pass_fds=(claim.fileno(),),
    )


async def fill(directory: Path) -> None:
    for name in ("objects/info", "objects/pack", "refs/heads"):
        (directory / name).mkdir(parents=True)
    (directory / "HEAD").write_text("ref: refs/heads/main\n")


async def fail(directory: Path) -> None:
    await fill(directory)
    raise StorageError("It fails")


async def keep(_name: RepositoryName, _container: ResourcePath) -> bool:
    return True


async def drop(_name: RepositoryName, _container: ResourcePath) -> bool:
    return False


async def make(directories: Directories, name: RepositoryName = ONE) -> Path:
    claim = await directories.make(name, PLACE, fill)
    claim.close()
    return directories.path(name)


async def test_a_repository_is_there_as_a_whole(directories: Directories) -> None:
    path = await make(directories)
    assert (path / "description").read_text() == "/alice/notes/\n"
    assert await directories.default_branch(ONE) == "refs/heads/main"
    assert await directories.exists(ONE)
    assert not await directories.exists(TWO)
    await directories.sync(ONE)


async def test_a_failed_creation_leaves_nothing(directories: Directories, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="It fails"):
        await directories.make(ONE, PLACE, fail)
    assert list((tmp_path / "git").iterdir()) == []


async def test_a_name_is_used_once(directories: Directories, tmp_path: Path) -> None:
    path = await make(directories)
    with pytest.raises(StorageError):
        await directories.make(ONE, PLACE, fill)
    assert list((tmp_path / "git").iterdir()) == [path]


async def test_a_repository_that_is_missing_is_trouble(directories: Directories) -> None:
    """It was there once: it is not taken for an empty one."""
    await make(directories, TWO)
    with pytest.raises(StorageError):
        await directories.claim(ONE)
    with pytest.raises(StorageError):
        await directories.default_branch(ONE)


LEFT_OVER = (
    "HEAD.lock",
    "packed-refs.lock",
    "refs/heads/main.lock",
    "refs/heads/deep/er/x.lock",
    "objects/tmp_objdir-incoming-abc/pack/x",
    "objects/pack/tmp_pack_1",
    "objects/pack/pack-1.keep",
    "gc.pid",
)
ITS_OWN = ("refs/heads/main", "objects/pack/pack-1.pack", "objects/12/345", "packed-refs")


async def test_the_only_process_removes_what_a_crash_left(directories: Directories) -> None:
    path = await make(directories)
    for name in (*LEFT_OVER, *ITS_OWN):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).touch()
    first = await directories.claim(ONE)
    assert not [name for name in LEFT_OVER if (path / name).exists()]
    assert not (path / "objects/tmp_objdir-incoming-abc").exists()
    assert [name for name in ITS_OWN if not (path / name).exists()] == []
    # Now somebody is at work.
    (path / "HEAD.lock").touch()
    second = await directories.claim(ONE)
    assert (path / "HEAD.lock").exists()
    first.close()
    third = await directories.claim(ONE)
    assert (path / "HEAD.lock").exists()
    second.close()
    third.close()
    (await directories.claim(ONE)).close()
    assert not (path / "HEAD.lock").exists()


async def test_a_process_that_inherited_a_claim_holds_it(directories: Directories) -> None:
    path = await make(directories)
    claim = await directories.claim(ONE)
    process = holder(claim)
    claim.close()
    (path / "HEAD.lock").touch()
    (await directories.claim(ONE)).close()
    assert (path / "HEAD.lock").exists()
    await directories.sweep(drop)
    assert path.exists()
    process.communicate(timeout=60)
    (await directories.claim(ONE)).close()
    assert not (path / "HEAD.lock").exists()


async def test_a_sweep_removes_what_no_container_has(directories: Directories) -> None:
    one, two = await make(directories), await make(directories, TWO)
    asked = []

    async def is_two(name: RepositoryName, container: ResourcePath) -> bool:
        asked.append((name, container))
        return name == TWO

    await directories.sweep(is_two)
    assert asked == [(ONE, PLACE), (TWO, PLACE)]
    assert (one.exists(), two.exists()) == (False, True)
    assert [path.name for path in one.parent.iterdir()] == [two.name]


async def test_a_sweep_leaves_alone_what_somebody_is_at(directories: Directories) -> None:
    """Also what is just made, and has no container yet."""
    claim = await directories.make(ONE, PLACE, fill)
    await directories.sweep(drop)
    assert await directories.exists(ONE)

    async def while_made(directory: Path) -> None:
        await fill(directory)
        await directories.sweep(drop)

    (await directories.make(TWO, PLACE, while_made)).close()
    claim.close()
    await directories.sweep(drop)
    assert not await directories.exists(ONE)
    assert not await directories.exists(TWO)


async def test_a_sweep_finishes_what_a_crash_interrupted(
    directories: Directories, tmp_path: Path
) -> None:
    for name in ("new-abc", "gone-abc"):
        path = await make(directories)
        path.rename(path.with_name(name))
    await directories.sweep(keep)
    assert list((tmp_path / "git").iterdir()) == []


async def test_one_that_cannot_be_read_does_not_keep_the_others(directories: Directories) -> None:
    one, two = await make(directories), await make(directories, TWO)
    (one / "description").unlink()
    with pytest.raises(StorageError):
        await directories.sweep(drop)
    assert (one.exists(), two.exists()) == (True, False)


async def test_the_size_is_that_of_everything_inside(directories: Directories) -> None:
    path = await make(directories)
    before = await directories.size_bytes(ONE)
    (path / "objects/pack/x").write_bytes(bytes(1000))
    assert await directories.size_bytes(ONE) == before + 1000
    assert await directories.size_bytes(TWO) == 0


async def test_without_any_there_is_nothing_to_sweep(directories: Directories) -> None:
    await directories.sweep(drop)
