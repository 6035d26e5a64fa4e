"""Prepares the data root for workers: locks it, migrates it, and creates its keys.

A root of which a part is missing is refused. Without their records, its bodies, keys and
repositories belong to nobody, and those who came first could take the names and WebIDs of others.
Nodes that share a database share folders, too: the first one writes a random mark into each and
records it in the database, and a node that finds another folder there does not start.
"""

import asyncio
import logging
import os
import secrets
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Final, TypeVar

from podstead.app.adapters import engine, system
from podstead.app.adapters import keys as stored_keys
from podstead.config import Settings
from podstead.core.errors import RootInUse, RootUnusable, StorageError
from podstead.features import features, folders
from podstead.storage.blobs.s3_location import S3Location
from podstead.storage.disk_space import DiskSpace
from podstead.storage.files import sync_directory, why_not_usable, write_private
from podstead.storage.keys import DamagedKey, KeyFiles, KeyStorage
from podstead.storage.layout import RootLayout
from podstead.storage.pods import each_pod
from podstead.storage.root import lock_root
from podstead.storage.sqlite import faults_at_a_glance
from podstead.storage.tables import BODIES_MARK, COPYING_FACT, folder_mark

T = TypeVar("T")

RETRY_TIMEOUT_S = 1.0
_RETRY_S = 0.02


def retry_while_busy(attempt: Callable[[], T], *, is_busy: Callable[[Exception], bool]) -> T:
    """The result of ``attempt``. While it raises an exception that ``is_busy``, it is tried again
    for :data:`RETRY_TIMEOUT_S` seconds; then that exception is raised, and any other
    immediately."""
    give_up_s = time.monotonic() + RETRY_TIMEOUT_S
    while True:
        try:
            return attempt()
        except Exception as error:
            if not is_busy(error) or time.monotonic() > give_up_s:
                raise
        time.sleep(_RETRY_S)


_SHARED_FOLDER_FILE: Final = "shared-folder"
_MARK_BYTES: Final = 16
_PRIVATE: Final = 0o700


def claim_shared_folder(
    folder: Path, fact: str, facts: engine.PersistentFacts, *, advice: str
) -> None:
    """Mark a folder at the first start, and refuse any other one later. Called by one node at a
    time. Raises RootUnusable with the advice, StorageError."""
    file, noted = folder / _SHARED_FOLDER_FILE, facts.read_fact(fact)
    try:
        found = file.read_text("ascii") if file.exists() else None
        if noted is None:
            if found is None:
                found = secrets.token_hex(_MARK_BYTES)
                folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
                write_private(file, found.encode("ascii"))
                sync_directory(folder)
            facts.write_fact(fact, found)
            return
    except OSError as error:
        raise StorageError(f"The folder {folder} cannot be used: {error.strerror}") from error
    if found != noted:
        raise RootUnusable(
            f"The servers with this database share another folder than {folder}. {advice}"
        )


def refuse_lost_database(settings: Settings) -> None:
    """Refuse data whose SQLite database is missing or empty, before there is another one. Raises
    RootUnusable, StorageError."""
    database = RootLayout(settings.root).database
    if settings.database is None and not (database.exists() and database.stat().st_size):
        refuse_data_without_records(settings)


def refuse_data_without_records(settings: Settings) -> None:
    """Refuse bodies, keys and folders of features that no records are about. Raises RootUnusable,
    StorageError."""
    layout = engine.layout_of(settings)
    left = []
    if isinstance(settings.bodies, S3Location):
        if _run_in_child(_has_objects, settings.bodies):
            left.append(f"large bodies at {settings.bodies.url}")
    elif _has_files(layout.blobs):
        left.append(f"large bodies in {layout.blobs}")
    if _has_files(layout.keys):
        left.append(f"keys in {layout.keys}")
    found = {each.contents: layout.root / each.name for each in folders()}
    left += [f"{name} in {folder}" for name, folder in found.items() if _has_files(folder)]
    if not left:
        return
    place = layout.database if settings.database is None else "the PostgreSQL database"
    raise RootUnusable(
        f"There are {' and '.join(left)}, but {place} has no records of them. Restore a backup, or "
        "correct --root, --database and --bodies. With --accept-loss, the server starts empty."
    )


def refuse_lost_keys(settings: Settings, keys: KeyStorage, *, was_provider: bool) -> None:
    """Refuse to go on without the keys that have signed tokens. Raises RootUnusable,
    StorageError."""
    missing = []
    # One that was renamed for a rotation is not lost.
    if not settings.token_keys and not any(
        map(keys.read, (stored_keys.TOKEN_KEY, stored_keys.PREVIOUS_TOKEN_KEY))
    ):
        missing.append(keys.where(stored_keys.TOKEN_KEY))
    if was_provider and not keys.read_folder(stored_keys.PROVIDER):
        missing.append(keys.where(stored_keys.PROVIDER))
    if missing and _run_in_child(_has_pods, settings):
        raise RootUnusable(
            f"Keys are missing: {' and '.join(missing)}. Restore them from a backup. With "
            "--accept-loss, the server creates new keys, and all tokens that the lost ones signed "
            "end."
        )


