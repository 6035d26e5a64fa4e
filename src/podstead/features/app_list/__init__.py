"""Applications that the operator suggests: the page about applications opens them for people with
their provider or their WebID, where an application takes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from podstead.config import value_types
from podstead.config.table import Group, optional
from podstead.features import Feature, WorkerFeature

if TYPE_CHECKING:
    from podstead.app.services import Services
    from podstead.config import Settings


@dataclass(frozen=True, kw_only=True)
class AppListSettings:
    """The settings of this part."""

    apps: Path | None = optional(
        value_types.FILE,
        Group.SERVER,
        "The applications that the page Apps suggests, as a TOML file with at most 50 tables "
        "[[app]]. After a change, restart the server.",
    )


class AppListFeature(Feature):
    """On if the operator has such a list."""

    settings = AppListSettings
    templates = __name__

    def check_settings(self, settings: Settings) -> None:
        path = settings.of(AppListSettings).apps
        if path is not None:
            from podstead.features.app_list.listing import read_list

            read_list(path)

    def modules(self, settings: Settings) -> Sequence[str]:
        is_on = settings.of(AppListSettings).apps is not None
        return ("podstead.features.app_list.listing",) if is_on else ()

    def in_worker(self, services: Services) -> WorkerFeature | None:
        path = services.settings.of(AppListSettings).apps
        if path is None:
            return None
        from podstead.features.app_list.listing import AppListInWorker, read_list

        return AppListInWorker(read_list(path), services.settings.issuer)


FEATURE = AppListFeature()
