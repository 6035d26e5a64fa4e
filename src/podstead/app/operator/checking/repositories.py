"""Checks of git repositories: that each belongs to a container, and is whole."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

from podstead.app.adapters.git_processes import GitProcesses, installed_git
from podstead.app.operator.checking.findings import CheckContext, Code, Finding
from podstead.core.errors import Overloaded, ServerTrouble, StorageError
from podstead.git.configuration import environment
from podstead.git.directories import Directories
from podstead.git.repositories import EMPTY
from podstead.storage.records import Entry
from podstead.storage.repositories import KIND, RepositoryName

_FSCK_LIMIT_S: Final = 3600
_GRACE_S: Final = 60 * 60
_SUFFIX: Final = ".git"


async def check_repositories(check: CheckContext) -> AsyncIterator[Finding]:
    """Without git on this machine, or in a quick check, only whether they are there."""
    processes = None if check.is_quick else installed_git()
    named: dict[str, Entry] = {
        entry.value.decode("ascii"): entry for entry in check.records.entries(KIND)
    }
    with closing(Directories(check.layout.git)) as directories:
        for number, (name, entry) in enumerate(named.items(), 1):
            check.on_step("Checking repositories", number, len(named))
            found = await _check(check, directories, processes, RepositoryName(name), entry)
            if found is not None:
                yield found
    for path in _orphans(check, set(named)):
        repair = partial(check.repairs.set_file_aside, path, Code.REPOSITORY_ORPHANED)
        what = "No container has this repository"
        yield Finding(Code.REPOSITORY_ORPHANED, str(path), what, repair)


async def _check(
    check: CheckContext,
    directories: Directories,
    processes: GitProcesses | None,
    name: RepositoryName,
    entry: Entry,
) -> Finding | None:
    container = entry.entry.removeprefix(f"{KIND}/")
    drop = partial(check.repairs.drop_entry, entry)
    if not await directories.exists(name):
        with check.look_again() as records:  # the container may have been deleted
            if entry.entry not in {each.entry for each in records.entries(KIND)}:
                return None
        what = f"The repository {directories.path(name)} is missing"
        return Finding(Code.REPOSITORY_MISSING, container, what, drop)
    if processes is None:
        return None
    path = directories.path(name)
    if await _is_whole(directories, processes, name):
        return None

    async def set_aside() -> bool:
        return await drop() and await check.repairs.set_file_aside(path, Code.REPOSITORY_DAMAGED)

    what = f"git fsck reports errors in {path}"
    return Finding(Code.REPOSITORY_DAMAGED, container, what, set_aside)


async def _is_whole(
    directories: Directories, processes: GitProcesses, name: RepositoryName
) -> bool:
    path = directories.path(name)
    try:
        claim = await directories.claim(name)
    except Overloaded:
        return True  # it is being pruned, which reads all of it
    except StorageError:
        return False  # without its lock file, nobody can push either
    try:
        await processes.run(
            f"--git-dir={path}",
            *("fsck", "--full", "--no-dangling", "--no-progress"),
            environment=environment(processes.search_path, repository=str(path)),
            holding=claim.descriptor,
            time_limit_s=_FSCK_LIMIT_S,
        )
    except ServerTrouble:
        return False
    finally:
        claim.release()
    return True


def _orphans(check: CheckContext, named: set[str]) -> list[Path]:
    """Directories of repositories that no record names, also not by now."""
    if not check.layout.git.is_dir():
        return []
    before_s = time.time() - _GRACE_S
    suspects = [
        path
        for path in sorted(check.layout.git.iterdir())
        if path.name.endswith(_SUFFIX)
        and path.stem not in {*named, EMPTY}
        and path.stat().st_mtime < before_s
    ]
    if not suspects:
        return []
    with check.look_again() as records:
        now = {entry.value.decode("ascii") for entry in records.entries(KIND)}
    return [path for path in suspects if path.stem not in now and path.exists()]
