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
