"""The pages as an application of a phone or computer: installed, shown while there is no network,
and a target of the system's "Share"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from podstead.features import Feature, WorkerFeature

if TYPE_CHECKING:
    from podstead.app.services import Services
    from podstead.config import Settings


class InstallableFeature(Feature):
    """Always on."""

    templates = __name__

    def modules(self, settings: Settings) -> Sequence[str]:  # noqa: ARG002
        return (f"{__name__}.pages",)

    def in_worker(self, services: Services) -> WorkerFeature | None:
        from podstead.features.installable.pages import InstallableInWorker

        return InstallableInWorker(services)


FEATURE = InstallableFeature()
