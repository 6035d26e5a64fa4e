"""Notifications by solid-0.1, the protocol that ``Updates-Via`` names (L-1 to L-12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podstead.config import value_types
from podstead.config.table import Group, setting
from podstead.features import Feature, WorkerFeature

if TYPE_CHECKING:
    from podstead.app.services import Services
    from podstead.config import Settings


@dataclass(frozen=True, kw_only=True)
class LegacyNotificationSettings:
    """The settings of this part."""

    legacy_notifications_open: bool = setting(
        False,
        value_types.SWITCH,
        Group.NOTIFICATIONS,
        "Whether anybody may subscribe to any resource with the older protocol (solid-0.1), "
        "including people who may not read the resource. The messages contain the URL of the "
        "resource that changed and nothing else.",
        reason="Older servers notified everybody, and most applications that run in a browser do "
        "not authenticate on a WebSocket. Unless you turn this on, those applications receive "
        "notifications about public resources only.",
    )


class LegacyNotifications(Feature):
    """The socket, and the header field that names it."""

    settings = LegacyNotificationSettings

    def modules(self, settings: Settings) -> Sequence[str]:  # noqa: ARG002
        return ("podstead.features.legacy_notifications.socket",)

    def in_worker(self, services: Services) -> WorkerFeature:
        from podstead.features.legacy_notifications.socket import LegacyNotificationsInWorker

        return LegacyNotificationsInWorker(services)


FEATURE = LegacyNotifications()
