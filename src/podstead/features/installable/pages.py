"""The manifest, the service worker, and the pages that they lead to.

The worker stores only pages about the person's own pods, since the rights of others to those cannot
be taken from them. Files that the system's "Share" sends stay in the browser until its person has
sent them: a form that another site makes the browser send reaches no pod.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from podstead.core.identity import Identity
from podstead.features import WorkerFeature
from podstead.web.browsers import see_other
from podstead.web.cors import CorsPolicy
from podstead.web.pages import addresses, templates
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.request import Request
from podstead.web.response import Response, content_response
from podstead.web.routes import Route, plain_routes, route

if TYPE_CHECKING:
    from podstead.app.services import Services

MANIFEST: Final = f"{addresses.PREFIX}/manifest.webmanifest"
WORKER: Final = f"{addresses.PREFIX}/service-worker.js"
OFFLINE: Final = f"{addresses.PREFIX}/offline"
RECEIVE: Final = f"{addresses.PREFIX}/receive"
"""Where the system's "Share" sends files: the service worker takes them."""
RECEIVED: Final = "received"
"""The query of the upload page for files that the service worker has."""

_GROUND: Final = "#f5f3ed"
_CHECK_AGAIN: Final = ((b"cache-control", b"no-cache"),)


class InstallableInWorker(WorkerFeature):
    """Serves what makes the pages installable."""

    page_head = "installable/head.html"

    def __init__(self, services: Services) -> None:
        self._services = services

    @cached_property
    def pages(self) -> Sequence[object]:  # type: ignore[override]
        return (OfflinePages(self._services.pages.site),)

    @cached_property
    def routes(self) -> Sequence[Route]:  # type: ignore[override]
        services = self._services
        scripts = [each for feature in services.features for each in feature.service_worker_scripts]
        name = services.pages.site.renderer.server_name
        return plain_routes(InstallableEndpoint(name, scripts))


@dataclass(frozen=True, slots=True)
class OfflinePages:
    """What people see of it."""

    site: Site

    @route(OFFLINE, "GET")
    async def offline(self, page: PageRequest) -> Response:
        """The page that the service worker shows for those that it does not have."""
        return self.site.page(page, "installable/offline.html")

    @route(RECEIVE, "GET")
    async def receive(self, page: PageRequest) -> Response:
        """Lead to where files are put in. Raises NotAuthenticated."""
        pods = page.signed_in().pods
        if not pods:
            return see_other(addresses.HOME)
        return see_other(f"{addresses.UPLOAD}{pods[0]}?{RECEIVED}")


@dataclass(frozen=True, slots=True)
class InstallableEndpoint:
    """Serves the manifest (Web Application Manifest) and the service worker to anyone.

    ``scripts`` are those of other features that the service worker runs.
    """

    server_name: str
    scripts: Sequence[str] = ()

    @route(MANIFEST, "GET", "HEAD", sharing=CorsPolicy.NOBODY)
    async def manifest(self, request: Request, _identity: Identity | None) -> Response:
        """The same for everybody: browsers fetch it without cookies."""
        manifest = {
            "id": addresses.HOME,
            "name": self.server_name,
            "short_name": self.server_name[:12],
            "start_url": addresses.HOME,
            "scope": f"{addresses.PREFIX}/",
            "display": "standalone",
            "background_color": _GROUND,
            "theme_color": _GROUND,
            "icons": [
                {
                    "src": templates.asset_url(f"icon-{size}.png"),
                    "sizes": f"{size}x{size}",
                    "purpose": purpose,
                }
                for size in (192, 512)
                for purpose in ("any", "maskable")
            ],
            "share_target": {
                "action": RECEIVE,
                "method": "POST",
                "enctype": "multipart/form-data",
                "params": {"files": [{"name": "files", "accept": ["*/*"]}]},
            },
        }
        return content_response(
            json.dumps(manifest).encode(),
            "application/manifest+json",
            method=request.method,
            headers=_CHECK_AGAIN,
        )

    @route(WORKER, "GET", "HEAD", sharing=CorsPolicy.NOBODY)
    async def worker(self, request: Request, _identity: Identity | None) -> Response:
        """At this address, since a service worker serves the pages below its own folder."""
        return content_response(
            b"\n".join(
                templates.load_assets()[each] for each in ("service-worker.js", *self.scripts)
            ),
            "text/javascript; charset=utf-8",
            method=request.method,
            headers=_CHECK_AGAIN,
        )
