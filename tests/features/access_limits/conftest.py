"""A server that is a provider, as for its own tests."""

from tests.http.provider.conftest import (  # noqa: F401 - fixtures
    app,
    provider,
    provider_root,
    public_app,
    start_provider,
)
