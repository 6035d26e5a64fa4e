"""The few pages that this server shows a person: rendered from templates, escaped by default."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Final

from podstead.web.response import HeaderField, Response, content_response

if TYPE_CHECKING:
    from jinja2 import Environment

HTML: Final = "text/html; charset=utf-8"
PAGE_POLICY = (
    b"content-security-policy",
    (
        b"default-src 'none'; img-src 'self'; style-src 'unsafe-inline'; base-uri 'none'; "
        b"frame-ancestors 'none'"
    ),
)
"""Pages load nothing but the icon that browsers ask for, and run no script; their one style sheet
is in the page itself."""


@cache
def load_templates() -> Environment:
    """Read every template, so that later no page depends on the files of the package."""
    # Commands import this module as well, and show no page.
    from jinja2 import (  # noqa: PLC0415
        DictLoader,
        Environment,
        StrictUndefined,
        select_autoescape,
    )

    return Environment(
        loader=DictLoader(dict(_templates(files("podstead.web") / "templates"))),
        auto_reload=False,
        autoescape=select_autoescape(),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _templates(folder: Traversable, above: str = "") -> Iterator[tuple[str, str]]:
    """The text of each template by its name, as templates name each other."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _templates(entry, f"{above}{entry.name}/")
        else:
            yield above + entry.name, entry.read_text(encoding="utf-8")


def render(template: str, **context: object) -> bytes:
    """A page of one of the templates. Whoever sends it says which policy it comes with."""
    return load_templates().get_template(template).render(context).encode()


def page_response(
    page: bytes, *, method: str, status: int = 200, headers: Iterable[HeaderField] = ()
) -> Response:
    """The response with one of the pages below."""
    return content_response(
        page, HTML, method=method, status=status, headers=[PAGE_POLICY, *headers]
    )


def error_page(*, status: int, reason: str, message: str) -> bytes:
    """A page that says what went wrong."""
    return render("error.html", status=status, reason=reason, message=message)


def welcome_page(
    *, base_url: str, version: str, provider: str | None = None, registration_open: bool = True
) -> bytes:
    """The page at the server's root: what this is and how to begin; if there is a ``provider``,
    by its pages."""
    return render(
        "welcome.html",
        base_url=base_url,
        version=version,
        provider=provider,
        pages="" if provider == base_url else provider,
        registration_open=registration_open,
    )
