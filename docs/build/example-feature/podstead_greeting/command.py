"""``podstead greet``: print the greeting."""

from __future__ import annotations

import click

from podstead.cli.running import Output, on_settings
from podstead.config import Settings
from podstead_greeting import GreetingSettings


@click.command("greet", short_help="Print the greeting.")
@on_settings()
def greet(settings: Settings) -> Output:
    """Print what the server says to visitors."""
    text = settings.of(GreetingSettings).greeting
    return Output({"greeting": text}, [text or "The server has no greeting."])
