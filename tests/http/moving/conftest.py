"""Pods as a command opens them, beside the server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from podstead.app.operator.importing import OpenedPods, opened_pods
from podstead.config import Settings
from podstead.storage.layout import RootLayout
from podstead.storage.sqlite import SqliteFacts
from tests.support.application import Server


@pytest.fixture
async def pods(server: Server, settings: Settings) -> AsyncIterator[OpenedPods]:
    SqliteFacts(RootLayout(settings.root).database).write_fact("base-url", settings.base_url)
    async with opened_pods(settings) as opened:
        yield opened
