"""The pages as an application of a phone or computer: installed, shown while there is no network,
and a target of the system's "Share"."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podstead.features import Feature, WorkerFeature

if TYPE_CHECKING:
    from podstead.app.services import Services


class InstallableFeature(Feature):
    """Always on."""

    templates = __name__

    def in_worker(self, services: Services) -> WorkerFeature | None:
        from podstead.features.installable.pages import InstallableInWorker

        return InstallableInWorker(services)


FEATURE = InstallableFeature()
