"""Which simple tokens are there, and how long do they last?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from podstead.config import kinds
from podstead.config.kinds import Secret
from podstead.config.table import Group, Sources, optional, setting

_DAY_S = 24 * 3600


@dataclass(frozen=True, kw_only=True)
class TokenSettings:
    """The settings of this part."""

    simple_tokens: bool = setting(
        True,
        "simple-tokens",
        kinds.SWITCH,
        Group.TOKENS,
        "Whether new pods come with a token, and tokens are accepted.",
    )
    token_lifetime_s: int = setting(
        30 * _DAY_S,
        "token-lifetime-s",
        kinds.integer(0),
        Group.TOKENS,
        "How long a new token is valid; 0 is without end.",
        unit="seconds",
        reason="Thirty days; 'podstead token create' makes the next one.",
    )
    token_secret: Secret | None = optional(
        "token-secret",
        kinds.SECRET_KEY,
        Group.TOKENS,
        ("The key that signs tokens, instead of the one made at the first start under the root."),
        sources=Sources.VARIABLE,
        shown_default="made at the first start",
        secret=True,
    )
    token_secret_previous: Secret | None = optional(
        "token-secret-previous",
        kinds.SECRET_KEY,
        Group.TOKENS,
        "The key before that one, after a change: its tokens stay valid.",
        sources=Sources.VARIABLE,
        secret=True,
    )
    token_secret_file: Path | None = optional(
        "token-secret-file",
        kinds.FILE,
        Group.TOKENS,
        (
            "A file whose first line is the key that signs tokens and whose second line, if "
            "any, is the previous one."
        ),
    )