def _run_in_child(look: Callable[[T], Coroutine[None, None, bool]], at: T) -> bool:
    """Run it in a process of its own: the S3 client has threads, which workers that this process
    forks later would miss."""
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as children:
        return children.submit(_run, look, at).result()


def _run(look: Callable[[T], Coroutine[None, None, bool]], at: T) -> bool:
    return asyncio.run(look(at))


def _has_files(folder: Path) -> bool:
    return any(set(names) - {_SHARED_FOLDER_FILE} for _, _, names in os.walk(folder))


async def _has_objects(location: S3Location) -> bool:
    from podstead.storage.blobs.s3 import Objects

    async for page in Objects(location).pages(""):
        if page:
            return True
    return False


async def _has_pods(settings: Settings) -> bool:
    store = engine.new_store(settings)
    await store.open()
    try:
        async for _ in each_pod(store):
            return True
        return False
    finally:
        await store.close()


logger = logging.getLogger("podstead.app")

BASE_URL_FACT = "base-url"
_ISSUER = "issuer"
_FORMER_BASE_URLS = "former-base-urls"
_MOVING_TO = "moving-to-base-url"


@contextmanager
def prepared_root(settings: Settings, *, accept_loss: bool = False) -> Iterator[None]:
    """Hold the data root while the server runs. Raises RootUnusable, StorageError.

    With ``accept_loss``, it may lack what it had once (:mod:`podstead.app.adapters.root`).

    The root is locked before it is migrated: a newer server must not change the schema under a
    running one.
    """
    root = settings.root
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        reason = why_not_usable(root) or error.strerror
        if isinstance(error, FileExistsError):
            reason = "it is not a folder"
        raise RootUnusable(
            f"Cannot create the data root {root}: {reason}. Choose another one with --root."
        ) from error
    with retry_while_busy(
        lambda: lock_root(root, shared=settings.database is not None),
        is_busy=lambda error: isinstance(error, RootInUse),
    ):
        space = DiskSpace(root, min_free_bytes=settings.min_free_bytes)
        space.release_if_low()
        if not accept_loss:
            refuse_lost_database(settings)
        with engine.prepared_engine(settings, space) as layout:
            _prepare_records(settings, layout, accept_loss=accept_loss)
        space.restore()
        _look_at_database(settings)
        try:
            yield
        finally:
            # The database has freed the space of its log.
            space.restore(even_if_low=True)


def _look_at_database(settings: Settings) -> None:
    """Log damage that shows at a glance. The server runs nevertheless: most may be whole."""
    if settings.database is not None:
        return  # PostgreSQL says so itself
    database = RootLayout(settings.root).database
    for fault in faults_at_a_glance(database):
        logger.error(
            "database-damaged: %s: %s. Run 'podstead check', keep a copy of the data root, and "
            "restore a backup.",
            database,
            fault,
        )


def _prepare_records(settings: Settings, layout: RootLayout, *, accept_loss: bool) -> None:
    """Give the records what they need besides a schema. Raises RootUnusable, StorageError."""
    refuse_unfinished_copy(settings)
    is_new = remembered_base_url(settings) is None
    if is_new and not accept_loss:
        refuse_data_without_records(settings)
    engine.claim_bodies(settings, engine.stored_facts(settings), is_new=is_new)
    _claim_base_url(settings)
    if settings.database is not None:
        _claim_shared_folders(settings)
    for feature in features():
        feature.prepare_root(settings, is_new=is_new)
    keys = engine.key_storage(settings)
    if keys.is_remote:
        stored_keys.adopt_keys(keys, KeyFiles(layout.keys))
    if not is_new and not accept_loss:
        was_provider = settings.idp and remembered_provider(settings) is not None
        refuse_lost_keys(settings, keys, was_provider=was_provider)
    try:
        _prepare_keys(settings, keys)
    except DamagedKey as error:
        raise RootUnusable(f"{error}. Restore it from a backup.") from error


def _prepare_keys(settings: Settings, keys: KeyStorage) -> None:
    """Create the keys that are missing. Raises RootUnusable, StorageError."""
    if not settings.token_keys:
        stored_keys.ensure_token_key(keys)
        stored_keys.load_token_keys(keys)
    if settings.idp:
        from podstead.app.adapters.provider_keys import KeyFolder  # loads cryptography

        provider_keys = KeyFolder(keys, system.SystemClock())
        _claim_issuer(settings, was_provider=provider_keys.exists())
        provider_keys.maintain()


def _claim_shared_folders(settings: Settings) -> None:
    """Refuse folders that are not those of the other nodes. Raises RootUnusable, StorageError."""
    facts, layout = engine.stored_facts(settings), engine.layout_of(settings)
    if not isinstance(settings.bodies, S3Location):
        claim_shared_folder(
            layout.blobs,
            BODIES_MARK,
            facts,
            advice="Large bodies are in a folder that all of them have: mount it there, or set "
            "--bodies to it. Without a folder in common, keep them in S3 from the first start on.",
        )
    for each in folders():
        if each.is_used(settings):
            folder = layout.root / each.name
            claim_shared_folder(folder, folder_mark(each.name), facts, advice=each.advice)


