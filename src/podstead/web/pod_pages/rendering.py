"""How is a page sent? Rendered from a template, with the policy that it needs.

A page loads nothing from elsewhere, and runs only the scripts of this server's package; neither
scripts nor styles stand in the page itself. Pages depend on the cookie and must not be cached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from podstead.web.browser_responses import VARY_BY_COOKIE
from podstead.web.pages import HTML, render
from podstead.web.pod_pages import addresses, formats
from podstead.web.pod_pages.navigation import NavigationEntry, entries
from podstead.web.pod_pages.notices import NOTICES, Notice, Tone
from podstead.web.pod_pages.page_request import PageRequest
from podstead.web.pod_pages.texts import LANGUAGES, _
from podstead.web.response import NO_STORE, HeaderField, Response, content_response

_VARY: Final = VARY_BY_COOKIE + b", Accept-Language"
_POLICY: Final = (
    b"content-security-policy",
    (
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        b"media-src 'self' blob:; frame-src 'self'; object-src 'self'; connect-src 'self'; "
        b"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
)


@dataclass(frozen=True, slots=True)
class ShownNotice:
    """A notice as the page shows it."""

    tone: Tone
    text: str


class PageRenderer:
    """Creates the responses of pages."""

    def __init__(self, *, server_name: str, base_url: str) -> None:
        """``server_name`` is the name of the server for people: the host of its base URL."""
        self._server_name = server_name
        self._base_url = base_url
        self._entries: Callable[[str], Sequence[NavigationEntry]] = entries(frozenset())

    def link_to(self, paths: Iterable[str]) -> None:
        """Let the navigation link to those of its pages that are among ``paths``."""
        self._entries = entries(frozenset(paths))

    def page(
        self,
        page: PageRequest,
        template: str,
        *,
        status: int = 200,
        notice: Notice | None = None,
        headers: Sequence[HeaderField] = (),
        **context: object,
    ) -> Response:
        """A page from a template in ``templates/pods``; ``notice`` replaces that of the cookie."""
        body = render(
            f"pods/{template}",
            server_name=self._server_name,
            base_url=self._base_url,
            person=page.person,
            csrf_token=page.person.csrf_token if page.person else "",
            language=page.texts.language,
            languages=LANGUAGES,
            address=page.address,
            navigation=self._entries(page.request.path) if page.person else (),
            notice=_shown(notice or page.notice),
            addresses=addresses,
            formats=formats,
            status=status,
            is_sign_in=page.request.path == addresses.SIGN_IN,
            **context,
        )
        return content_response(
            body,
            HTML,
            method=page.request.method,
            status=status,
            headers=[_POLICY, NO_STORE, *headers],
            vary=_VARY,
        )


def _shown(notice: Notice | None) -> ShownNotice | None:
    if notice is None:
        return None
    tone, text = NOTICES[notice.name]
    return ShownNotice(tone, _(text, subject=notice.subject))
