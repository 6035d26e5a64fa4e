"""SPARQL 1.1 Query over the documents of a container that the asker may read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podstead.config import value_types
from podstead.config.table import Group, setting
from podstead.features import Feature

if TYPE_CHECKING:  # the processes that evaluate queries load this module
    from podstead.app.services import Services
    from podstead.config import Settings
    from podstead.features import WorkerFeature


@dataclass(frozen=True, kw_only=True)
class SparqlSettings:
    """The settings of this part."""

    sparql: bool = setting(
        True,
        value_types.SWITCH,
        Group.SERVER,
        "Answer SPARQL queries over the documents of a container that the sender may read.",
    )


class SparqlFeature(Feature):
    """On unless the operator switches it off."""

    settings = SparqlSettings

    def modules(self, settings: Settings) -> Sequence[str]:
        return (f"{__name__}.worker",) if settings.of(SparqlSettings).sparql else ()

    def in_worker(self, services: Services) -> WorkerFeature | None:
        if not services.settings.of(SparqlSettings).sparql:
            return None
        from podstead.features.sparql.worker import SparqlInWorker

        return SparqlInWorker(services)


FEATURE = SparqlFeature()
