"""The service that shows and edits access rules, on the store of a running application."""

from __future__ import annotations

import pytest

from podstead.app.adapters.system import SystemRandomness
from podstead.app.services import Services
from podstead.config import Settings
from podstead.resources.sharing.access_requests import AccessRequests
from podstead.resources.sharing.people import PeopleDirectory
from podstead.resources.sharing.service import SharingService
from podstead.storage.sqlite import SqliteStore
from tests.support.application import BASE
from tests.support.clock import FakeClock
from tests.support.sharing import KnownEmails


@pytest.fixture
def parts(store: SqliteStore, settings: Settings) -> Services:
    """The objects of a worker that uses the store of the test."""
    services = Services(settings)
    services.store = store
    return services


@pytest.fixture
def sharing(parts: Services) -> SharingService:
    return SharingService(
        resources=parts.resources,
        documents=parts.documents,
        store=parts.store,
        gate=parts.gate,
        owners=parts.owners,
        randomness=SystemRandomness(),
    )


@pytest.fixture
def requests(parts: Services) -> AccessRequests:
    return AccessRequests(
        base_url=BASE,
        resources=parts.resources,
        documents=parts.documents,
        store=parts.store,
        counters=parts.store,
        gate=parts.gate,
        owners=parts.owners,
        clock=FakeClock(),
    )


@pytest.fixture
def emails() -> dict[str, str]:
    """The WebIDs of accounts by their e-mail addresses."""
    return {}


@pytest.fixture
def people(parts: Services, emails: dict[str, str]) -> PeopleDirectory:
    return PeopleDirectory(
        base_url=BASE,
        resources=parts.resources,
        documents=parts.documents,
        pods=parts.store,
        emails=KnownEmails(emails),
        counters=parts.store,
        clock=FakeClock(),
    )
