"""Two-factor authentication: one-time passwords (RFC 6238) and recovery codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podstead.config import value_types
from podstead.config.table import Group, setting
from podstead.features import Feature, WorkerFeature

if TYPE_CHECKING:  # a server without a provider loads none of this
    from podstead.app.services import Services
    from podstead.config import Settings
    from podstead.idp.administration.service import AccountReset


@dataclass(frozen=True, kw_only=True)
class TwoFactorSettings:
    """The settings of this part."""

    require_two_factor: bool = setting(
        False,
        value_types.SWITCH,
        Group.IDENTITY,
        "Whether people who sign in with a password need a second factor: an authenticator app or "
        "a passkey. Whoever has none sets one up at the next sign-in, and new people while they "
        "register. Requires idp.",
        reason="People who sign in with a passkey have given two factors already.",
    )


_RESET_HELP = """Remove the authenticator app and the recovery codes of each account NAME.

    This is for people who have lost both: make sure who asks. The account is signed out in every
    browser, and its password alone signs in again. If the server requires a second factor, the
    next sign-in sets one up. Passkeys remain.
    """


class TwoFactorFeature(Feature):
    """What two-factor authentication adds to the server."""

    settings = TwoFactorSettings
    templates = __name__

    def check_settings(self, settings: Settings) -> None:
        from podstead.core.errors import StartRefused

        if settings.of(TwoFactorSettings).require_two_factor and not settings.idp:
            raise StartRefused(
                "require-two-factor is on, but idp is off. Add --idp, or remove require-two-factor."
            )

    def modules(self, settings: Settings) -> Sequence[str]:
        return ("podstead.features.two_factor.account_pages",) if settings.idp else ()

    def account_resets(self) -> Sequence[AccountReset]:
        from podstead.features.two_factor.codes import TwoFactorEvents
        from podstead.features.two_factor.service import reset_records
        from podstead.idp.administration.service import AccountReset
        from podstead.web.pages.texts import N_

        reset = AccountReset(
            name="reset-two-factor",
            event=TwoFactorEvents.RESET,
            records=reset_records,
            short_help="Remove lost second factors.",
            done="The second factor of the account {name} has been reset.",
            help=_RESET_HELP,
            label=N_("Reset the second factor"),
            hint=N_("For a person who has lost the authenticator app and the recovery codes."),
            question=N_("Reset the second factor of %(name)s?"),
            consequence=N_(
                "The authenticator app and the recovery codes are removed, and the account is "
                "signed out in every browser. Its password alone signs in again, so make sure "
                "first who asks."
            ),
            notice="second-factor-reset",
        )
        return [reset]

    def in_worker(self, services: Services) -> WorkerFeature | None:
        if services.provider is None:
            return None
        from podstead.features.two_factor.account_pages import TwoFactorInWorker

        return TwoFactorInWorker(services.provider)


FEATURE = TwoFactorFeature()
