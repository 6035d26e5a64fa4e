"""How many requests of each kind may a client send?"""

from __future__ import annotations

from dataclasses import dataclass

from podstead.config import value_types
from podstead.config.table import Group, setting


@dataclass(frozen=True, kw_only=True)
class RateSettings:
    """The settings of this part."""

    pod_creations_per_hour: int = setting(
        60,
        "pod-creations-per-hour",
        value_types.integer(0, 1_000_000),
        Group.RATES,
        (
            "The maximum number of pods that one address may create in an hour; 0 means no "
            "limit. While the base URL is a loopback address, the limit does not apply to "
            "requests from this machine."
        ),
        unit="pods",
    )
    invalid_credentials_per_minute: int = setting(
        120,
        "invalid-credentials-per-minute",
        value_types.integer(0, 1_000_000),
        Group.RATES,
        (
            "The maximum number of requests with invalid credentials that one address may "
            "send in a minute; further requests get 429. 0 means no limit."
        ),
        unit="requests",
    )

    registrations_per_hour: int = setting(
        60,
        "registrations-per-hour",
        value_types.integer(0, 1_000_000),
        Group.RATES,
        (
            "The maximum number of applications that one address may register with the "
            "identity provider in an hour; 0 means no limit."
        ),
        unit="applications",
    )
    token_failures_per_minute: int = setting(
        30,
        "token-failures-per-minute",
        value_types.integer(0, 1_000_000),
        Group.RATES,
        (
            "The maximum number of token requests from one address that may fail in a minute; "
            "further requests get 429. 0 means no limit."
        ),
        unit="requests",
    )

    sign_in_failures_per_minute: int = setting(
        60,
        "sign-in-failures-per-minute",
        value_types.integer(0, 1_000_000),
        Group.RATES,
        (
            "The maximum number of password sign-ins from one address that may fail in a "
            "minute; further attempts get 429. 0 means no limit. Successful sign-ins do not "
            "count towards the limit, nor do failures in browsers that have signed in to the "
            "account before."
        ),
        unit="sign-ins",
    )
    account_failures_per_minute: int = setting(
        10,
        "account-failures-per-minute",
        value_types.integer(0, 1_000_000),
        Group.RATES,
        (
            "The maximum number of sign-ins that may fail in a minute with one name, which is "
            "an e-mail address or the name of a pod; 0 means no limit."
        ),
        unit="sign-ins",
    )
    account_failures_in_a_row: int = setting(
        5,
        "account-failures-in-a-row",
        value_types.integer(0, 1_000_000),
        Group.RATES,
        (
            "How many consecutive sign-ins with one name may fail, from any address, before "
            "the next attempt with that name has to wait: 1 second, then 2, 4, and so on up "
            "to 60. 0 means that attempts never wait. The name is an e-mail address or the "
            "name of a pod; each has its own count, whether or not an account uses it. The "
            "delay applies to browsers that have not signed in to the account before and to "
            "scripts that send the password. A signed cookie identifies a browser that has "
            "signed in within the last 180 days and since the last change of the password; "
            "only its own failures delay it. Failures of others never delay passkeys, Nostr "
            "keys, client credentials, or people who are already signed in."
        ),
        unit="sign-ins",
        reason="Guessing becomes slow, and strangers cannot lock out the owner.",
    )
    account_failures_per_hour: int = setting(
        100,
        "account-failures-per-hour",
        value_types.integer(0, 1_000_000),
        Group.RATES,
        (
            "How many sign-ins with one name may fail within an hour, from any address, "
            "before the server blocks sign-ins with that name for 15 minutes; 0 means never. "
            "The exceptions of account-failures-in-a-row for known browsers and for other "
            "ways to sign in apply here too."
        ),
        unit="sign-ins",
    )
    passkey_requests_per_minute: int = setting(
        30,
        "passkey-requests-per-minute",
        value_types.integer(0, 1_000_000),
        Group.RATES,
        (
            "The maximum number of passkey requests that one address may send in a minute; "
            "further requests get 429. 0 means no limit. Signing in with a passkey takes two "
            "requests, and opening the sign-in page takes one."
        ),
        unit="requests",
    )
    nostr_requests_per_minute: int = setting(
        30,
        "nostr-requests-per-minute",
        value_types.integer(0, 1_000_000),
        Group.RATES,
        (
            "The maximum number of requests to link a Nostr key or to sign in with one that "
            "an address may send in a minute; further requests get 429. 0 means no limit. "
            "Each of the two operations takes two requests."
        ),
        unit="requests",
    )
