"""``podstead settings``: the operator lists and changes settings of a running server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from podstead.cli.output import CommandFailed, read_secret, table_lines
from podstead.cli.running import Output, on_root

if TYPE_CHECKING:  # at run time it is loaded when it is needed
    from podstead.app.operator.administration import DataRoot


@click.group("settings")
def settings_() -> None:
    """List and change the settings that can be changed while the server runs.

    A running server follows within seconds. What an option, an environment variable or the
    configuration file of the server sets takes precedence, and cannot be changed here.
    """


@settings_.command("list", short_help="List these settings with their values.")
@on_root()
async def list_settings(root: DataRoot) -> Output:
    """List the settings that can be changed while the server runs: name, value, and what set it.
    Of a secret, only whether it is set is told. A value that only the configuration of the server
    has is not known here."""
    found = await root.live_settings()
    rows = [
        (each.name, "-" if each.value is None else each.value, each.source or "default")
        for each in found
    ]
    values = [{"name": each.name, "value": each.value, "source": each.source} for each in found]
    return Output(values, table_lines(("NAME", "VALUE", "SET BY"), rows))


@settings_.command("set", short_help="Change a setting.")
@click.argument("name")
@click.argument("value", required=False)
@on_root()
async def set_setting(root: DataRoot, name: str, value: str | None) -> Output:
    """Set the setting NAME to VALUE, as it is written in the configuration file.

    The value of a secret, such as mail, is never an argument, which everybody on the machine could
    see: the command prompts for it. If standard input is not a terminal, its first line is the
    value.
    """
    is_secret = root.is_secret(name)
    if is_secret and value is not None:
        raise CommandFailed(f"{name} is a secret: leave out the value, and type it when asked.")
    if value is None and not is_secret:
        raise click.UsageError(f"State the value of {name}.")
    await root.setting_changes.change(name, read_secret(name) if value is None else value)
    return Output({"name": name, "changed": True}, [f"Set {name}."])


@settings_.command("unset", short_help="Return a setting to its default.")
@click.argument("name")
@on_root()
async def unset_setting(root: DataRoot, name: str) -> Output:
    """Let the default of the setting NAME apply again."""
    await root.setting_changes.change(name, None)
    return Output({"name": name, "changed": True}, [f"The default of {name} applies again."])
