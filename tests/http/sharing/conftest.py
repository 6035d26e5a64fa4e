"""The service that shows and edits access rules, on the store of a running application."""

from __future__ import annotations

import pytest

from podstead.app.services import Services
from podstead.config import Settings
from podstead.resources.sharing.access_requests import AccessRequests
from podstead.resources.sharing.documents import AgentDocuments
from podstead.resources.sharing.people import PeopleDirectory
from podstead.resources.sharing.service import SharingService
from podstead.storage.sqlite import SqliteStore
from tests.support.clock import FakeClock
from tests.support.sharing import KnownEmails


@pytest.fixture
def parts(store: SqliteStore, settings: Settings) -> Services:
    """The objects of a worker that uses the store of the test."""
    services = Services(settings, FakeClock())
    services.store = store
    return services


@pytest.fixture
def sharing(parts: Services) -> SharingService:
    return SharingService(parts.resource_context, parts.resources, parts.owners)


@pytest.fixture
def requests(parts: Services) -> AccessRequests:
    documents = AgentDocuments(parts.resources, parts.documents)
    return AccessRequests(parts.resource_context, documents, parts.owners)


@pytest.fixture
def emails() -> dict[str, str]:
    """The WebIDs of accounts by their e-mail addresses."""
    return {}


@pytest.fixture
def people(parts: Services, emails: dict[str, str]) -> PeopleDirectory:
    documents = AgentDocuments(parts.resources, parts.documents)
    return PeopleDirectory(documents, parts.records, emails=KnownEmails(emails))
