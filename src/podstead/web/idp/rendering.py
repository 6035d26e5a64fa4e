"""How is a page of the provider sent? Rendered, with the policy that it needs.

Responses of these pages must not be cached, since URLs and pages contain secrets (A-45). A page
runs only its own script, which submits a form or talks to an authenticator. Its forms lead to this
server only, or from there to the application that it names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from podstead.core.clock import Randomness
from podstead.idp.sessions import OpenSession
from podstead.web.browsers import VARY_BY_COOKIE
from podstead.web.idp.cookies import Header
from podstead.web.pages import HTML, render
from podstead.web.pod_pages.addresses import SECURITY
from podstead.web.pod_pages.rendering import render_in_layout
from podstead.web.pod_pages.texts import LANGUAGES, current_texts
from podstead.web.response import NO_STORE, Response, content_response

_address: ContextVar[str | None] = ContextVar("address", default=None)
_is_form_sent: ContextVar[bool] = ContextVar("is_form_sent", default=False)
_NONCE_BYTES: Final = 16
_REFUSED: Final = 400
_PLAIN_AUTHORITY: Final = re.compile(r"[A-Za-z0-9.-]+(?::[0-9]+)?")


def use_address(address: str | None, *, is_form_sent: bool) -> None:
    """Set where the page of this request leads back to after the choice of another language;
    ``None`` for a page that cannot be shown again. Where ``is_form_sent``, that is the form, and
    only a page that refuses what was sent leads back to it: others may show a secret once."""
    _address.set(address)
    _is_form_sent.set(is_form_sent)


@dataclass(frozen=True, slots=True)
class Renderer:
    """Creates the responses of pages."""

    server_name: str
    """The name of the server for people: the host of its base URL."""
    randomness: Randomness

    def page(
        self,
        template: str,
        *,
        status: int = 200,
        form_targets: Sequence[str] = (),
        headers: Sequence[Header] = (),
        **context: object,
    ) -> Response:
        """A page of ``templates/idp``. ``form_targets`` are the URLs besides this server to which
        its forms may lead."""
        nonce = self.randomness.token_hex(_NONCE_BYTES)
        body = render(
            f"idp/{template}",
            nonce=nonce,
            server_name=self.server_name,
            status=status,
            page_address=None if _is_form_sent.get() and status < _REFUSED else _address.get(),
            languages=LANGUAGES,
            **context,
        )
        policy = (b"content-security-policy", _policy(nonce, form_targets))
        fields = [policy, NO_STORE, *headers]
        return content_response(
            body, HTML, method="GET", status=status, headers=fields, vary=VARY_BY_COOKIE
        )

    def page_of_person(
        self,
        template: str,
        owner: OpenSession,
        *,
        status: int = 200,
        headers: Sequence[Header] = (),
        **values: object,
    ) -> Response:
        """A page of ``templates/pods/account`` about the account of a person who is signed in, in
        the dress of the pages of pods. It runs no script."""
        body = render_in_layout(
            f"account/{template}",
            server_name=self.server_name,
            address=SECURITY,
            language=current_texts().language,
            offers_sign_in=False,
            with_scripts=False,
            values={
                "status": status,
                "actions": frozenset[str](),
                "account": owner.account,
                **values,
                "csrf_token": owner.session.csrf_token,
            },
        )
        policy = _policy(self.randomness.token_hex(_NONCE_BYTES), ())
        fields = [(b"content-security-policy", policy), NO_STORE, *headers]
        return content_response(
            body, HTML, method="GET", status=status, headers=fields, vary=VARY_BY_COOKIE
        )


def _policy(nonce: str, form_targets: Sequence[str]) -> bytes:
    """The Content-Security-Policy of A-45.

    Chromium checks every redirect after a form against ``form-action``, so it must contain the
    application's URL.
    """
    targets = " ".join(["'self'", *map(form_source, form_targets)])
    return (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'self'; "
        f"img-src 'self' data:; connect-src 'self'; form-action {targets}; "
        "frame-ancestors 'none'; base-uri 'none'"
    ).encode("ascii")


def form_source(url: str) -> str:
    """A URL as a source of ``form-action``: its origin, or its scheme if a policy cannot express
    the origin, as for a private scheme or an IPv6 address (CSP Level 3, 2.3.1)."""
    parts = urlsplit(url)
    if parts.scheme in ("http", "https") and _PLAIN_AUTHORITY.fullmatch(parts.netloc):
        return f"{parts.scheme}://{parts.netloc}"
    return f"{parts.scheme}:"
