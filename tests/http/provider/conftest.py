"""A server that is a provider: one account, and clients that go through its flows without pages."""

from tests.support.flow_fixtures import (
    app,
    provider,
    provider_root,
    public_app,
    start_provider,
)

__all__ = [
    "app",
    "provider",
    "provider_root",
    "public_app",
    "start_provider",
]
