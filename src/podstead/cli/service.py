"""``podstead service``: units with which systemd runs the server."""

import os
from pathlib import Path

import click

from podstead.cli.options import settings_from
from podstead.cli.output import echo

_PATH = click.Path(path_type=Path)
_SYSTEM_CONFIG = Path("/etc/podstead.toml")


@click.group()
def service() -> None:
    """Install the server as a service of systemd."""


_kind = click.option(
    "--system/--user",
    "is_system",
    default=None,
    help="For the whole machine, or for the current user. [default: --system for root]",
)
_into = click.option(
    "--into",
    metavar="FOLDER",
    type=_PATH,
    help="Use this folder for all files, to look at them or to put them into a package.",
)


@service.command(short_help="Write the units, and print how to start them.")
@_kind
@click.option(
    "--config",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The file with the server's settings. [default: /etc/podstead.toml, or "
    "~/.config/podstead.toml with --user]",
)
@click.option(
    "--backups",
    metavar="FOLDER",
    type=_PATH,
    help="Also make a backup into this folder every six hours, and keep some of them.",
)
@_into
def install(
    *, is_system: bool | None, config: Path | None, backups: Path | None, into: Path | None
) -> None:
    """Write the units for systemd, and print the commands that start them.

    Nothing is started. The unit for the whole machine runs the server as the account 'podstead',
    which can write its data and nothing else. The settings are read to find the data root and the
    port; install again after you change either.
    """
    from podstead.app.operator import service_units

    is_system = _is_system(is_system)
    found = config or (_SYSTEM_CONFIG if is_system else Path.home() / ".config/podstead.toml")
    settings = settings_from({"config": str(found.absolute())})
    plan = service_units.ServicePlan(
        settings,
        found.absolute(),
        is_system,
        None if backups is None else backups.absolute(),
    )
    for path in service_units.write_units(plan, into=into):
        echo(f"Wrote {path}.", err=True)
    echo("Next:", err=True)
    for step in service_units.next_steps(plan):
        echo(f"  {step}")


@service.command(short_help="Remove the units.")
@_kind
@_into
def uninstall(*, is_system: bool | None, into: Path | None) -> None:
    """Remove the units that 'podstead service install' wrote. The data and the account stay.

    Stop the service first, with 'systemctl disable --now podstead.service'.
    """
    from podstead.app.operator import service_units

    removed = service_units.remove_units(is_system=_is_system(is_system), into=into)
    for path in removed:
        echo(f"Removed {path}.", err=True)
    if not removed:
        echo("Nothing was installed.", err=True)


def _is_system(chosen: bool | None) -> bool:  # noqa: FBT001 - an option with three states
    return os.geteuid() == 0 if chosen is None else chosen
