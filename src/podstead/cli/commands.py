"""Which commands are there, and what are their exit codes? 0 for success, 2 if the operator must
change something first (a setting, the port, the data root), 1 for any other error."""

from __future__ import annotations

from typing import Any

import click

from podstead import __version__
from podstead.cli.account import account
from podstead.cli.backup import backup, restore
from podstead.cli.cert import cert
from podstead.cli.check import check_data
from podstead.cli.compact import compact_data
from podstead.cli.doctor import doctor
from podstead.cli.importing import import_
from podstead.cli.invite import invite
from podstead.cli.keys import keys
from podstead.cli.move_base import move_base
from podstead.cli.pod import pod
from podstead.cli.service import service
from podstead.cli.start import start
from podstead.cli.token import token
from podstead.cli.watch import watch
from podstead.config import StartRefused
from podstead.core.errors import PodsteadError, RootUnusable


class _Refusal(click.ClickException):
    """An error that the operator can correct by changing something."""

    exit_code = 2


class Commands(click.Group):
    """Commands that report expected errors as a message, without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - as click has it
        try:
            return super().invoke(ctx)
        except (StartRefused, RootUnusable) as error:
            raise _Refusal(str(error)) from error
        except PodsteadError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="podstead", message="%(prog)s %(version)s")
def main() -> None:
    """A Solid pod server."""


main.add_command(start)
main.add_command(watch)
main.add_command(token)
main.add_command(account)
main.add_command(pod)
main.add_command(invite)
main.add_command(move_base)
main.add_command(keys)
main.add_command(cert)
main.add_command(backup)
main.add_command(restore)
main.add_command(import_)
main.add_command(service)
main.add_command(check_data)
main.add_command(compact_data)
main.add_command(doctor)
