"""The columns of the settings table, and the names that follow from a row."""

import dataclasses
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from enum import Flag, StrEnum, auto
from typing import Any, Generic, TypedDict, TypeVar, Unpack, cast

from podstead.config.value_types import ValueType

T = TypeVar("T")

VARIABLE_PREFIX = "PODSTEAD_"
_METADATA_KEY = "row"


class Group(StrEnum):
    """The sections of the reference page and of the help text, in order."""

    SERVER = "Server"
    STORAGE = "Storage"
    TOKENS = "Simple tokens"
    IDENTITY = "Identity providers"
    TRUST = "Trust"
    LIMITS = "Limits"
    NOTIFICATIONS = "Notifications"
    TIMES = "Time-outs"
    RATES = "Rate limits"


class Sources(Flag):
    """Where a setting may be set."""

    OPTION = auto()
    VARIABLE = auto()
    FILE = auto()
    ALL = OPTION | VARIABLE | FILE


@dataclass(frozen=True, slots=True)
class Row(Generic[T]):
    """One setting, as operators see it."""

    kind: ValueType[T]
    group: str
    """Its section: a :class:`Group`, or one of a feature's own."""
    meaning: str
    """What it does, in full sentences."""
    _: KW_ONLY
    name: str = ""
    """The TOML key, from which the option and the variable are derived; by default the name of the
    field, with hyphens."""
    reason: str = ""
    """The reason for the default; empty where the meaning says it."""
    unit: str = ""
    """The unit of a number."""
    shown_default: str = ""
    """The default in words, where its value does not explain it."""
    sources: Sources = Sources.ALL
    repeated: bool = False
    """Whether the setting takes any number of values; the field is then a tuple."""
    secret: bool = False
    """Whether messages must not repeat the value."""
    common: bool = False
    """Whether ``--help`` lists it, because most operators need it."""
    live: bool = False
    """Whether operators can change it while the server runs. Whatever uses it then asks for the
    settings in effect (:mod:`podstead.app.live_settings`) each time."""
    field: str = ""
    """The field of the settings dataclass, filled in by :func:`rows_of`."""
    default: object = None
    """The default, filled in by :func:`rows_of`."""
    owner: type = object
    """The dataclass that has the field, filled in by :func:`rows_of`."""

    @property
    def option(self) -> str:
        """The option of ``podstead start``."""
        return f"--{self.name}"

    @property
    def variable(self) -> str:
        """The environment variable."""
        return VARIABLE_PREFIX + self.name.replace("-", "_").upper()

    @property
    def is_switch(self) -> bool:
        """Whether the option is a pair such as ``--quiet`` and ``--no-quiet``."""
        return self.kind.toml_type is bool

    @property
    def default_text(self) -> str:
        """The default, as an operator would write it, or in words."""
        if self.shown_default:
            return self.shown_default
        if self.default in (None, ()):
            return "none"
        return str(self.default).lower() if self.is_switch else str(self.default)


class Details(TypedDict, total=False):
    """The optional fields of a row; see :class:`Row`."""

    name: str
    reason: str
    unit: str
    shown_default: str
    sources: Sources
    secret: bool
    common: bool
    live: bool


def setting(
    default: T, kind: ValueType[T], group: str, meaning: str, **details: Unpack[Details]
) -> T:
    """A field of the settings dataclass, typed as its value, with its row as metadata."""
    row = Row(kind, group, meaning, **details)
    return dataclasses.field(default=default, metadata={_METADATA_KEY: row})


def optional(kind: ValueType[T], group: str, meaning: str, **details: Unpack[Details]) -> T | None:
    """A field that is ``None`` unless it is set."""
    row = Row(kind, group, meaning, **details)
    return cast("T | None", dataclasses.field(default=None, metadata={_METADATA_KEY: row}))


def several(
    kind: ValueType[T], group: str, meaning: str, **details: Unpack[Details]
) -> tuple[T, ...]:
    """A field that takes any number of values, none by default. Its name is mostly a plural, and
    that of the setting, ``name``, a singular."""
    row = Row(kind, group, meaning, repeated=True, **details)
    return cast("tuple[T, ...]", dataclasses.field(default=(), metadata={_METADATA_KEY: row}))


def rows_of(*owners: type) -> tuple[Row[Any], ...]:
    """The rows of all fields of these dataclasses, sorted by group and otherwise in order of
    definition. Raises ValueError if two have the same name."""
    rows = [
        dataclasses.replace(
            row,
            name=row.name or field.name.replace("_", "-"),
            field=field.name,
            default=field.default,
            owner=owner,
        )
        for owner in owners
        for field in dataclasses.fields(owner)
        if (row := field.metadata.get(_METADATA_KEY)) is not None
    ]
    names = [name for row in rows for name in {row.name, row.field}]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"There are two settings with these names: {', '.join(sorted(twice))}")
    groups = list(dict.fromkeys([*Group, *(row.group for row in rows)]))
    return tuple(sorted(rows, key=lambda row: groups.index(row.group)))


def groups_of(rows: Iterable[Row[Any]]) -> tuple[str, ...]:
    """The sections of rows, in their order."""
    return tuple(dict.fromkeys(row.group for row in rows))
