"""Where are the provider's keys stored? In ``<root>/keys/provider/``, one private JWK per file
(A-43).

Only the server's account can read the folder, and no URL leads to it. Workers read it again every
few minutes, and immediately for a key that they do not know.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from podstead.app.adapters.audit import LogAudit
from podstead.core.clock import Clock
from podstead.core.errors import StorageError
from podstead.idp.audit import Audit, AuditEvent
from podstead.idp.keys import ALGORITHMS, KeyRoster, ProviderKey, next_key
from podstead.jose.errors import InvalidJose
from podstead.jose.signing import SigningKeyPair
from podstead.storage.private_files import sync_directory, write_private

LOOK_AGAIN_MS: Final = 60_000
_SUFFIX: Final = ".json"


class KeyFolder:
    """Implements ProviderKeys on a folder."""

    def __init__(self, keys: Path, clock: Clock, audit: Audit | None = None) -> None:
        """``keys`` is the root's folder of signing keys. Changes are logged unless there is another
        ``audit``."""
        self._folder = keys / "provider"
        self._clock = clock
        self._audit = audit or LogAudit()
        self._read: Sequence[ProviderKey] = ()
        self._read_ms: int | None = None
        self._seen_ns: int | None = None
        self._times_read = 0

    async def current(self, *, look_again: bool = False) -> KeyRoster:
        """All current keys. Raises StorageError."""
        now_ms = self._clock.now_ms()
        if look_again or self._is_due(now_ms):
            self._look(now_ms)
        return KeyRoster(self._read, now_ms // 1000)

    def data_version(self) -> int:
        """A number that changes when the keys have changed and :meth:`current` would return others
        (:class:`podstead.web.response_cache.StateMark`). Raises StorageError."""
        now_ms = self._clock.now_ms()
        if self._is_due(now_ms):
            self._look(now_ms)
        return self._times_read

    def maintain(self) -> None:
        """Create keys that are missing or due, and remove expired ones. Raises StorageError.

        Several processes may call this at the same time: an additional key does no harm.
        """
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            now_s = self._clock.now_ms() // 1000
            roster = KeyRoster(read_folder(self._folder), now_s)
            for algorithm in ALGORITHMS:
                if roster.wants_new(algorithm):
                    first = not any(key.pair.algorithm == algorithm for key in roster.keys)
                    key = next_key(algorithm, now_s=now_s, first=first)
                    self._add(key)
                    if not first:  # the first keys are part of the creation of the root
                        self._note(AuditEvent.KEY_MADE, key)
            for key in roster.outlived():
                self._remove(key)
        except OSError as error:
            raise StorageError(f"The keys in {self._folder} could not be kept") from error
        self._read_ms = self._seen_ns = None

    def exists(self) -> bool:
        """Whether keys have ever been created."""
        return self._folder.is_dir()

    def roster(self) -> KeyRoster:
        """All current keys, read from the folder. Raises StorageError."""
        now_ms = self._clock.now_ms()
        self._seen_ns = None
        self._look(now_ms)
        return KeyRoster(self._read, now_ms // 1000)

    def rotate(self) -> None:
        """Create new keys, which sign after a day. Raises StorageError."""
        self._make_all(at_once=False)

    def replace_all(self) -> None:
        """Create new keys that sign immediately, and remove all others. Raises StorageError."""
        before = self.roster().keys
        self._make_all(at_once=True)
        try:
            for key in before:
                self._remove(key)
        except OSError as error:
            raise StorageError(f"A key in {self._folder} could not be removed") from error

    def _make_all(self, *, at_once: bool) -> None:
        now_s = self._clock.now_ms() // 1000
        try:
            for algorithm in ALGORITHMS:
                key = next_key(algorithm, now_s=now_s, first=at_once)
                self._add(key)
                self._note(AuditEvent.KEY_MADE, key)
        except OSError as error:
            raise StorageError(f"The keys in {self._folder} could not be kept") from error
        self._read_ms = self._seen_ns = None

    def _is_due(self, now_ms: int) -> bool:
        return self._read_ms is None or not 0 <= now_ms - self._read_ms < LOOK_AGAIN_MS

    def _look(self, now_ms: int) -> None:
        try:
            changed_ns = self._folder.stat().st_mtime_ns
            if changed_ns != self._seen_ns:
                self._read = read_folder(self._folder)
                self._seen_ns = changed_ns
                self._times_read += 1
        except OSError as error:
            raise StorageError(f"The keys in {self._folder} could not be read") from error
        self._read_ms = now_ms

    def _add(self, key: ProviderKey) -> None:
        content = json.dumps(
            {
                "key": json.loads(key.pair.dump()),
                "made_s": key.made_s,
                "signs_from_s": key.signs_from_s,
            }
        )
        draft = self._folder / f".{secrets.token_hex(8)}"
        write_private(draft, content.encode())
        draft.replace(self._path_of(key))
        sync_directory(self._folder)

    def _remove(self, key: ProviderKey) -> None:
        try:
            self._path_of(key).unlink()
        except FileNotFoundError:
            return  # another worker created it
        self._note(AuditEvent.KEY_REMOVED, key)

    def _note(self, event: AuditEvent, key: ProviderKey) -> None:
        """Ids of keys are public; every token contains one."""
        self._audit.note(event, key_id=key.pair.key_id, algorithm=key.pair.algorithm)

    def _path_of(self, key: ProviderKey) -> Path:
        return self._folder / f"{key.pair.key_id}{_SUFFIX}"


def read_folder(folder: Path) -> Sequence[ProviderKey]:
    """All keys in the folder. Raises StorageError, OSError."""
    keys = []
    for path in sorted(folder.glob(f"*{_SUFFIX}")):
        key = read_key(path)
        if key is not None:
            keys.append(key)
    return keys


def read_key(path: Path) -> ProviderKey | None:
    """The key in a file, if it exists. Raises StorageError, OSError."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None  # another worker has just removed it because it had expired
    try:
        kept = json.loads(content)
        pair = SigningKeyPair.load(json.dumps(kept["key"]).encode())
        return ProviderKey(pair, int(kept["made_s"]), int(kept["signs_from_s"]))
    except (ValueError, LookupError, TypeError, InvalidJose) as error:
        raise StorageError(f"The key {path} is damaged") from error
