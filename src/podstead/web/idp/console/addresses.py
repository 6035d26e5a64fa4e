"""The addresses of the console."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from podstead.web.pages.addresses import CONSOLE

ACCOUNTS: Final = f"{CONSOLE}accounts"
ACCOUNT: Final = f"{ACCOUNTS}/{{pod}}"
ACTION: Final = f"{ACCOUNT}/{{action}}"
QUOTA: Final = f"{ACCOUNT}/quota"
HEALTH: Final = f"{CONSOLE}health"
SETTINGS: Final = f"{CONSOLE}settings"
LOG: Final = f"{CONSOLE}log"
INVITATIONS: Final = f"{CONSOLE}invitations"
REVOKE: Final = f"{INVITATIONS}/{{invitation}}/revoke"


def account_url(pod: str) -> str:
    """The page about a pod and its account."""
    return f"{ACCOUNTS}/{quote(pod, safe='')}"


def action_url(pod: str, action: str) -> str:
    """The page on which an operator confirms an action."""
    return f"{account_url(pod)}/{action}"
