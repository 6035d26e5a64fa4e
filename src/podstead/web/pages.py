"""The few pages that this server shows a person: rendered from templates, escaped by default."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment

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
def _environment() -> Environment:
    # Imported at the first page: most servers answer programs for a long time before one is asked.
    from jinja2 import (  # noqa: PLC0415
        Environment,
        PackageLoader,
        StrictUndefined,
        select_autoescape,
    )

    return Environment(
        loader=PackageLoader("podstead.web"),
        autoescape=select_autoescape(),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(template: str, **context: object) -> bytes:
    """A page of one of the templates. Whoever sends it says which policy it comes with."""
    return _environment().get_template(template).render(context).encode()


def error_page(*, status: int, reason: str, message: str) -> bytes:
    """A page that says what went wrong."""
    return render("error.html", status=status, reason=reason, message=message)


def welcome_page(
    *, base_url: str, version: str, people: bool = False, registration_open: bool = True
) -> bytes:
    """The page at the server's root: what this is and how to begin; for ``people`` by pages."""
    return render(
        "welcome.html",
        base_url=base_url,
        version=version,
        people=people,
        registration_open=registration_open,
    )
