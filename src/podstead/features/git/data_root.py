"""What commands do with the repositories of a data root: back up, check and pack them."""

import os
import stat
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Final

from podstead.app.operator.backup import RunningBackup
from podstead.app.operator.checking.findings import CheckContext, Finding, FindingCode
from podstead.app.operator.data_root import OnStep
from podstead.core.errors import Overloaded, ServerTrouble, StorageError
from podstead.features import Compacted
from podstead.features.git.directories import FOLDER, Directories, DirectoryClaim, directories_of
from podstead.features.git.entries import KIND, RepositoryName, container_of, repository_name_in
from podstead.features.git.processes import GitProcesses, installed_git
from podstead.features.git.repositories import EMPTY, charge_repository
from podstead.storage.backup.sinks import Sink
from podstead.storage.layout import RootLayout
from podstead.storage.protocol import Store
from podstead.storage.records import Entry

_CLAIM_ATTEMPTS: Final = 60
"""Pruning a large repository takes minutes, and each attempt waits for ten seconds."""
_GC_LIMIT_S: Final = 3600
_FSCK_LIMIT_S: Final = 3600
_GRACE_S: Final = 60 * 60
_SUFFIX: Final = ".git"
_OBJECTS: Final = "objects"
_REFS: Final = "refs"
_PACKED_REFS: Final = "packed-refs"
_TEMPORARY_PREFIXES: Final = ("tmp_", ".tmp-")
_TEMPORARY_SUFFIXES: Final = (".lock", ".keep")
_IMMUTABLE_SUFFIXES: Final = (".pack", ".idx", ".rev", ".bitmap")
_HEXADECIMAL: Final = frozenset("0123456789abcdef")


class RepositoryCode(FindingCode):
    """The codes of findings about repositories."""

    MISSING = (
        "repository-missing",
        ("Restore it from a backup; --repair removes the record, so that a push can begin anew"),
    )
    DAMAGED = (
        "repository-damaged",
        ("Restore it from a backup, or have somebody push a clone; --repair sets it aside"),
    )
    ORPHANED = ("repository-orphaned", "It only takes space; --repair sets it aside")


# --- Backups --------------------------------------------------------------------------------------


async def back_up_repositories(backup: RunningBackup) -> int:
    """Copy the repositories that the records name; their number.

    References are read before objects. Whatever a reference names was stored before the reference
    was changed, and objects are immutable files; so all objects that the copied references reach
    are among those listed afterwards. Packing can replace files while they are copied, so the
    objects are listed again until a listing has nothing new. A shared claim keeps objects from
    being pruned.
    """
    entries = list(backup.records.entries(KIND))
    with closing(directories_of(backup.layout)) as directories:
        for number, entry in enumerate(entries, 1):
            backup.on_step("Copying repositories", number, len(entries))
            await _back_up(backup, directories, entry)
    return len(entries)


async def _back_up(backup: RunningBackup, directories: Directories, entry: Entry) -> None:
    name = repository_name_in(entry)
    if not await directories.exists(name):
        backup.faults.append(f"The git repository of {container_of(entry)} is missing")
        return
    with await _claim(directories, name):
        place = directories.path(name)
        for each in _repository_files(place):
            _back_up_file(backup.sink, f"{FOLDER}/{place.name}", each)


