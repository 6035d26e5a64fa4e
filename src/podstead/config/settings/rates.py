"""How often is too often?"""

from __future__ import annotations

from dataclasses import dataclass

from podstead.config import kinds
from podstead.config.table import Group, setting


@dataclass(frozen=True, kw_only=True)
class RateSettings:
    """The settings of this part."""

    pod_creations_per_hour: int = setting(
        60,
        "pod-creations-per-hour",
        kinds.integer(0, 1_000_000),
        Group.RATES,
        (
            "How many pods one address may create in an hour; 0 is without limit. Never "
            "counted for this machine itself while the base URL is a loopback one."
        ),
        unit="pods",
    )
    invalid_credentials_per_minute: int = setting(
        120,
        "invalid-credentials-per-minute",
        kinds.integer(0, 1_000_000),
        Group.RATES,
        (
            "How many requests with invalid credentials one address may make in a minute "
            "before it gets 429; 0 is without limit."
        ),
        unit="requests",
    )

    registrations_per_hour: int = setting(
        60,
        "registrations-per-hour",
        kinds.integer(0, 1_000_000),
        Group.RATES,
        (
            "How many applications one address may register in an hour at the identity provider; "
            "0 is without limit."
        ),
        unit="applications",
    )
    token_failures_per_minute: int = setting(
        30,
        "token-failures-per-minute",
        kinds.integer(0, 1_000_000),
        Group.RATES,
        (
            "How many token requests of one address may fail in a minute before it gets 429; 0 is "
            "without limit."
        ),
        unit="requests",
    )

    sign_in_failures_per_minute: int = setting(
        60,
        "sign-in-failures-per-minute",
        kinds.integer(0, 1_000_000),
        Group.RATES,
        (
            "How many sign-ins with a password may fail from one address in a minute before it "
            "gets 429; 0 is without limit. Only failures are counted, and those of browsers that "
            "have signed in to the account before are not."
        ),
        unit="sign-ins",
    )
    account_failures_per_minute: int = setting(
        10,
        "account-failures-per-minute",
        kinds.integer(0, 1_000_000),
        Group.RATES,
        "How many of them with one name, an e-mail address or a pod's name; 0 is without limit.",
        unit="sign-ins",
    )
    account_failures_in_a_row: int = setting(
        5,
        "account-failures-in-a-row",
        kinds.integer(0, 1_000_000),
        Group.RATES,
        (
            "After how many failed sign-ins in a row with one name, from any address, the next one "
            "with it has to wait 1 second, then 2, 4, and at most 60; 0 is never. The name is an "
            "e-mail address or a pod's name, each counted for itself and whether an account has it "
            "or not. That delays browsers that have not signed in to the account before, and "
            "scripts that send the password. A browser that has, within 180 days and since the "
            "password was changed, is known by a signed cookie: it waits after as many failures of "
            "its own only, whatever others do. Passkeys, Nostr keys, client credentials and who "
            "is signed in already never wait for failures of others."
        ),
        unit="sign-ins",
        reason="Guessing gets slow, and strangers cannot keep the owner out.",
    )
    account_failures_per_hour: int = setting(
        100,
        "account-failures-per-hour",
        kinds.integer(0, 1_000_000),
        Group.RATES,
        (
            "After how many failed sign-ins within an hour with one name, from any address, "
            "sign-ins with it pause for 15 minutes; 0 is never. What account-failures-in-a-row "
            "says of known browsers and of other ways to sign in holds here too."
        ),
        unit="sign-ins",
    )
    passkey_requests_per_minute: int = setting(
        30,
        "passkey-requests-per-minute",
        kinds.integer(0, 1_000_000),
        Group.RATES,
        (
            "How many requests about passkeys one address may make in a minute before it gets "
            "429; 0 is without limit. Signing in with one takes two, and a page to sign in on one."
        ),
        unit="requests",
    )
    nostr_requests_per_minute: int = setting(
        30,
        "nostr-requests-per-minute",
        kinds.integer(0, 1_000_000),
        Group.RATES,
        (
            "How many requests to link a Nostr key, or to sign in with one, an address may make in "
            "a minute before it gets 429; 0 is without limit. Either takes two."
        ),
        unit="requests",
    )
