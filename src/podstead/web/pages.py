"""Renders the pages of this server from templates, which escape values by default."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from podstead.features import features
from podstead.web.pod_pages.assets import asset_url
from podstead.web.pod_pages.texts import current_texts
from podstead.web.response import HeaderField, Response, content_response

if TYPE_CHECKING:
    from jinja2 import Environment

HTML: Final = "text/html; charset=utf-8"
PAGE_POLICY = (
    b"content-security-policy",
    (
        b"default-src 'none'; img-src 'self'; style-src 'self'; base-uri 'none'; "
        b"frame-ancestors 'none'"
    ),
)
"""Pages load nothing except the style sheet and the icon of this server, and run no script."""


@cache
def load_templates() -> Environment:
    """Read every template, so that no page depends on the files of the package later."""
    # Commands import this module, too, and render no page.
    from jinja2 import (  # noqa: PLC0415
        DictLoader,
        Environment,
        StrictUndefined,
        select_autoescape,
    )

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
    return environment


def _translated(message: str, /, **values: object) -> Markup:
    """A text in the language of the request, in which ``%(name)s`` stands for a value."""
    text = current_texts().markup(message)
    return text % values if values else text


def _all_templates() -> Iterator[tuple[str, str]]:
    yield from _templates(files("podstead.web") / "templates")
    for package in (each.templates for each in features()):
        if package is not None:
            below = package.rpartition(".")[2]
            yield from _templates(files(package) / "templates", f"pods/{below}/")


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
