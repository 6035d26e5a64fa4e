"""Passkeys of accounts: adding them, keeping them, and signing in with them (WebAuthn Level 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podstead.config import value_types
from podstead.config.table import Group, optional, setting, several
from podstead.features import Feature, WorkerFeature
from podstead.outbound.urls import Origin

if TYPE_CHECKING:  # a server without a provider loads none of this
    from podstead.app.services import Services
    from podstead.config import Settings
    from podstead.idp.sign_in_methods import SignInMethod


@dataclass(frozen=True, kw_only=True)
class PasskeySettings:
    """The settings of this part."""

    passkey_rp_id: str | None = optional(
        value_types.DOMAIN,
        Group.IDENTITY,
        "The domain that passkeys are bound to: the host of the base URL (or of idp-base-url), or "
        "a parent domain of it. Passkeys bound to one domain do not work for another, so do not "
        "change it once people have passkeys.",
        shown_default="the host of the base URL, or of idp-base-url",
    )
    passkey_origins: tuple[Origin, ...] = several(
        value_types.ORIGIN,
        Group.IDENTITY,
        "A further origin whose pages may use this server's passkeys, such as the origin of a "
        "host-alias or of an application that displays the sign-in pages itself. It must belong to "
        "the domain that the passkeys are bound to.",
        reason="The server rejects a passkey response obtained by a page of any other origin.",
        name="passkey-origin",
    )
    passkey_requests_per_minute: int = setting(
        30,
        value_types.integer(0, 1_000_000),
        Group.RATES,
        "The maximum number of passkey requests that one address may send in a minute; further "
        "requests get 429. 0 means no limit. Signing in with a passkey takes two requests, and "
        "opening the sign-in page takes one.",
        unit="requests",
    )


class PasskeyFeature(Feature):
    """What passkeys add to the server."""

    settings = PasskeySettings
    templates = __name__

    def check_settings(self, settings: Settings) -> None:
        mine = settings.of(PasskeySettings)
        if not mine.passkey_rp_id and not mine.passkey_origins:
            return  # the host of the base URL is always valid
        from podstead.core.errors import StartRefused
        from podstead.features.passkeys.ceremonies import PartyRefused, relying_party

        try:
            relying_party(
                settings.issuer, rp_id=mine.passkey_rp_id, further_origins=mine.passkey_origins
            )
        except PartyRefused as refusal:
            given = "passkey-rp-id" if mine.passkey_rp_id else "passkey-origin"
            if mine.passkey_rp_id and mine.passkey_origins:
                given = "passkey-rp-id with passkey-origin"
            raise StartRefused(f"{given} is not valid: {refusal}.") from None

    def modules(self, settings: Settings) -> Sequence[str]:
        if not settings.idp:
            return ()
        return (
            "podstead.features.passkeys.pages",
            "cryptography.hazmat.backends.openssl.backend",  # webauthn verifies signatures with it
            "webauthn",
            "webauthn.helpers",
            "webauthn.helpers.cose",
        )

    def sign_in_methods(self) -> Sequence[SignInMethod]:
        from podstead.features.passkeys.ceremonies import PASSKEYS
        from podstead.idp.sign_in_methods import SignInMethod

        return [SignInMethod(PASSKEYS, is_second_factor=True)]

    def in_worker(self, services: Services) -> WorkerFeature | None:
        if services.provider is None:
            return None
        from podstead.features.passkeys.pages import passkeys_in_worker

        return passkeys_in_worker(services.provider)


FEATURE = PasskeyFeature()
