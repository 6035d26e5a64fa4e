"""The settings for simple tokens: issuing, signing keys and lifetime."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from podstead.config import value_types
from podstead.config.table import Group, Sources, optional, setting
from podstead.config.value_types import Secret

_DAY_S = 24 * 3600


@dataclass(frozen=True, kw_only=True)
class TokenSettings:
    """The settings of this part."""

    simple_tokens: bool = setting(
        True,
        value_types.SWITCH,
        Group.TOKENS,
        "Whether the server issues a simple token with each new pod and accepts such tokens.",
    )
    token_lifetime_s: int = setting(
        30 * _DAY_S,
        value_types.integer(0),
        Group.TOKENS,
        "How long a new token is valid; 0 means that it does not expire.",
        unit="seconds",
        reason="Thirty days; 'podstead token create' issues the next one.",
    )
    token_secret: Secret | None = optional(
        value_types.SECRET_KEY,
        Group.TOKENS,
        "The key that signs tokens, instead of the one that the server creates under the root at "
        "the first start.",
        sources=Sources.VARIABLE,
        shown_default="created at the first start",
        secret=True,
    )
    token_secret_previous: Secret | None = optional(
        value_types.SECRET_KEY,
        Group.TOKENS,
        "The previous signing key. After you change token-secret, tokens signed with this key "
        "remain valid.",
        sources=Sources.VARIABLE,
        secret=True,
    )
    token_secret_file: Path | None = optional(
        value_types.FILE,
        Group.TOKENS,
        "A file whose first line is the key that signs tokens. An optional second line is the "
        "previous key.",
    )
