"""Loads everything that a worker may use, before the first request.

An upgrade replaces the installed package under a running server. A module or template that was
loaded only then would be of the new version, or missing, while the rest is of the old one. So the
main process loads everything before it forks workers, which share the memory; a worker that
replaces another is forked from the same process and reads nothing from the package either.

Commands such as ``podstead token`` still import late: they end before it matters.
"""

import gc
from collections.abc import Iterator
from importlib import import_module

from podstead.app.adapters.bundled_contexts import bundled_contexts
from podstead.app.monitoring import observability
from podstead.app.process.loading import without_collection
from podstead.config import Settings
from podstead.features import client_certificate_setting, features
from podstead.storage.blobs.s3_location import S3Location
from podstead.storage.migrations import read_migrations
from podstead.web.description_endpoints import favicon
from podstead.web.pages.templates import load_assets, load_templates
from podstead.web.pages.texts import load_texts

_ALWAYS = (
    "podstead.outbound.urls",
    "podstead.outbound.documents",
    "podstead.outbound.errors",
    "podstead.outbound.fetch",
    "podstead.outbound.guard",
    "podstead.outbound.foreign_documents",
    "podstead.outbound.requests",
    "podstead.web.authority",
)
_FOR_THE_PROVIDER = (
    "podstead.app.accounts",
    "podstead.app.provider",
)
_FOR_SOCKETS = ("podstead.app.process.sockets.listener",)
_FOR_CLIENT_CERTIFICATES = (
    "podstead.app.process.tls.engine",
    "podstead.app.process.tls.terminator",
)


def preload(settings: Settings) -> None:
    """Load what a server with these settings uses. Raises ImportError and OSError if the
    installation is incomplete.

    What is loaded is excluded from garbage collection for good. A collection writes to the header
    of every object it visits, and a worker that did so would get its own copy of each page that it
    could have shared with the main process.
    """
    with without_collection():
        for name in _modules(settings):
            import_module(name)
        for feature in features():
            for name in feature.modules(settings):
                import_module(name)
        load_templates()
        load_assets()
        load_texts()
        favicon()
        bundled_contexts()
        read_migrations()
        gc.freeze()


def _modules(settings: Settings) -> Iterator[str]:
    yield from _ALWAYS
    if settings.idp:
        yield from _FOR_THE_PROVIDER
    if settings.database is not None:
        yield "podstead.storage.postgresql"
    if isinstance(settings.bodies, S3Location):
        yield "podstead.storage.blobs.s3"
    if client_certificate_setting(settings) is not None:
        yield from _FOR_CLIENT_CERTIFICATES
    if settings.sockets_port is not None:
        yield from _FOR_SOCKETS
    if observability.tracing_is_wanted():
        yield observability.MODULE
