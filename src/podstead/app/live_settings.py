"""The settings in effect: those of the operator's configuration, completed by stored values.

Some settings can be changed while the server runs (:attr:`podstead.config.table.Row.live`). What
operators change in the console or by command is stored as a record for each setting. It counts
where the configuration says nothing: an option, a variable or the file takes precedence, and the
console says so. Each worker of each node looks every two seconds whether anything has changed, and
has what it needs in memory, so requests read nothing for it.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from podstead.config import Settings
from podstead.config.settings import settings_table
from podstead.config.table import Row
from podstead.core.background import Background
from podstead.core.errors import BadRequest, Conflict, NotFound, StartRefused
from podstead.features import features
from podstead.idp.administration.audit_log import Actions, Operator
from podstead.idp.audit import Audit, AuditEvent
from podstead.storage.record_store import Changes, RecordKind, RecordStore

logger = logging.getLogger("podstead.app")

LOOK_S: Final = 2.0
"""How often a worker looks for changes."""
MAX_CHARACTERS: Final = 2000
_STARTED: Final = "last-start"


class StoredSetting(msgspec.Struct, frozen=True):
    """The value of a setting, as in a configuration file, and who stored it. The key is the name of
    the setting."""

    text: str
    at_ms: int
    by: str


class Configuration(msgspec.Struct, frozen=True):
    """Which of these settings the last server that started got from its configuration, each with
    what set it."""

    sources: dict[str, str]


STORED: Final = RecordKind("setting", StoredSetting)
CONFIGURATIONS: Final = RecordKind("configuration", Configuration)


def live_rows() -> Sequence[Row[Any]]:
    """The settings that can be changed while the server runs."""
    return [row for row in settings_table() if row.live]


def configured(settings: Settings) -> Mapping[str, str]:
    """Those of them that the configuration sets, each with what sets it."""
    set_by = dict(settings.set_by)
    return {row.name: set_by[row.field] for row in live_rows() if row.field in set_by}


async def read_stored(records: RecordStore) -> Mapping[str, StoredSetting]:
    """What operators have stored, by the names of the settings. Raises StorageError."""
    page = await STORED.page(records.store, now_ms=records.now_ms())
    return {each.key: each.value for each in page}


def completed(settings: Settings, stored: Mapping[str, StoredSetting]) -> Settings:
    """The settings in effect. What is stored and contradicts the configuration does not count."""
    sources = configured(settings)
    for row in live_rows():
        if row.name not in stored or row.name in sources:
            continue
        try:
            settings = _with(settings, row, stored[row.name].text)
        except BadRequest:
            logger.warning("The stored value of %s does not fit the configuration", row.name)
    return settings


def _with(settings: Settings, row: Row[Any], text: str) -> Settings:
    """Raises BadRequest for a value that cannot be."""
    try:
        changed = settings.with_values(**{row.field: row.kind.parse(text)})
        for feature in features():
            feature.check_settings(changed)
    except StartRefused as refused:
        raise BadRequest(str(refused)) from refused
    except ValueError:
        raise BadRequest(f"{row.name} {row.kind.expected}.") from None
    return changed


class LiveSettings:
    """The settings in effect, in one worker."""

    def __init__(self, given: Settings, records: RecordStore) -> None:
        self.given = given
        self.current = given
        self.stored: Mapping[str, StoredSetting] = {}
        self._records = records
        self._version = 0
        self._seen: int | None = None
        self._lock = asyncio.Lock()

    def data_version(self) -> int:
        """A number that is different after every change that this worker has seen."""
        return self._version

    def now(self) -> Settings:
        """The settings in effect, for those who are given this method."""
        return self.current

    async def start(self) -> None:
        """Read what is stored, and record the configuration for commands. Raises StorageError."""
        await self.look()
        sources = dict(configured(self.given))
        known = await self._records.read(CONFIGURATIONS, _STARTED)
        if ({} if known is None else known.value.sources) != sources:
            await self._records.try_commit([CONFIGURATIONS.put(_STARTED, Configuration(sources))])

    async def look(self) -> None:
        """See what has changed. Raises StorageError."""
        # Of two at once, one could put older settings back.
        async with self._lock:
            stored = await read_stored(self._records)
            if stored != self.stored:
                self.current = completed(self.given, stored)
                self.stored = stored
                self._version += 1

    async def _look_again(self) -> None:
        mark = self._records.store.data_version()
        if mark is None or mark != self._seen:
            await self.look()
            self._seen = mark

    def following(self) -> Background:
        """What looks at intervals. After an error, what is known stays in effect."""
        failed = "Changed settings could not be read"
        return Background(self._look_again, logger, failed, every_s=LOOK_S, again_s=LOOK_S)


class SettingChanges(Actions):
    """Changes settings for an operator. Every method raises Overloaded and StorageError."""

    def __init__(self, given: Settings, records: RecordStore, audit: Audit) -> None:
        super().__init__(records, audit)
        self._given = given

    async def sources(self) -> Mapping[str, str]:
        """What the configuration sets, each with what sets it; a command asks the last server."""
        known = await self._records.read(CONFIGURATIONS, _STARTED)
        of_server = {} if known is None else known.value.sources
        return {**of_server, **configured(self._given)}

    async def change(self, name: str, text: str | None, by: Operator | None = None) -> None:
        """Store a value, as in a configuration file; ``None`` for that of the default. Raises
        NotFound for a setting that cannot be changed while the server runs, Conflict for one that
        the configuration sets, and BadRequest for a value that cannot be."""
        row = next((each for each in live_rows() if each.name == name), None)
        if row is None:
            raise NotFound(f"There is no setting '{name}' that can be changed in a running server.")
        source = (await self.sources()).get(name)
        if source is not None:
            raise Conflict(f"{name} is set by {source}, which takes precedence. Change it there.")
        if text is not None:
            if len(text) > MAX_CHARACTERS:
                raise BadRequest(f"{name} is longer than {MAX_CHARACTERS} characters.")
            _with(completed(self._given, await read_stored(self._records)), row, text)
        event = AuditEvent.SETTING_CHANGED

        async def compute() -> Changes[dict[str, str]]:
            stored = await self._records.read(STORED, name)
            before = None if stored is None else stored.value.text
            if before == text:
                return Changes({})
            facts = {"setting": name}
            if not row.secret:
                facts |= {"from": _shown(row, before), "to": _shown(row, text)}
            value = StoredSetting(text or "", self._records.now_ms(), "" if by is None else by.name)
            record = STORED.drop(name) if text is None else STORED.put(name, value)
            unchanged = STORED.absent(name) if stored is None else stored.unchanged
            return Changes(facts, [record, *self._log.action(event, by, **facts)], [unchanged])

        facts = await self._records.transact(compute)
        if facts:
            self._note(event, by, **facts)


def _shown(row: Row[Any], text: str | None) -> str:
    return row.default_text if text is None else text