def refuse_unfinished_copy(settings: Settings) -> None:
    """Raises RootUnusable while 'podstead copy' has not finished, StorageError."""
    if engine.stored_facts(settings).read_fact(COPYING_FACT) is not None:
        raise RootUnusable(
            "These records are an unfinished copy. Run the same 'podstead copy' again to finish it."
        )


def remembered_base_url(settings: Settings) -> str | None:
    """The base URL of a data root; ``None`` before the first start. Raises StorageError."""
    return engine.stored_facts(settings).read_fact(BASE_URL_FACT)


def former_base_urls(settings: Settings) -> tuple[str, ...]:
    """What the base URL was before it was changed, the newest first. Raises StorageError."""
    stored = engine.stored_facts(settings).read_fact(_FORMER_BASE_URLS)
    return tuple(stored.split()) if stored else ()


def unfinished_move(settings: Settings) -> str | None:
    """The base URL to which a data root is being moved, if that was interrupted. Raises
    StorageError."""
    return engine.stored_facts(settings).read_fact(_MOVING_TO) or None


def begin_move(settings: Settings, base_url: str) -> None:
    """Note that a data root is being moved: it cannot be served until that is finished. Raises
    StorageError."""
    engine.stored_facts(settings).write_fact(_MOVING_TO, base_url)


def finish_move(settings: Settings, base_url: str) -> None:
    """Note that a data root has another base URL. Each step may be repeated. Raises
    StorageError."""
    facts = engine.stored_facts(settings)
    before = facts.read_fact(BASE_URL_FACT)
    former = [before, *former_base_urls(settings)]
    stored = dict.fromkeys(url for url in former if url and url != base_url)
    facts.write_fact(_FORMER_BASE_URLS, " ".join(stored))
    if before is not None and facts.read_fact(_ISSUER) == before:
        facts.write_fact(_ISSUER, base_url)
    facts.write_fact(BASE_URL_FACT, base_url)
    facts.write_fact(_MOVING_TO, "")


def remembered_issuer(settings: Settings) -> str | None:
    """The issuer that the accounts of a data root belong to; ``None`` before the first start.
    Raises StorageError."""
    facts = engine.stored_facts(settings)
    return facts.read_fact(_ISSUER) or facts.read_fact(BASE_URL_FACT)


def remembered_provider(settings: Settings) -> str | None:
    """The issuer of the provider that this data root was served with; ``None`` without one. Raises
    StorageError."""
    return engine.stored_facts(settings).read_fact(_ISSUER)


def store_issuer(settings: Settings, issuer: str) -> None:
    """Move the accounts to a provider with another issuer at the next start. Raises
    StorageError."""
    engine.stored_facts(settings).write_fact(_ISSUER, issuer)


def _claim_base_url(settings: Settings) -> None:
    """Store the base URL at the first start, and refuse another one at every later start.

    The URLs of all stored resources begin with it (decision 0003). Raises RootUnusable,
    StorageError.
    """
    _check_base_url(settings)
    if remembered_base_url(settings) is None:
        engine.stored_facts(settings).write_fact(BASE_URL_FACT, settings.base_url)


def _check_base_url(settings: Settings) -> None:
    if unfinished := unfinished_move(settings):
        raise RootUnusable(
            f"The data root {settings.root} is being moved to {unfinished}, and that was "
            f"interrupted. Finish it with 'podstead move-base {unfinished}'."
        )
    base_url, remembered = settings.base_url, remembered_base_url(settings)
    if remembered not in {None, base_url}:
        raise RootUnusable(
            f"The data root {settings.root} belongs to {remembered}: the URL of everything in it "
            f"begins with that. Start with --base-url {remembered}, choose another --root for "
            f"{base_url}, or move everything there with 'podstead move-base {base_url}'."
        )


def _claim_issuer(settings: Settings, *, was_provider: bool) -> None:
    """Store the issuer at the first start with a provider, and refuse another one later, because no
    profile would name it (docs/evidence/decisions/0017). Raises RootUnusable, StorageError.

    Earlier versions did not store it; for them it was the base URL.
    """
    facts = engine.stored_facts(settings)
    remembered = facts.read_fact(_ISSUER) or (settings.base_url if was_provider else None)
    if remembered is None or remembered == settings.issuer:
        facts.write_fact(_ISSUER, settings.issuer)
        return
    same = (
        "without --idp-base-url"
        if remembered == settings.base_url
        else f"with --idp-base-url {remembered}"
    )
    raise RootUnusable(
        f"The accounts of the data root {settings.root} belong to the identity provider "
        f"{remembered}, which their profiles name. Start {same}, or first move them to "
        f"{settings.issuer} with 'podstead account change-issuer {settings.issuer}'."
    )
