"""Which settings does the reference page list? All of the table, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from podstead.config.settings import TABLE
from podstead.config.table import Group, Row, Sources

_INTRODUCTION = """\
# Settings

<!-- Written by `make docs` from src/podstead/config/settings: change it there. -->

A setting is an option of `podstead start`, an environment variable, or a key of the TOML file that
`--config` names. An option wins over a variable, a variable over the file, the file over the
default. A setting that cannot be used stops the start with a sentence that says what to write
instead, and exit code 2; so does a key of the file that is no setting.

Where a setting may be given several times, repeat the option, separate the values in a variable by
commas or spaces, and write a list in the file. An empty variable counts as not given. A relative
path in the file starts from the folder of the file, any other from the current one.
"""


def settings_page() -> str:
    """The page ``docs/reference/settings.md``."""
    return "\n".join([_INTRODUCTION, *map(_section, Group)])


def _section(group: Group) -> str:
    rows = [row for row in TABLE if row.group is group]
    return "\n".join([f"## {group.value}", "", *_entries(rows)])


def _entries(rows: Sequence[Row[Any]]) -> Iterator[str]:
    for row in rows:
        yield f"### {row.name}"
        yield ""
        yield " ".join(filter(None, [row.meaning, row.reason]))
        yield ""
        yield f"- Default: {_default(row)}"
        yield f"- Given as: {', '.join(_spellings(row))}"
        yield ""


def _default(row: Row[Any]) -> str:
    if row.default in (None, ()) or row.shown_default:
        return row.default_text
    return f"`{row.default_text}`" + (f" ({row.unit})" if row.unit else "")


def _spellings(row: Row[Any]) -> Iterator[str]:
    several = " (repeatable)" if row.repeated else ""
    if Sources.OPTION in row.sources:
        value = "" if row.is_switch else f" {row.kind.metavar}"
        negation = f" or `--no-{row.name}`" if row.is_switch else ""
        yield f"`{row.option}{value}`{negation}{several}"
    if Sources.VARIABLE in row.sources:
        yield f"`{row.variable}`"
    if Sources.FILE in row.sources:
        yield f"`{row.name}` in the file"
