"""``/.pages/console/settings``: the settings that are in effect, and where each comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podstead.idp.administration.audit_log import Operator
from podstead.web.idp.console import addresses
from podstead.web.idp.console.access import for_operators
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.response import Response
from podstead.web.routes import route


@dataclass(frozen=True, slots=True)
class ShownSetting:
    """One setting. ``source`` names what set it, as the operator wrote it; it is empty for a
    default. Secrets have no ``value``."""

    name: str
    value: str | None
    source: str
    meaning: str


@dataclass(frozen=True, slots=True)
class SettingGroup:
    """The settings of one section of the reference."""

    title: str
    settings: Sequence[ShownSetting]


@dataclass(frozen=True, slots=True)
class SettingsPage:
    """Shows the settings; they are changed where they are set, followed by a restart."""

    site: Site
    groups: Sequence[SettingGroup]

    @route(addresses.SETTINGS, "GET")
    @for_operators
    async def get(self, page: PageRequest, _operator: Operator) -> Response:
        """The page."""
        return self.site.page(page, "console/settings.html", groups=self.groups)
