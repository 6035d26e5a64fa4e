"""The provider's keys: one private JWK each, in the folder ``provider`` of the stored keys (A-43).

No URL leads to them. Workers read them again every minute, and immediately for a key that they do
not know.
"""

import asyncio
import json
from collections.abc import Sequence
from typing import Final

from podstead.app.adapters.audit import LogAudit
from podstead.app.adapters.keys import PROVIDER
from podstead.core.clock import Clock
from podstead.idp.audit import Audit, AuditEvent
from podstead.idp.keys import ALGORITHMS, ProviderKey, ProviderKeySet, next_key
from podstead.jose.tokens import InvalidJose, SigningKeyPair
from podstead.storage.keys import DamagedKey, KeyStorage

LOOK_AGAIN_MS: Final = 60_000

UNKNOWN_KEY_MS: Final = 1000
"""Keys in a database are read again at most this often for keys that are not known, since strangers
name what they like."""


class KeyFolder:
    """Implements ProviderKeys on stored keys."""

    def __init__(self, keys: KeyStorage, clock: Clock, audit: Audit | None = None) -> None:
        """Changes are logged unless there is another ``audit``."""
        self._keys = keys
        self._clock = clock
        self._audit = audit or LogAudit()
        self._read: Sequence[ProviderKey] = ()
        self._read_ms: int | None = None
        self._mark: object = None
        self._times_read = 0
        self._looking: asyncio.Task[None] | None = None

    async def current(self, *, look_again: bool = False) -> ProviderKeySet:
        """All current keys. Raises StorageError."""
        now_ms = self._clock.now_ms()
        if self._keys.is_remote:
            if self._is_due(now_ms, UNKNOWN_KEY_MS if look_again else LOOK_AGAIN_MS):
                await asyncio.shield(self._look_in_thread(now_ms))
        elif look_again or self._is_due(now_ms):
            self._look(now_ms)
        return ProviderKeySet(self._read, now_ms // 1000)

    def data_version(self) -> int | None:
        """A number that changes when the keys have changed and :meth:`current` would return others;
        ``None`` if they have to be read first, which has begun then
        (:class:`podstead.web.response_cache.StateMark`). Raises StorageError."""
        now_ms = self._clock.now_ms()
        if self._is_due(now_ms):
            if self._keys.is_remote:
                self._look_in_thread(now_ms).add_done_callback(_retrieve)
                return None
            self._look(now_ms)
        return self._times_read

    def maintain(self) -> None:
        """Create keys that are missing or due, and remove expired ones. Raises StorageError."""
        with self._keys.locked():
            now_s = self._clock.now_ms() // 1000
            roster = ProviderKeySet(self._read_all(), now_s)
            for algorithm in ALGORITHMS:
                if roster.wants_new(algorithm):
                    first = not any(key.pair.algorithm == algorithm for key in roster.keys)
                    key = next_key(algorithm, now_s=now_s, first=first)
                    self._add(key)
                    if not first:  # the first keys are part of the creation of the root
                        self._note(AuditEvent.KEY_MADE, key)
            for key in roster.outlived():
                self._remove(key)
        self._read_ms = self._mark = None

    def exists(self) -> bool:
        """Whether keys have ever been created. Raises StorageError."""
        return self._keys.has_folder(PROVIDER)

    def roster(self) -> ProviderKeySet:
        """All current keys, read now. Raises StorageError."""
        now_ms = self._clock.now_ms()
        self._mark = None
        self._look(now_ms)
        return ProviderKeySet(self._read, now_ms // 1000)

    def rotate(self) -> None:
        """Create new keys, which sign after a day. Raises StorageError."""
        with self._keys.locked():
            self._make_all(at_once=False)

    def replace_all(self) -> None:
        """Create new keys that sign immediately, and remove all others. Raises StorageError."""
        with self._keys.locked():
            before = self.roster().keys
            self._make_all(at_once=True)
            for key in before:
                self._remove(key)

    def _make_all(self, *, at_once: bool) -> None:
        now_s = self._clock.now_ms() // 1000
        for algorithm in ALGORITHMS:
            key = next_key(algorithm, now_s=now_s, first=at_once)
            self._add(key)
            self._note(AuditEvent.KEY_MADE, key)
        self._read_ms = self._mark = None

    def _is_due(self, now_ms: int, period_ms: int = LOOK_AGAIN_MS) -> bool:
        return self._read_ms is None or not 0 <= now_ms - self._read_ms < period_ms

    def _look(self, now_ms: int) -> None:
        mark = self._keys.mark(PROVIDER)
        if mark != self._mark:
            self._read = self._read_all()
            self._mark = mark
            self._times_read += 1
        self._read_ms = now_ms

    def _look_in_thread(self, now_ms: int) -> asyncio.Task[None]:
        """All who want to know at the same time wait for one look."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(asyncio.to_thread(self._look, now_ms))
        return self._looking

    def _read_all(self) -> Sequence[ProviderKey]:
        if not self._keys.has_folder(PROVIDER):
            return ()
        found = self._keys.read_folder(PROVIDER)
        return [decode_key(content, self._keys.where(name)) for name, content in found.items()]

    def _add(self, key: ProviderKey) -> None:
        content = json.dumps(
            {
                "key": json.loads(key.pair.dump()),
                "made_s": key.made_s,
                "signs_from_s": key.signs_from_s,
            }
        )
        self._keys.add(_name_of(key), content.encode())

    def _remove(self, key: ProviderKey) -> None:
        if self._keys.remove(_name_of(key)):  # otherwise another worker has
            self._note(AuditEvent.KEY_REMOVED, key)

    def _note(self, event: AuditEvent, key: ProviderKey) -> None:
        """Ids of keys are public; every token contains one."""
        self._audit.note(event, key_id=key.pair.key_id, algorithm=key.pair.algorithm)


def _retrieve(looking: asyncio.Task[None]) -> None:
    """Whoever asks next looks again, and is told if that fails."""
    if not looking.cancelled():
        looking.exception()


def decode_key(content: bytes, name: str) -> ProviderKey:
    """The key in a file of that name. Raises DamagedKey."""
    try:
        stored = json.loads(content)
        pair = SigningKeyPair.load(json.dumps(stored["key"]).encode())
        return ProviderKey(pair, int(stored["made_s"]), int(stored["signs_from_s"]))
    except (ValueError, LookupError, TypeError, InvalidJose) as error:
        raise DamagedKey(f"The key {name} is damaged") from error


def _name_of(key: ProviderKey) -> str:
    return f"{PROVIDER}/{key.pair.key_id}.json"
