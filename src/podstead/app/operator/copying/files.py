"""Copies the other files of a data root, such as git repositories and the server's certificate."""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from podstead.app.operator.backup import OnStep
from podstead.storage.backup.copying import not_copied
from podstead.storage.backup.manifest import DATABASE
from podstead.storage.backup.sinks import copy_hashed
from podstead.storage.blobs.disk import sync_directory
from podstead.storage.copying.rows import CopyFailed
from podstead.storage.layout import RootLayout
from podstead.storage.private_files import make_private_directory

_HIDDEN: Final = ".copy-"


def copy_files(source: RootLayout, target: RootLayout, on_step: OnStep) -> None:
    """Copy them, and read them back. What is there already is replaced. Raises CopyFailed,
    OSError."""
    directories: set[Path] = set()
    for done, path in enumerate(_files(source), 1):
        on_step("Copying other files", done, 0)
        copy = target.root / path.relative_to(source.root)
        if path.is_dir():  # git needs some that are empty
            make_private_directory(copy)
        else:
            make_private_directory(copy.parent)
            _copy(path, copy)
        directories.add(copy.parent)
    for directory in directories:
        sync_directory(directory)


def _files(layout: RootLayout) -> Iterator[Path]:
    left_out = not_copied(layout) - {layout.git.name} | {layout.keys.name}
    for path in sorted(layout.root.iterdir()):
        if path.name in left_out or path.name.startswith(DATABASE):
            continue
        if path.is_dir():
            yield path
            yield from (each for each in sorted(path.rglob("*")) if each.is_dir() or each.is_file())
        elif path.is_file():
            yield path


def _copy(path: Path, copy: Path) -> None:
    draft = copy.with_name(f"{_HIDDEN}{secrets.token_hex(8)}")
    with path.open("rb", buffering=0) as file:
        status = os.fstat(file.fileno())
        mode = stat.S_IMODE(status.st_mode)
        try:
            sha256 = copy_hashed(file, draft, size_bytes=status.st_size, mode=mode)
        except EOFError as error:
            raise CopyFailed(f"{path} became shorter while it was copied.") from error
    with draft.open("rb", buffering=0) as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        draft.unlink()
        raise CopyFailed(f"The copy of {path} is another one.")
    draft.replace(copy)
