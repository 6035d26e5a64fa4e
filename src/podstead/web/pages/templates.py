"""Renders the pages of this server from templates, which escape values by default."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from podstead.core import errors, identity
from podstead.features import features
from podstead.web.codes import WebCodes
from podstead.web.content_coding import CONTENT_ENCODING, accepts_gzip, compressed
from podstead.web.cors import CorsPolicy
from podstead.web.pages.addresses import ASSETS
from podstead.web.pages.people import face_url, hue, initials
from podstead.web.pages.texts import current_texts
from podstead.web.request import Request
from podstead.web.response import HeaderField, Response, content_response
from podstead.web.routes import route

if TYPE_CHECKING:
    from jinja2 import Environment


_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "png": "image/png",
    "svg": "image/svg+xml",
    "woff2": "font/woff2",
}
_COMPRESSED_ALREADY: Final = (".png", ".woff2")
_FOR_GOOD: Final = (b"cache-control", b"public, max-age=31536000, immutable")
_VARY: Final = b"Accept-Encoding"
_HASH_CHARACTERS: Final = 12
_LEFT_OUT: Final = {
    "js": re.compile(
        rb"^(?:\s*(?:/\*\*(?:(?!\*/).)*\*/|//[^\n]*)\n)+|/\*\* @type (?:(?!\*/).)*\*/ |^[ \t]+",
        re.DOTALL | re.MULTILINE,
    ),
    "css": re.compile(rb"/\*(?:(?!\*/).)*\*/\s*|\s+(?=[{}])|(?<=[{};,])\s+|(?<=:) ", re.DOTALL),
}


@cache
def load_assets() -> Mapping[str, bytes]:
    """Every file by its name, read from the package once."""
    package = files("podstead.web")
    # The scripts of features are part of pages of the provider and files of those of pods.
    folders = (package / "static", *_folders_of_features().values())
    every = (each for folder in folders for each in folder.iterdir())
    kept = [each for each in every if each.name.rpartition(".")[2] in _TYPES]
    return {each.name: _sent(each) for each in sorted(kept, key=lambda each: each.name)}


def _sent(file: Traversable) -> bytes:
    """What browsers get of a file: scripts and style sheets without indentation and comments, of
    scripts those on lines of their own and types, which are a third. They have no text of several
    lines."""
    content = file.read_bytes()
    left_out = _LEFT_OUT.get(file.name.rpartition(".")[2])
    return content if left_out is None else left_out.sub(b"", content)


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

    @route(ASSETS + "/{hash}/{file}", "GET", "HEAD", sharing=CorsPolicy.NOBODY)
    async def get(self, request: Request, _: identity.Identity | None) -> Response:
        *_above, hashed, name = request.path.split("/")
        content = load_assets().get(name)
        if content is None or hashed != _hash():
            raise errors.NotFound(WebCodes.NO_SUCH_ASSET)
        headers = [_FOR_GOOD]
        if not name.endswith(_COMPRESSED_ALREADY) and accepts_gzip(request.fields):
            content = _compressed(name)
            headers.append(CONTENT_ENCODING)
        media_type = _TYPES[name.rpartition(".")[2]]
        return content_response(
            content, media_type, method=request.method, headers=headers, vary=_VARY
        )


HTML: Final = "text/html; charset=utf-8"
PAGE_POLICY = (
    b"content-security-policy",
    (
        b"default-src 'none'; img-src 'self'; style-src 'self'; font-src 'self'; base-uri 'none'; "
        b"frame-ancestors 'none'"
    ),
)
"""Pages load nothing except the style sheet, the font and the icon of this server, and run no
script."""


@cache
def load_templates() -> Environment:
    """Read every template, so that no page depends on the files of the package later."""
    # Commands import this module, too, and render no page.
    from jinja2 import DictLoader, Environment, StrictUndefined, select_autoescape  # noqa: PLC0415

    environment = Environment(
        loader=DictLoader(dict(_all_templates())),
        auto_reload=False,
        autoescape=select_autoescape(),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n"],
    )
    environment.install_gettext_callables(  # type: ignore[attr-defined]
        lambda message: current_texts().get(message),
        lambda singular, plural, number: current_texts().get_plural(singular, plural, number),
        newstyle=True,
    )
    environment.globals["_"] = _translated  # faster than that of the extension
    environment.globals["page_language"] = lambda: current_texts().language
    environment.globals["asset_url"] = asset_url
    environment.globals["face_url"] = face_url
    environment.filters |= {"initials": initials, "hue": hue}
    environment.globals["has_asset"] = load_assets().__contains__
    return environment


def _translated(message: str, /, **values: object) -> Markup:
    """A text in the language of the request, in which ``%(name)s`` stands for a value."""
    text = current_texts().markup(message)
    return text % values if values else text


def _all_templates() -> Iterator[tuple[str, str]]:
    yield from _templates(files("podstead.web") / "templates")
    for name, folder in _folders_of_features().items():
        yield from _templates(folder, f"pods/{name}/")


def _folders_of_features() -> Mapping[str, Traversable]:
    """The folders with the templates and scripts of features, by the names of their packages."""
    packages = [each.templates for each in features() if each.templates is not None]
    folders = {each.rpartition(".")[2]: files(each) / "templates" for each in packages}
    return {name: folder for name, folder in folders.items() if folder.is_dir()}


def _templates(folder: Traversable, above: str = "") -> Iterator[tuple[str, str]]:
    """The text of each template by the name that other templates use for it."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _templates(entry, f"{above}{entry.name}/")
        else:
            yield above + entry.name, entry.read_text(encoding="utf-8")


def render(template: str, **context: object) -> bytes:
    """Render a page from a template. The caller chooses the Content-Security-Policy."""
    return load_templates().get_template(template).render(context).encode()


def page_response(
    page: bytes, *, method: str, status: int = 200, headers: Iterable[HeaderField] = ()
) -> Response:
    """The response with one of the pages of this module."""
    return content_response(
        page, HTML, method=method, status=status, headers=[PAGE_POLICY, *headers]
    )