def _back_up_file(sink: Sink, place: str, each: "_RepositoryFile") -> None:
    name = place if each.name == "." else f"{place}/{each.name}"
    if each.is_directory:
        sink.add_directory(name)
        return
    try:
        with each.path.open("rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            mode = stat.S_IMODE(status.st_mode)
            if each.is_immutable:
                sink.add(name, file, size_bytes=status.st_size, mode=mode, is_immutable=True)
            else:  # small, and git may be writing it
                content = file.read()
                sink.add(name, BytesIO(content), size_bytes=len(content), mode=mode)
    except FileNotFoundError:
        return  # packed since it was listed: see _repository_files


async def _claim(directories: Directories, name: RepositoryName) -> DirectoryClaim:
    for _ in range(_CLAIM_ATTEMPTS - 1):
        with suppress(Overloaded):
            return await directories.claim(name)
    return await directories.claim(name)


@dataclass(frozen=True, slots=True)
class _RepositoryFile:
    """A file, or a directory, which may be empty. ``name`` is its path in the repository.

    A file that ``is_immutable`` has the same content wherever the name occurs in this repository.
    """

    name: str
    path: Path
    is_directory: bool = False
    is_immutable: bool = False


def _repository_files(repository: Path) -> Iterator[_RepositoryFile]:
    """Everything to be copied, in this order and while the iteration goes on.

    A file may be gone by the time it is opened: if its content is needed, another file follows.
    Raises OSError.
    """
    # Loose references first: packing writes packed-refs before it removes them.
    yield from _below(repository, repository / _REFS)
    top = sorted(path for path in repository.iterdir() if path.name not in (_OBJECTS, _REFS))
    for path in sorted(top, key=lambda path: path.name != _PACKED_REFS):
        if path.is_dir():
            yield from _below(repository, path)
        elif not _is_temporary(path.name):
            yield _RepositoryFile(path.name, path)
    yield from _objects(repository)


def _objects(repository: Path) -> Iterator[_RepositoryFile]:
    seen: set[str] = set()
    while True:
        new = [each for each in _below(repository, repository / _OBJECTS) if each.name not in seen]
        if not new:
            return
        for each in new:
            seen.add(each.name)
            yield each


def _below(repository: Path, directory: Path) -> Iterator[_RepositoryFile]:
    for place, directories, names in os.walk(directory):
        directories.sort()
        here = Path(place)
        yield _RepositoryFile(str(here.relative_to(repository)), here, is_directory=True)
        for name in sorted(names):
            if not _is_temporary(name):
                path = here / name
                yield _RepositoryFile(
                    str(path.relative_to(repository)), path, is_immutable=_is_immutable(path)
                )


def _is_temporary(name: str) -> bool:
    return name.startswith(_TEMPORARY_PREFIXES) or name.endswith(_TEMPORARY_SUFFIXES)


def _is_immutable(path: Path) -> bool:
    """Whether the name determines the content: packs, and loose objects in directories such as
    ``3f``.

    A bitmap is written for a pack later, but never changed.
    """
    is_loose = len(path.parent.name) == 2 and _HEXADECIMAL.issuperset(path.parent.name)
    return is_loose or path.suffix in _IMMUTABLE_SUFFIXES


# --- Checks ---------------------------------------------------------------------------------------


async def check_repositories(check: CheckContext) -> AsyncIterator[Finding]:
    """Without git on this machine, or in a quick check, only whether they are there."""
    processes = None if check.is_quick else installed_git()
    named: dict[str, Entry] = {
        entry.value.decode("ascii"): entry for entry in check.records.entries(KIND)
    }
    with closing(directories_of(check.layout)) as directories:
        for number, (name, entry) in enumerate(named.items(), 1):
            check.on_step("Checking repositories", number, len(named))
            found = await _check(check, directories, processes, RepositoryName(name), entry)
            if found is not None:
                yield found
    for path in _orphans(check, set(named)):
        repair = partial(check.repairs.set_file_aside, path, RepositoryCode.ORPHANED)
        what = "No container has this repository"
        yield Finding(RepositoryCode.ORPHANED, str(path), what, repair)


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
        return Finding(RepositoryCode.MISSING, container, what, drop)
    if processes is None:
        return None
    path = directories.path(name)
    if await _is_whole(directories, processes, name):
        return None

    async def set_aside() -> bool:
        return await drop() and await check.repairs.set_file_aside(path, RepositoryCode.DAMAGED)

    what = f"git fsck reports errors in {path}"
    return Finding(RepositoryCode.DAMAGED, container, what, set_aside)


async def _is_whole(
    directories: Directories, processes: GitProcesses, name: RepositoryName
) -> bool:
    try:
        claim = await directories.claim(name)
    except Overloaded:
        return True  # it is being pruned, which reads all of it
    except StorageError:
        return False  # without its lock file, nobody can push either
    try:
        with claim:
            await processes.run_in(
                directories.path(name),
                *("fsck", "--full", "--no-dangling", "--no-progress"),
                holding=claim,
                time_limit_s=_FSCK_LIMIT_S,
            )
    except ServerTrouble:
        return False
    return True


def _orphans(check: CheckContext, named: set[str]) -> list[Path]:
    """Directories of repositories that no record names, also not by now."""
    place = check.layout.root / FOLDER
    if not place.is_dir():
        return []
    before_s = time.time() - _GRACE_S
    suspects = [
        path
        for path in sorted(place.iterdir())
        if path.name.endswith(_SUFFIX)
        and path.stem not in {*named, EMPTY}
        and path.stat().st_mtime < before_s
    ]
    if not suspects:
        return []
    with check.look_again() as records:
        now = {entry.value.decode("ascii") for entry in records.entries(KIND)}
    return [path for path in suspects if path.stem not in now and path.exists()]


# --- Packing --------------------------------------------------------------------------------------


async def pack_repositories(layout: RootLayout, store: Store, on_step: OnStep) -> Compacted:
    """Pack each repository that nobody is using; how many were packed, and how many in use."""
    with closing(store.inspect()) as records:
        entries = list(records.entries(KIND))
    processes = installed_git()
    if processes is None:
        return Compacted()
    packed = busy = 0
    with closing(directories_of(layout)) as directories:
        for number, entry in enumerate(entries, 1):
            on_step("Packing repositories", number, len(entries))
            name = repository_name_in(entry)
            if not await directories.exists(name):
                continue
            if await _pack(directories, processes, name):
                packed += 1
            else:
                busy += 1
            container = container_of(entry)
            await charge_repository(store, directories, name, container)
    return Compacted(packed, busy)


async def _pack(directories: Directories, processes: GitProcesses, name: RepositoryName) -> bool:
    """False if somebody else uses the repository, or it is damaged."""
    claim = await directories.claim_exclusively(name)
    if claim is None:
        return False
    try:
        with claim:
            arguments = ("gc", "--prune=now", "--quiet")
            place = directories.path(name)
            await processes.run_in(place, *arguments, holding=claim, time_limit_s=_GC_LIMIT_S)
    except ServerTrouble:
        return False
    return True
