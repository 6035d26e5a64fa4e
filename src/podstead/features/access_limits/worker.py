"""What limits do in one worker."""

from __future__ import annotations

from podstead.app.services import Services
from podstead.features import WorkerFeature
from podstead.features.access_limits.enforcement import LimitedAccess, LimitedIdentities, LimitStore


class AccessLimitsInWorker(WorkerFeature):
    """Finds limits and applies them."""

    def __init__(self, services: Services) -> None:
        settings = services.settings
        limits = LimitStore(services.records)
        issuer = settings.issuer if settings.idp else None
        self.refinement = LimitedIdentities(limits, issuer)
        self.restriction = LimitedAccess(limits, services.base_url)
