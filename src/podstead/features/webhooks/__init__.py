"""Webhooks: notifications that the server sends to a URL of the subscriber (N-21)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from podstead.features import Feature, WorkerFeature

if TYPE_CHECKING:
    from podstead.app.services import Services
    from podstead.config import Settings


class WebhooksFeature(Feature):
    """The channel type WebhookChannel2023."""

    def modules(self, settings: Settings) -> Sequence[str]:  # noqa: ARG002
        return ("podstead.features.webhooks.worker", "podstead.app.adapters.provider_keys")

    def in_worker(self, services: Services) -> WorkerFeature:
        from podstead.features.webhooks.worker import WebhooksInWorker

        return WebhooksInWorker(services)


FEATURE = WebhooksFeature()
