"""Checks of keys and of what others on the machine may read, and of the disk."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from podstead.app.adapters.engine import key_storage
from podstead.app.adapters.keys import (
    PROVIDER,
    check_token_key,
    load_token_keys,
    read_all_keys,
)
from podstead.app.adapters.provider_keys import decode_key
from podstead.app.operator.checking.context import CheckContext
from podstead.app.operator.checking.findings import Code, Finding
from podstead.core.errors import DiskFull, StorageError
from podstead.idp.keys import ProviderKey
from podstead.storage.disk_space import DiskSpace
from podstead.storage.keys import KeyFiles

_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def check_private_files(check: CheckContext) -> Iterator[Finding]:
    """Are keys whole, and is everything for this account only?"""
    check.on_step("Checking keys", 0, 0)
    layout = check.layout
    provider = layout.keys / "provider"
    for path in sorted(provider.glob("*.json")) if provider.is_dir() else ():
        yield from _check_key(check, path, partial(_read_key, path))
    token_key = layout.keys / "token.key"
    if token_key.exists():
        yield from _check_key(check, token_key, lambda: load_token_keys(KeyFiles(layout.keys)))
    paths = [layout.root, layout.database, layout.blobs, layout.keys, *layout.keys.rglob("*")]
    for path in paths:
        if path.exists() and stat.S_IMODE(path.stat().st_mode) & _OTHERS:
            repair = partial(check.repairs.make_private, path)
            yield Finding(
                Code.MODE_OPEN, str(path), "Other accounts on this machine have access", repair
            )


def check_stored_keys(check: CheckContext) -> Iterator[Finding]:
    """Are the keys whole that are stored with the records?"""
    keys = key_storage(check.settings)
    if not keys.is_remote:
        return
    for name, content in read_all_keys(keys).items():
        is_of_provider = name.startswith(f"{PROVIDER}/")
        try:
            if is_of_provider:
                decode_key(content, keys.where(name))
            else:
                check_token_key(content, keys.where(name))
        except StorageError as error:
            repair = partial(check.repairs.set_key_aside, keys, name, content)
            yield Finding(Code.KEY_DAMAGED, name, str(error), repair)


def _read_key(path: Path) -> ProviderKey:
    return decode_key(path.read_bytes(), str(path))


def _check_key(check: CheckContext, path: Path, read: Callable[[], object]) -> Iterator[Finding]:
    try:
        read()
    except (StorageError, OSError) as error:
        repair = partial(check.repairs.set_file_aside, path, Code.KEY_DAMAGED)
        yield Finding(Code.KEY_DAMAGED, str(path), str(error), repair)


def check_free_space(check: CheckContext) -> Iterator[Finding]:
    """Is there space for new content?"""
    space = DiskSpace(check.layout.root, min_free_bytes=check.settings.min_free_bytes)
    try:
        space.check()
    except DiskFull:
        what = f"Only {space.free_bytes()} bytes are free"
        yield Finding(Code.DISK_LOW, str(check.layout.root), what)
