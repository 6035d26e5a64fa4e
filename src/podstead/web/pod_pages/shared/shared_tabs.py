"""The lists about sharing, as tabs: what others share, what the person shares, and who asks."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from podstead.web.pages.addresses import REQUESTS, SHARED
from podstead.web.pages.request import PageRequest
from podstead.web.pages.texts import _

WITH_ME: Final = "with-me"
BY_ME: Final = "by-me"
ASKED: Final = "requests"


def shared_tabs(page: PageRequest, current: str) -> list[tuple[str, str, bool]]:
    """Address, title and whether it is the ``current`` one; none for a person without a pod, who
    has only one list. Raises NotAuthenticated."""
    if not page.signed_in().pods:
        return []
    by_me = f"{SHARED}?{urlencode({'view': BY_ME})}"
    return [
        (SHARED, _("Shared with me"), current == WITH_ME),
        (by_me, _("Shared by me"), current == BY_ME),
        (REQUESTS, _("Requests for access"), current == ASKED),
    ]
