"""Who says who somebody is?"""

from __future__ import annotations

from dataclasses import dataclass

from podstead.config import kinds
from podstead.config.table import Group, optional, setting, several
from podstead.outbound.urls import Origin


@dataclass(frozen=True, kw_only=True)
class IdentitySettings:
    """The settings of this part."""

    idp: bool = setting(
        False,
        "idp",
        kinds.SWITCH,
        Group.IDENTITY,
        (
            "Whether this server is an identity provider (Solid-OIDC): accounts, pages to sign in, "
            "and tokens for applications."
        ),
    )
    idp_base_url: str | None = optional(
        "idp-base-url",
        kinds.BASE_URL,
        Group.IDENTITY,
        (
            "The URL of the identity provider, if it is to have an origin of its own: the pages to "
            "sign in, their cookies and the tokens' issuer are there and not at the base URL, and "
            "no pod is. Its host must be another one than the base URL's, and lead to this server "
            "as well."
        ),
        shown_default="the base URL",
        reason=(
            "Browsers separate by origin, so pages that are stored in pods then have nothing in "
            "common with the pages to sign in."
        ),
    )
    accepted_issuers: tuple[str, ...] = several(
        "accepted-issuer",
        kinds.ISSUER,
        Group.IDENTITY,
        (
            "A provider whose tokens are accepted; if any is given, those of no other are, but "
            "of this server's own."
        ),
        reason="Without any, a WebID's own document decides which providers speak for it.",
    )
    refused_issuers: tuple[str, ...] = several(
        "refused-issuer",
        kinds.ISSUER,
        Group.IDENTITY,
        "A provider whose tokens are not accepted.",
    )
    require_ath: bool = setting(
        False,
        "require-ath",
        kinds.SWITCH,
        Group.IDENTITY,
        "Whether a DPoP proof must name the access token that it is sent with.",
        reason="RFC 9449 asks for it, yet applications in use do not do it.",
    )
    refuse_replayed_proofs: bool = setting(
        True,
        "refuse-replayed-proofs",
        kinds.SWITCH,
        Group.IDENTITY,
        "Whether a DPoP proof can be used for one request only.",
        reason="Turn it off for test suites that repeat requests as they are.",
    )

    dpop_nonce: bool = setting(
        False,
        "dpop-nonce",
        kinds.SWITCH,
        Group.IDENTITY,
        "Whether a DPoP proof must hold a nonce that this server gave out in the last minutes.",
        reason=(
            "Then nobody can make proofs ahead of time. Not every application knows how to ask "
            "again with a nonce."
        ),
    )
    nostr_require_payload: bool = setting(
        False,
        "nostr-require-payload",
        kinds.SWITCH,
        Group.IDENTITY,
        "Whether a request signed with a Nostr key must name the hash of its content.",
        reason="NIP-98 only recommends it, yet the signature covers no content without it.",
    )
    nostr_basic: str = setting(
        "safe",
        "nostr-basic",
        kinds.one_of("safe", "any", "off"),
        Group.IDENTITY,
        (
            "What a request signed with a Nostr key may do if it is signed for any method and a "
            "part of the path, as helpers of git send it by Basic authentication: read, and "
            "push by git (safe), anything (any), or not be accepted in that form (off)."
        ),
    )

    passkey_rp_id: str | None = optional(
        "passkey-rp-id",
        kinds.DOMAIN,
        Group.IDENTITY,
        (
            "The domain that passkeys are made for: the host of the base URL (or of idp-base-url), "
            "or the end of it. Passkeys made for one are of no use for another, so do not change "
            "it once people have some."
        ),
        shown_default="the host of the base URL, or of idp-base-url",
    )
    passkey_origins: tuple[Origin, ...] = several(
        "passkey-origin",
        kinds.ORIGIN,
        Group.IDENTITY,
        (
            "A further origin whose pages may use passkeys of this server, of the domain that they "
            "are made for; as of a host-alias, or of an application that shows the pages itself."
        ),
        reason="A page of anybody else that asks for a passkey gets nothing that counts here.",
    )
    webid_tls: bool = setting(
        False,
        "webid-tls",
        kinds.SWITCH,
        Group.IDENTITY,
        (
            "Whether client certificates say who asks (WebID-TLS). It needs ssl-cert and ssl-key, "
            "or a trusted proxy that passes certificates on in client-cert-header."
        ),
        reason="Browsers that hold certificates ask which one to send to a server that wants one.",
    )
    client_cert_header: str | None = optional(
        "client-cert-header",
        kinds.FIELD_NAME,
        Group.IDENTITY,
        (
            "The header in which a trusted proxy passes on the certificate of a client. The proxy "
            "must remove it from what clients send."
        ),
    )
    client_cert_format: str = setting(
        "rfc9440",
        "client-cert-format",
        kinds.one_of("rfc9440", "pem-urlencoded", "pem", "base64der"),
        Group.IDENTITY,
        (
            "How the certificate is written there: as RFC 9440 says, as PEM in percent-encoding "
            "(nginx, Traefik), as plain PEM, or as DER in base64 (HAProxy)."
        ),
    )
    client_cert_origins: tuple[Origin, ...] = several(
        "client-cert-origin",
        kinds.ORIGIN,
        Group.IDENTITY,
        "A web application whose pages may use the client certificates of their visitors.",
        reason=(
            "Browsers send certificates with whatever any page asks for, so requests of other "
            "sites' pages count as anonymous."
        ),
    )
    client_cert_least_bits: int = setting(
        2048,
        "client-cert-least-bits",
        kinds.integer(1024, 16384),
        Group.IDENTITY,
        "The size that the RSA key of a client certificate must have at least.",
        unit="bits",
        reason="Shorter keys may be broken; 1024 is for devices that cannot have others.",
    )
