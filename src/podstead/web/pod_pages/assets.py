"""``/.pages/assets/<hash>/<file>``: the style sheets and scripts of the pages.

The hash in the address is that of all files, so each address always has the same content and
browsers store it for good. Scripts import each other by relative addresses, below the same hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from podstead.core.errors import NotFound
from podstead.core.identity import Identity
from podstead.web.codes import WebCodes
from podstead.web.content_coding import CONTENT_ENCODING, accepts_gzip, compressed
from podstead.web.cors import Sharing
from podstead.web.pod_pages.addresses import ASSETS
from podstead.web.request import Request
from podstead.web.response import Response, content_response
from podstead.web.routes import route

_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_FOR_GOOD: Final = (b"cache-control", b"public, max-age=31536000, immutable")
_VARY: Final = b"Accept-Encoding"
_HASH_CHARACTERS: Final = 12


@cache
def load_assets() -> Mapping[str, bytes]:
    """Every file by its name, read from the package once."""
    package = files("podstead.web")
    # The scripts of the provider's pages are part of these pages and files of those below.
    folders = (package / "static", package / "templates" / "idp")
    every = (each for folder in folders for each in folder.iterdir())
    kept = [each for each in every if each.name.rpartition(".")[2] in _TYPES]
    return {each.name: each.read_bytes() for each in sorted(kept, key=lambda each: each.name)}


@cache
def _compressed(name: str) -> bytes:
    """A file as gzip, compressed as well as possible, once in each process."""
    return compressed(load_assets()[name], level=9)


@cache
def _hash() -> str:
    hashed = hashlib.sha256()
    for name, content in load_assets().items():
        hashed.update(f"{name} {len(content)} ".encode() + content)
    return hashed.hexdigest()[:_HASH_CHARACTERS]


def asset_url(name: str) -> str:
    """The address of a file."""
    if name not in load_assets():
        raise LookupError(f"There is no file {name} in web/static")
    return f"{ASSETS}/{_hash()}/{name}"


class AssetsEndpoint:
    """Serves the files, which anyone may read at every origin of the server."""

    @route(ASSETS + "/{hash}/{file}", "GET", "HEAD", sharing=Sharing.NOBODY)
    async def get(self, request: Request, _: Identity | None) -> Response:
        """Raises NotFound, also for the address of another version."""
        *_above, hashed, name = request.path.split("/")
        content = load_assets().get(name)
        if content is None or hashed != _hash():
            raise NotFound(WebCodes.NO_SUCH_ASSET)
        headers = [_FOR_GOOD]
        if accepts_gzip(request.fields):
            content = _compressed(name)
            headers.append(CONTENT_ENCODING)
        media_type = _TYPES[name.rpartition(".")[2]]
        return content_response(
            content, media_type, method=request.method, headers=headers, vary=_VARY
        )
