"""The cookies of the pages, and the flash message that one of them carries to the next page.

No script can read them, and no browser sends them with the forms of other sites. If the server is
reached over https, the names of cookies begin with ``__Host-`` or ``__Secure-``, so that browsers
refuse cookies of that name from anywhere else; over plain http no client would accept such a
cookie.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final
from urllib.parse import parse_qsl, urlencode

from podstead.core.codes import ErrorCode
from podstead.web.pages.addresses import PREFIX
from podstead.web.pages.texts import N_
from podstead.web.request import Request
from podstead.web.response import HeaderField

SESSION: Final = "podstead-session"
"""The session of an account."""
BROWSER: Final = "podstead-browser"
"""The secret that ties sign-ins in progress to the browser that began them (A-57)."""
KNOWN: Final = "podstead-known"
"""The marks of the accounts that the browser has signed in to (A-61)."""
LANGUAGE: Final = "podstead-language"
POD_SESSION: Final = "podstead-pages"
"""A session that began with the token of a pod."""
VISITOR_SESSION: Final = "podstead-visitor"
"""A session that began at another provider."""
VISIT: Final = "podstead-visit"
"""A sign-in in progress at another provider."""
_FLASH_MESSAGE: Final = "podstead-notice"
_SIGNED_IN: Final = "podstead-signed-in"
_ONLY_FOR_PAGES: Final = frozenset({POD_SESSION, VISITOR_SESSION, VISIT})
"""Browsers send these to the pages only. The first page is above them and gets another cookie,
which says no more than that there is such a session."""

_SECRET: Final = re.compile(r"[0-9a-f]{64}")
_MARKS: Final = re.compile(r"[0-9a-f.~]{1,1000}")
# Browsers may send each cookie in a field of its own over HTTP/2 (RFC 9113 section 8.2.3), and
# fields of the same name were joined with a comma, which no value of this server contains.
_BETWEEN: Final = re.compile(r"[;,] *")
_FLASH_MESSAGE_S: Final = 60
_MAX_FIELDS: Final = 4
_SHOWN: Final = re.compile(r"%\((?!subject\))([a-z_]+)\)s")
_MAX_FLASH_CHARACTERS: Final = 4096
_MAX_SUBJECT_CHARACTERS: Final = 500


class Tone(Enum):
    """How a flash message looks: the class of the style sheet."""

    DONE = "note"
    PROBLEM = "alarm"


@dataclass(frozen=True, slots=True)
class FlashMessage:
    """What the next page says about what was just done, by the name of a text; the ``subject`` is
    what it is about, such as the name of a file, or what the person had typed."""

    name: str
    subject: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """What else the text shows, by name."""


FLASH_MESSAGES: dict[str, tuple[Tone, str]] = {
    "sign-in-first": (Tone.DONE, N_("Sign in to see this page.")),
    "signed-in": (Tone.DONE, N_("You are signed in as %(subject)s.")),
    "signed-out": (Tone.DONE, N_("You are signed out.")),
    "wrong-token": (
        Tone.PROBLEM,
        N_("This is not a valid token of a pod here: it may have expired or been revoked."),
    ),
}
"""The texts by name. Each part of the pages adds its own, with :func:`add_flash_messages`."""


def add_flash_messages(tone: Tone, **texts: str) -> None:
    """Add the flash messages of a part of the pages; ``_`` in a name stands for ``-``."""
    FLASH_MESSAGES.update({name.replace("_", "-"): (tone, text) for name, text in texts.items()})


def add_refusals(*codes: ErrorCode) -> None:
    """Let the next page say why something was refused, by the names of the codes."""
    FLASH_MESSAGES.update({code.name: (Tone.PROBLEM, code.text) for code in codes})


@dataclass(frozen=True, slots=True)
class Cookies:
    """Reads and writes the cookies; ``secure`` if the server is reached over https. Browsers send
    those with a ``path`` below that path only."""

    secure: bool
    path: str | None = None

    def value(self, request: Request, name: str) -> str | None:
        """The value of a cookie as received."""
        sent = request.fields.get(b"cookie")
        if sent is None:
            return None
        wanted = self._full_name(name)
        pairs = (pair.partition("=") for pair in _BETWEEN.split(sent))
        return next((value.strip() for key, _, value in pairs if key.strip() == wanted), None)

    def secret(self, request: Request, name: str) -> str | None:
        """The value of a cookie that contains a secret of 32 bytes in hexadecimal digits."""
        value = self.value(request, name)
        return value if value is not None and _SECRET.fullmatch(value) else None

    def set(self, name: str, value: str, max_age_s: int | None = None) -> HeaderField:
        """Store a cookie, until the browser is closed without ``max_age_s``."""
        path = self.path or (PREFIX if name in _ONLY_FOR_PAGES else "/")
        parts = [f"{self._full_name(name)}={value}", f"Path={path}", "HttpOnly", "SameSite=Lax"]
        if self.secure:
            parts.append("Secure")
        if max_age_s is not None:
            parts.append(f"Max-Age={max_age_s}")
        return b"set-cookie", "; ".join(parts).encode("ascii")

    def clear(self, name: str) -> HeaderField:
        """Remove a cookie."""
        return self.set(name, "", 0)

    def _full_name(self, name: str) -> str:
        if not self.secure:
            return name
        is_below = self.path is not None or name in _ONLY_FOR_PAGES
        return f"__Secure-{name}" if is_below else f"__Host-{name}"

    # Sessions of the pages

    def set_page_session(self, name: str, secret: str) -> Sequence[HeaderField]:
        """Store a session of the pages until the browser is closed."""
        return [self.set(name, secret), self.set(_SIGNED_IN, "1")]

    def clear_page_session(self, name: str) -> Sequence[HeaderField]:
        """Remove a session of the pages."""
        return [self.clear(name), self.clear(_SIGNED_IN)]

    def says_signed_in(self, request: Request) -> bool:
        """Whether the browser has a session of the pages; it may have ended since."""
        return self.value(request, _SIGNED_IN) is not None

    # Accounts

    def marks(self, request: Request) -> str:
        """The marks of the accounts that the browser has signed in to
        (:mod:`podstead.idp.sign_in`); empty without any."""
        value = self.value(request, KNOWN)
        return value if value is not None and _MARKS.fullmatch(value) else ""

    def any_of_account(self, request: Request) -> bool:
        """Whether the request has a cookie that gives it any rights at the provider."""
        return any(self.secret(request, name) is not None for name in (SESSION, BROWSER))

    # The flash message

    def set_flash_message(self, message: FlashMessage) -> HeaderField:
        """Store a flash message in the browser until the next page."""
        subject = message.subject[:_MAX_SUBJECT_CHARACTERS]
        fields = {**message.parameters, "name": message.name, "subject": subject}
        value = urlencode({key: value for key, value in fields.items() if value})
        return self.set(_FLASH_MESSAGE, value, _FLASH_MESSAGE_S)

    def flash_message(self, request: Request) -> FlashMessage | None:
        """The flash message for this page."""
        value = self.value(request, _FLASH_MESSAGE)
        if value is None or len(value) > _MAX_FLASH_CHARACTERS:
            return None
        try:
            fields = dict(parse_qsl(value, errors="strict", max_num_fields=_MAX_FIELDS))
        except ValueError:
            return None
        name, subject = fields.pop("name", ""), fields.pop("subject", "")
        if (
            name not in FLASH_MESSAGES
            or not set(_SHOWN.findall(FLASH_MESSAGES[name][1])) <= fields.keys()
        ):
            return None
        return FlashMessage(name, subject, fields)

    def clear_flash_message(self) -> HeaderField:
        """Remove the flash message, which is shown once."""
        return self.clear(_FLASH_MESSAGE)
