"""When is the data root ready for workers? Once it is ours alone, up to date, and has a key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from podstead.app.keys import ensure_token_key
from podstead.app.patience import patiently
from podstead.config import Settings
from podstead.core.errors import RootInUse, RootUnusable
from podstead.storage.root import lock_root, prepare_root


@contextmanager
def prepared_root(settings: Settings) -> Iterator[None]:
    """Hold the data root while the server runs. Raises RootUnusable, StorageError.

    It is locked before it is migrated: a newer server must not change the schema under one that
    runs.
    """
    root = settings.root
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise RootUnusable(f"The data root {root} cannot be made: {error.strerror}.") from error
    with patiently(lambda: lock_root(root), is_busy=lambda error: isinstance(error, RootInUse)):
        layout = prepare_root(root)
        if not settings.token_keys:
            ensure_token_key(layout.keys)
        yield
