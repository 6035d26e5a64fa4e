"""The command ``podstead``: reads options, prints, and ends with an exit code; decides nothing."""

from podstead.cli.commands import main

__all__ = ["main"]
