"""Sharing links: access to a document or folder for people without an account."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from podstead.config import value_types
from podstead.config.table import Group, setting
from podstead.features import Feature, WorkerFeature

if TYPE_CHECKING:  # a server without links loads none of this
    from podstead.app.services import Services
    from podstead.config import Settings
    from podstead.resources.planning import ContainerHook
    from podstead.storage.record_store import RecordStore

MOST_LINKS: Final = 1000
"""The largest value of ``sharing_links_per_pod``; so many are read at once."""


@dataclass(frozen=True, kw_only=True)
class LinkSettings:
    """The settings of this part."""

    sharing_links: bool = setting(
        True,
        value_types.SWITCH,
        Group.TRUST,
        "Whether people can share documents and folders by links, which whoever has them can open "
        "without an account. While it is off, no link opens anything; those that exist are kept.",
    )
    sharing_link_max_days: int = setting(
        0,
        value_types.integer(0, 36_500),
        Group.TRUST,
        "After how many days a sharing link ends at the latest, counted from the day on which it "
        "was made, also for links that exist already. 0 means that links may have no end.",
        unit="days",
        live=True,
    )
    sharing_links_per_pod: int = setting(
        500,
        value_types.integer(0, MOST_LINKS),
        Group.TRUST,
        "How many sharing links a pod may have. Those that exist already are kept.",
        live=True,
    )


class LinksFeature(Feature):
    """On unless the operator forbids links."""

    settings = LinkSettings
    templates = __name__

    def container_hooks(self, records: RecordStore) -> Sequence[ContainerHook]:
        from podstead.features.links.sharing_links import SharingLinksHook

        return (SharingLinksHook(records),)

    def modules(self, settings: Settings) -> Sequence[str]:
        return ("podstead.features.links.managing",) if self._is_on(settings) else ()

    def in_worker(self, services: Services) -> WorkerFeature | None:
        if not self._is_on(services.settings):
            return None
        from podstead.features.links.managing import LinksInWorker

        return LinksInWorker(services)

    @staticmethod
    def _is_on(settings: Settings) -> bool:
        return settings.of(LinkSettings).sharing_links


FEATURE = LinksFeature()
