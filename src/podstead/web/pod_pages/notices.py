"""What does the next page say about what was just done? A notice, by its name.

The name is stored in a cookie until the next page shows the text; the ``subject`` is what the
notice is about, such as the name of a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final
from urllib.parse import parse_qsl, urlencode

from podstead.web.browsers import CookieJar
from podstead.web.pod_pages.texts import N_
from podstead.web.request import Request
from podstead.web.response import HeaderField

_COOKIE: Final = "podstead-pages-notice"
_KEPT_S: Final = 60
_MAX_CHARACTERS: Final = 3000
_MAX_SUBJECT_CHARACTERS: Final = 500


class Tone(Enum):
    """How a notice looks: the class of the style sheet."""

    DONE = "note"
    PROBLEM = "alarm"


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice for the next page."""

    name: str
    subject: str = ""


NOTICES: dict[str, tuple[Tone, str]] = {
    "sign-in-first": (Tone.DONE, N_("Sign in to see this page.")),
    "signed-in": (Tone.DONE, N_("You are signed in as %(subject)s.")),
    "signed-out": (Tone.DONE, N_("You are signed out.")),
    "wrong-token": (
        Tone.PROBLEM,
        N_("This is not a valid token of a pod here: it may have expired or been revoked."),
    ),
}
"""The texts by name. Each part of the pages adds its own, with :func:`add_notices`."""


def add_notices(tone: Tone, **texts: str) -> None:
    """Add the notices of a part of the pages; ``_`` in a name stands for ``-``."""
    NOTICES.update({name.replace("_", "-"): (tone, text) for name, text in texts.items()})


def set_notice(cookies: CookieJar, notice: Notice) -> HeaderField:
    """Store a notice in the browser until the next page."""
    fields = {"name": notice.name, "subject": notice.subject[:_MAX_SUBJECT_CHARACTERS]}
    return cookies.set(_COOKIE, urlencode(fields), _KEPT_S)


def read_notice(cookies: CookieJar, request: Request) -> Notice | None:
    """The notice for this page."""
    value = cookies.value(request, _COOKIE)
    if value is None or len(value) > _MAX_CHARACTERS:
        return None
    try:
        fields = dict(parse_qsl(value, errors="strict", max_num_fields=2))
    except ValueError:
        return None
    name = fields.get("name", "")
    return Notice(name, fields.get("subject", "")) if name in NOTICES else None


def clear_notice(cookies: CookieJar) -> HeaderField:
    """Remove the notice, which is shown once."""
    return cookies.clear(_COOKIE)
