"""Resumable uploads by tus 1.0.0, of applications and of the script of the pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from podstead.features import Feature, WorkerFeature

if TYPE_CHECKING:
    from podstead.app.services import Services
    from podstead.config import Settings


class UploadsFeature(Feature):
    """Without it, the pages have a form that sends whole files."""

    templates = "podstead.features.uploads"

    def modules(self, settings: Settings) -> Sequence[str]:  # noqa: ARG002
        return ("podstead.features.uploads.endpoint",)

    def in_worker(self, services: Services) -> WorkerFeature:
        from podstead.features.uploads.endpoint import UploadsInWorker

        return UploadsInWorker(services)


FEATURE = UploadsFeature()
