"""Makes options of settings: each row of the table that has an option becomes one."""

import os
from collections.abc import Callable, Container, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from podstead.cli.output import echo
from podstead.config import Settings, read_settings, unknown_variables
from podstead.config.settings import settings_table
from podstead.config.table import Row, Sources, groups_of

C = TypeVar("C", bound=Callable[..., object])

_HELP_ALL = "podstead.help_all"
"""Where the context notes that the help is to list all options."""

OPTION_ROWS = tuple(row for row in settings_table() if Sources.OPTION in row.sources)


def settings_options(rows: Iterable[Row[Any]] = OPTION_ROWS) -> Callable[[C], C]:
    """Add the options of these settings to a command; :func:`settings_from` reads them."""

    def decorate(command: C) -> C:
        for row in reversed(tuple(rows)):
            command = _option(row)(command)
        return command

    return decorate


def options_named(*names: str) -> Callable[[C], C]:
    """Add the options of the settings with these names."""
    rows = {row.name: row for row in OPTION_ROWS}
    return settings_options([rows[name] for name in names])


root_options = options_named("root", "database", "bodies", "config")
"""The options of every command that works on a data root."""


def settings_from(options: dict[str, Any]) -> Settings:
    """The settings of this run, from options, environment and file. Warns of variables that are no
    settings."""
    for warning in unknown_variables(os.environ):
        echo(f"Warning: {warning}", err=True)
    return read_settings(options, os.environ, folder=Path.cwd())


def _option(row: Row[Any]) -> Callable[[C], C]:
    # The settings table parses the text, so that values from all sources are treated alike.
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
    """A command whose help lists options under the groups of the settings table.

    ``--help`` lists only the settings named in ``common``, and ``--help-all`` lists all of them.
    """

    def __init__(self, *args: Any, common: Container[str], **attributes: Any) -> None:  # noqa: ANN401 - as click has it
        super().__init__(*args, **attributes)
        self._common = common
        self.params.append(
            click.Option(
                ["--help-all"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_print_all_help,
                help="Describe all options and exit.",
            )
        )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = {row.field: row for row in OPTION_ROWS}
        entries: dict[str | None, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            row = rows.get(parameter.name or "")
            if record is None or not (row is None or self._is_listed(row, ctx)):
                continue
            entries.setdefault(row.group if row else None, []).append(record)
        for group in (*groups_of(OPTION_ROWS), None):
            if group in entries:
                with formatter.section(group or "Other options"):
                    formatter.write_dl(entries[group])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if not ctx.meta.get(_HELP_ALL):
            formatter.write_paragraph()
            formatter.write_text(
                f"These are the most common options. '{ctx.command_path} --help-all' describes all "
                "of them."
            )

    def _is_listed(self, row: Row[Any], ctx: click.Context) -> bool:
        return bool(ctx.meta.get(_HELP_ALL)) or row.common or row.name in self._common


def _print_all_help(ctx: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001 - as click calls it
    if value and not ctx.resilient_parsing:
        ctx.meta[_HELP_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()
