"""How do settings become options? Each row of the table that has one, in the table's words."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from podstead.config import Settings, read_settings
from podstead.config.settings import TABLE
from podstead.config.table import Group, Row, Sources

C = TypeVar("C", bound=Callable[..., object])

OPTION_ROWS = tuple(row for row in TABLE if Sources.OPTION in row.sources)


def settings_options(rows: Iterable[Row[Any]] = OPTION_ROWS) -> Callable[[C], C]:
    """Give a command the options of these settings; :func:`settings_from` reads them."""

    def decorate(command: C) -> C:
        for row in reversed(tuple(rows)):
            command = _option(row)(command)
        return command

    return decorate


def settings_from(options: dict[str, Any]) -> Settings:
    """The settings of this run, from options, environment and file. Raises StartRefused."""
    return read_settings(options, os.environ, folder=Path.cwd())


def _option(row: Row[Any]) -> Callable[[C], C]:
    # The text is read by the settings table, so that all sources are read and refused alike.
    if row.is_switch:
        return click.option(
            f"{row.option}/--no-{row.name}", row.field, default=None, help=_help(row)
        )
    return click.option(
        row.option,
        row.field,
        multiple=row.repeated,
        metavar=row.kind.metavar,
        help=_help(row),
    )


def _help(row: Row[Any]) -> str:
    if row.repeated:
        return f"{row.meaning} [repeatable]"
    if row.default is None:
        return row.meaning
    return f"{row.meaning} [default: {row.default_text}]"


class GroupedCommand(click.Command):
    """A command whose help lists options under the groups of the settings table."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups = {row.field: row.group for row in OPTION_ROWS}
        entries: dict[Group | None, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                entries.setdefault(groups.get(parameter.name or ""), []).append(record)
        for group in (*Group, None):
            if group in entries:
                with formatter.section(group.value if group else "Other options"):
                    formatter.write_dl(entries[group])
