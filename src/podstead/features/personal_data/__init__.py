"""Contacts, calendar, notes and bookmarks: what applications keep in a pod, shown as what it is, to
be looked through and edited."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from podstead.features import Feature, WorkerFeature

if TYPE_CHECKING:
    from podstead.app.services import Services
    from podstead.config import Settings


class PersonalDataFeature(Feature):
    """Pages over ordinary documents, as the person who looks at them; it stores nothing itself."""

    templates = __name__

    def modules(self, settings: Settings) -> Sequence[str]:  # noqa: ARG002
        return ("podstead.features.personal_data.pages",)

    def in_worker(self, services: Services) -> WorkerFeature | None:
        from podstead.features.personal_data.pages import PersonalDataInWorker

        return PersonalDataInWorker(services)


FEATURE = PersonalDataFeature()
