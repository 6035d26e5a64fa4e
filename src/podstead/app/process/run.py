"""What happens at a start, in which order? Everything that can refuse it comes before a worker."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from podstead.app.adapters.engine import share_rows
from podstead.app.adapters.root import former_base_urls, prepared_root
from podstead.app.process.admin import opened_admin
from podstead.app.process.cores import usable_cores
from podstead.app.process.exit_reason import ExitReason
from podstead.app.process.listening import (
    closing_all,
    inherited_listener,
    open_listeners,
)
from podstead.app.process.logs import configure_logging
from podstead.app.process.preload import preload
from podstead.app.process.renewal import prepare_keys
from podstead.app.process.serve import serve
from podstead.app.process.worker import Factory
from podstead.config import Settings, StartRefused
from podstead.features import features

if TYPE_CHECKING:
    from podstead.app.process.acme.certificates import AutomaticCertificate


def run_server(
    settings: Settings,
    *,
    factory: Factory,
    on_ready: Callable[[Settings], None],
    accept_loss: bool = False,
) -> ExitReason:
    """Run the server until it is stopped.

    ``factory`` makes the application of each worker; ``on_ready`` is called when all answer. Both
    get the settings with the port that was really opened and the number of workers.

    Raises StartRefused or RootUnusable, before anything is served, and StorageError.
    """
    configure_logging(settings)
    workers = settings.workers or usable_cores()
    settings = dataclasses.replace(settings, workers=workers)
    keys = None if settings.acme_email else prepare_keys(settings)
    for feature in features():
        feature.check_machine(settings)
    keep_certificate = None
    with ExitStack() as held:
        inherited = inherited_listener()
        listening = open_listeners(settings, workers, inherited)
        held.enter_context(closing_all(listening.all))
        settings = listening.noted_in(settings)
        admin = held.enter_context(opened_admin(settings))
        address = None if admin is None else admin.address
        settings = dataclasses.replace(settings, admin_listen=address)
        held.enter_context(prepared_root(settings, accept_loss=accept_loss))
        former = former_base_urls(settings)
        settings = dataclasses.replace(settings, former_base_urls=former)
        if settings.acme_email is not None:
            own = _automatic_certificate(settings)  # issued before anything is served
            settings = own.used_in(settings)
            keys = prepare_keys(settings)
            keep_certificate = own.keep
        preload(settings)
        share_rows(settings)
        return serve(
            settings,
            listening,
            keys,
            factory=factory,
            on_ready=partial(on_ready, settings),
            admin=admin,
            keep_certificate=keep_certificate,
            sockets_stay=inherited is not None,
        )


def _automatic_certificate(settings: Settings) -> AutomaticCertificate:
    """The certificate that the server orders for itself; there is one afterwards. Raises
    StartRefused without the library, and OrderFailed."""
    own = _load_automatic_certificates()(settings)
    own.ensure()
    return own


def _load_automatic_certificates() -> type[AutomaticCertificate]:
    """The class, which needs a library. Raises StartRefused."""
    try:
        from podstead.app.process.acme.certificates import AutomaticCertificate
    except ImportError as error:
        raise StartRefused(
            "acme-email is set, but the package for it is not installed. Install "
            "podstead[acme], for example with: pip install 'podstead[acme]'"
        ) from error
    return AutomaticCertificate
