"""Servers that are providers, for applications with limits."""

from __future__ import annotations

from tests.support.flow_fixtures import (  # noqa: F401 - fixtures
    app,
    provider,
    provider_root,
    public_app,
    start_provider,
)
