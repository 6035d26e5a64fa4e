"""Greets people: a setting, a route, a page and a command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from podstead.config import value_types
from podstead.config.table import setting
from podstead.features import Feature, WorkerFeature

if TYPE_CHECKING:
    from podstead.app.services import Services


@dataclass(frozen=True, kw_only=True)
class GreetingSettings:
    """The settings of this feature."""

    greeting: str = setting("", value_types.LINE, "Greeting", "What the server says to visitors.")


class GreetingFeature(Feature):
    """The greeting; off without a text."""

    settings = GreetingSettings
    commands = {"greet": "podstead_greeting.command:greet"}
    templates = "podstead_greeting"

    def in_worker(self, services: Services) -> WorkerFeature | None:
        text = services.settings.of(GreetingSettings).greeting
        if not text:
            return None
        from podstead_greeting.worker import GreetingInWorker

        return GreetingInWorker(services, text)


FEATURE = GreetingFeature()
