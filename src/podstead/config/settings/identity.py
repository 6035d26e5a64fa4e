"""The settings for identity providers, methods of authentication, and simple tokens."""

from dataclasses import dataclass
from pathlib import Path

from podstead.config import value_types
from podstead.config.table import Group, Sources, optional, setting, several
from podstead.config.value_types import Secret


@dataclass(frozen=True, kw_only=True)
class IdentitySettings:
    """The settings of this part."""

    idp: bool = setting(
        False,
        value_types.SWITCH,
        Group.IDENTITY,
        "Whether this server is also a Solid-OIDC identity provider, with accounts, sign-in pages "
        "and tokens for applications.",
    )
    idp_base_url: str | None = optional(
        value_types.BASE_URL,
        Group.IDENTITY,
        "The URL of the identity provider, if it is to have its own origin. The sign-in pages, "
        "their cookies and the issuer of tokens then use this origin instead of the base URL, and "
        "it serves no pods. Its host must differ from the host of the base URL, and must also lead "
        "to this server.",
        shown_default="the base URL",
        reason="Browsers isolate pages by origin, so pages stored in pods then share nothing with "
        "the sign-in pages.",
    )
    accepted_issuers: tuple[str, ...] = several(
        value_types.ISSUER,
        Group.IDENTITY,
        "An identity provider whose tokens the server accepts. If you name any, the server accepts "
        "only tokens from these providers and from its own.",
        reason="If you name none, the profile of each WebID decides which providers may issue "
        "tokens for it.",
        name="accepted-issuer",
    )
    refused_issuers: tuple[str, ...] = several(
        value_types.ISSUER,
        Group.IDENTITY,
        "An identity provider whose tokens the server rejects.",
        name="refused-issuer",
    )
    require_ath: bool = setting(
        False,
        value_types.SWITCH,
        Group.IDENTITY,
        "Whether a DPoP proof must contain the hash of the access token that it accompanies (the "
        "ath claim).",
        reason="RFC 9449 requires the claim, but some applications in use omit it.",
    )
    refuse_replayed_proofs: bool = setting(
        True,
        value_types.SWITCH,
        Group.IDENTITY,
        "Whether each DPoP proof is valid for one request only.",
        reason="Turn it off for test suites that send the same request twice.",
    )

    dpop_nonce: bool = setting(
        False,
        value_types.SWITCH,
        Group.IDENTITY,
        "Whether a DPoP proof must contain a nonce that this server issued within the last few "
        "minutes.",
        reason="Nonces prevent proofs from being created in advance. Not every application can "
        "retry a request with a nonce.",
    )


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
