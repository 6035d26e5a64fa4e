"""The commands, and their exit codes: 0 for success; 2 if the command line, a setting, the port or
the data root cannot be used as given; 1 for a finding, a refusal or a failure.

A command is imported when it is asked for: a server must not keep in memory what the others need.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

import click

from podstead import __version__
from podstead.cli.output import CommandFailed
from podstead.config import StartRefused
from podstead.core.errors import BadRequest, PodsteadError, RootUnusable
from podstead.features import features

_COMMANDS: Final = {
    "account": "podstead.cli.account:account",
    "backup": "podstead.cli.backup:backup",
    "check": "podstead.cli.maintenance:check_data",
    "compact": "podstead.cli.maintenance:compact_data",
    "copy": "podstead.cli.backup:copy_place",
    "doctor": "podstead.cli.maintenance:doctor",
    "invite": "podstead.cli.invite:invite",
    "keys": "podstead.cli.keys:keys",
    "move-base": "podstead.cli.maintenance:move_base",
    "pod": "podstead.cli.pod:pod",
    "restore": "podstead.cli.backup:restore",
    "service": "podstead.cli.service:service",
    "settings": "podstead.cli.settings:settings_",
    "start": "podstead.cli.start:start",
    "token": "podstead.cli.token:token",
}
"""The module and the name of each command."""


class _WrongUsage(CommandFailed):
    """What was given to the command cannot be used, so nothing was tried."""

    exit_code = 2


class CommandGroup(click.Group):
    """A group of commands that reports expected errors as a message, without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - as click has it
        try:
            return super().invoke(ctx)
        except (StartRefused, RootUnusable, BadRequest) as error:
            raise _WrongUsage(str(error)) from error
        except PodsteadError as error:
            raise CommandFailed(str(error)) from error


class _AllCommands(CommandGroup):
    """The commands of the program."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*_all_commands(), *super().list_commands(ctx)])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = _COMMANDS.get(cmd_name) or _all_commands().get(cmd_name)
        if found is None:
            return super().get_command(ctx, cmd_name)
        module, _, name = found.partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command


def _all_commands() -> Mapping[str, str]:
    return {**_COMMANDS, **dict(pair for each in features() for pair in each.commands.items())}


@click.group(cls=_AllCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="podstead", message="%(prog)s %(version)s")
def main() -> None:
    """A Solid pod server."""
