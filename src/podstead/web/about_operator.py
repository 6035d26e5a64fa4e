"""Who runs this server, how are they reached, and what are the terms?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

_NOT_ESCAPED: Final = "@!$&'*+,-./:;=?_~%"


@dataclass(frozen=True, slots=True)
class AboutOperator:
    """What pages say about the operator; each text may be empty."""

    name: str = ""
    contact: str = ""
    """An e-mail address or a URL."""
    terms_url: str = ""
    """Where the terms are to be read."""

    @property
    def contact_url(self) -> str:
        """The address of the link to the contact."""
        if self.contact.startswith(("https://", "http://")):
            return self.contact
        return f"mailto:{quote(self.contact, safe=_NOT_ESCAPED)}"
