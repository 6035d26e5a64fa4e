"""Which commands does the reference page list? All that the command line has, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import cleandoc

import click

from podstead.cli.commands import main
from podstead.cli.options import OPTION_ROWS

_INTRODUCTION = """\
# Commands

<!-- Written by `make docs` from src/podstead/cli: change it there. -->

Every command ends with exit code 0 when it did what was asked, 2 when something has to be changed
first (an option, a setting, the port, the data root), and 1 after any other trouble. Trouble is
told in one sentence on standard error.
"""


def commands_page() -> str:
    """The page ``docs/reference/commands.md``."""
    return "\n".join([_INTRODUCTION, *_sections(main, click.Context(main, info_name="podstead"))])


def _sections(command: click.Command, context: click.Context) -> Iterator[str]:
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.commands[name]
            yield from _sections(child, click.Context(child, info_name=name, parent=context))
        return
    yield f"## {context.command_path}\n"
    yield f"```\n{' '.join([context.command_path, *command.collect_usage_pieces(context)])}\n```\n"
    yield f"{cleandoc(command.help or '')}\n"
    yield from _options(command, context)


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    settings = {row.field for row in OPTION_ROWS}
    if all(row.field in {parameter.name for parameter in command.params} for row in OPTION_ROWS):
        yield "Its options are the [settings](settings.md).\n"
        return
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is None or isinstance(parameter, click.Argument):
            continue
        name, text = record
        source = " See [settings](settings.md)." if parameter.name in settings else ""
        yield f"- `{name}`: {text}{source}"
    yield ""
