"""What limits do in one worker."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from podstead.app.services import Services
from podstead.features import WorkerFeature
from podstead.features.access_limits.enforcement import LimitedAccess, LimitedIdentities, LimitStore

if TYPE_CHECKING:
    from podstead.features.access_limits.consent import LimitConsent
    from podstead.features.access_limits.form import LimitForm


class AccessLimitsInWorker(WorkerFeature):
    """Finds limits, applies them, and lets people choose them."""

    def __init__(self, services: Services) -> None:
        settings = services.settings
        self._services = services
        self._limits = LimitStore(services.records)
        issuer = settings.issuer if settings.idp else None
        self.refinement = LimitedIdentities(self._limits, issuer)
        self.restriction = LimitedAccess(self._limits, services.base_url)

    @cached_property
    def _form(self) -> LimitForm:
        from podstead.features.access_limits.form import LimitForm

        services = self._services
        return LimitForm(services.store, services.resources, services.base_url)

    @cached_property
    def pages(self) -> Sequence[object]:  # type: ignore[override]
        from podstead.features.access_limits.pages import LimitPages

        services = self._services
        renderer = services.pages.site.renderer
        return (LimitPages(self._limits, self._form, renderer, services.provider_here),)

    @cached_property
    def consent(self) -> LimitConsent:  # type: ignore[override]
        from podstead.features.access_limits.consent import LimitConsent

        return LimitConsent(self._limits, self._form, self._services.base_url)
