"""Where does a request to the provider come from? Its address and its ``User-Agent``."""

from __future__ import annotations

from typing import Final

from podstead.idp.audit import RequestSource
from podstead.web.limits import address_key
from podstead.web.pod_pages.texts import current_texts
from podstead.web.request import Request

_MAX_USER_AGENT_CHARACTERS: Final = 300


def request_source(request: Request) -> RequestSource:
    """The source of a request; its address is the one that trusted proxies report."""
    address = request.client_address
    user_agent = request.fields.get(b"user-agent") or ""
    return RequestSource(
        address,
        address_key(address),
        user_agent[:_MAX_USER_AGENT_CHARACTERS],
        language=current_texts().language,
    )
