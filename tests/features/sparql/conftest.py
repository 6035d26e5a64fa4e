"""Servers that are providers, for applications with limits."""

from __future__ import annotations

from tests.support.flow_fixtures import app, provider, provider_root, public_app, start_provider

__all__ = ["app", "provider", "provider_root", "public_app", "start_provider"]
