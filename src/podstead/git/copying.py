"""Copies a repository while others push to it.

References are read before objects. Whatever a reference names was stored before the reference was
changed, and objects are immutable files; so all objects that the copied references reach are among
those listed afterwards. Packing can replace files while they are copied, so the objects are listed
again until a listing has nothing new. A shared claim (``directories.py``) keeps objects from being
pruned.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_OBJECTS: Final = "objects"
_REFS: Final = "refs"
_PACKED_REFS: Final = "packed-refs"
_TEMPORARY_PREFIXES: Final = ("tmp_", ".tmp-")
_TEMPORARY_SUFFIXES: Final = (".lock", ".keep")
_IMMUTABLE_SUFFIXES: Final = (".pack", ".idx", ".rev", ".bitmap")
_HEXADECIMAL: Final = frozenset("0123456789abcdef")


@dataclass(frozen=True, slots=True)
class RepositoryFile:
    """A file, or a directory, which may be empty. ``name`` is its path in the repository.

    A file that ``is_immutable`` has the same content wherever the name occurs in this repository.
    """

    name: str
    path: Path
    is_directory: bool = False
    is_immutable: bool = False


def repository_files(repository: Path) -> Iterator[RepositoryFile]:
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
            yield RepositoryFile(path.name, path)
    yield from _objects(repository)


def _objects(repository: Path) -> Iterator[RepositoryFile]:
    seen: set[str] = set()
    while True:
        new = [each for each in _below(repository, repository / _OBJECTS) if each.name not in seen]
        if not new:
            return
        for each in new:
            seen.add(each.name)
            yield each


def _below(repository: Path, directory: Path) -> Iterator[RepositoryFile]:
    for place, directories, names in os.walk(directory):
        directories.sort()
        here = Path(place)
        yield RepositoryFile(str(here.relative_to(repository)), here, is_directory=True)
        for name in sorted(names):
            if not _is_temporary(name):
                path = here / name
                yield RepositoryFile(
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
