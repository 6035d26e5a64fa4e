"""Previews of stored content on the pages, and thumbnails.

Content is hostile: every text leaves as a plain string, which the templates escape, or as HTML that
was built from an allowlist. The libraries that render Markdown, source code and pictures are
imported by ``markdown.py``, ``source.py`` and ``pictures.py`` only, which run in a process of their
own (``rendering.py``): content that makes one of them crash or run forever affects only that
process.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from podstead.features import Feature

if TYPE_CHECKING:  # the renderer's process loads this module
    from podstead.app.services import Services
    from podstead.config import Settings
    from podstead.features import WorkerFeature
    from podstead.storage.record_store import RecordStore
    from podstead.storage.schema import Schema


class PreviewsFeature(Feature):
    """What the pages about files show of contents."""

    templates = "podstead.features.previews"

    def modules(self, settings: Settings) -> Sequence[str]:  # noqa: ARG002 - on in all of them
        return ("podstead.features.previews.worker",)

    @cached_property
    def schema(self) -> Schema:  # type: ignore[override]  # the renderer's process needs none
        from podstead.features.previews.schema import SCHEMA

        return SCHEMA

    async def remove_derived(self, settings: Settings, records: RecordStore) -> None:
        from podstead.features.previews.taken import forget_dates
        from podstead.storage.layout import RootLayout

        for thumbnail in RootLayout(settings.root).thumbnails.glob("*"):
            thumbnail.unlink(missing_ok=True)
        await forget_dates(records)

    def in_worker(self, services: Services) -> WorkerFeature:
        from podstead.features.previews.worker import PreviewsInWorker

        return PreviewsInWorker(services)


FEATURE = PreviewsFeature()
