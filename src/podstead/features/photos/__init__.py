"""All photos of a person's pod in one place, by the month in which they were taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from podstead.features import Feature, WorkerFeature

if TYPE_CHECKING:
    from podstead.app.services import Services
    from podstead.config import Settings


class PhotosFeature(Feature):
    """Always on; it stores nothing."""

    templates = __name__

    def modules(self, settings: Settings) -> Sequence[str]:
        del settings
        return ("podstead.features.photos.pages",)

    def in_worker(self, services: Services) -> WorkerFeature:
        from podstead.features.photos.pages import PhotosInWorker

        return PhotosInWorker(services)


FEATURE = PhotosFeature()
