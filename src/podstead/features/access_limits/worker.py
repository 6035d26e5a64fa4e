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
    from podstead.features.access_limits.reminders import LimitReminders


class AccessLimitsInWorker(WorkerFeature):
    """Finds limits, applies them, and lets people choose them."""

    def __init__(self, services: Services) -> None:
        settings = services.settings
        self._services = services
        self._limits = LimitStore(services.records)
        issuer = settings.issuer if settings.idp else None
        self.refinement = LimitedIdentities(self._limits, issuer)
        self.restriction = LimitedAccess(self._limits, issuer or services.base_url)

    @cached_property
    def access_reminders(self) -> LimitReminders:  # type: ignore[override]
        from podstead.features.access_limits.reminders import LimitReminders

        return LimitReminders(self._limits, self._services)

    @cached_property
    def _form(self) -> LimitForm:
        from podstead.features.access_limits.form import LimitForm

        services = self._services
        return LimitForm(services.records, services.resources, services.base_url)

    @cached_property
    def pages(self) -> Sequence[object]:  # type: ignore[override]
        from podstead.features.access_limits.pages import ApplicationPages, OtherProvidersPage

        renderer = self._services.pages.site.renderer
        others = OtherProvidersPage(self._limits, self._form, renderer)
        if self._services.provider is not None:
            return (others,)
        return (others, ApplicationPages(self._limits, self._form, renderer, None))

    @cached_property
    def provider_pages(self) -> Sequence[object]:  # type: ignore[override]
        from podstead.features.access_limits.pages import ApplicationPages

        provider = self._services.provider
        if provider is None:
            return ()
        renderer = provider.pages.site.renderer
        return (ApplicationPages(self._limits, self._form, renderer, provider),)

    @cached_property
    def consent(self) -> LimitConsent:  # type: ignore[override]
        from podstead.features.access_limits.consent import LimitConsent

        return LimitConsent(self._limits, self._form, self._services.base_url)
