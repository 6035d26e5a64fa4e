"""Builds the services for accounts, for the server and for the operator's commands."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from podstead.app.adapters.audit import LogAudit, NamingRecordStore
from podstead.app.adapters.passwords import Argon2Passwords
from podstead.config import Settings
from podstead.core.clock import Clock, Randomness
from podstead.features import ended_with_sessions, features
from podstead.idp.accounts import Accounts
from podstead.idp.administration.service import Administration
from podstead.idp.audit import Audit
from podstead.idp.credentials import ClientCredentials
from podstead.idp.passwords import PasswordHasher
from podstead.idp.sign_in import Attempts, FailureLimits, KnownBrowsers, PasswordSignIn
from podstead.pods.provision import PodProvisioner
from podstead.storage import protocol, record_store
from podstead.storage.keyed_semaphores import KeyedSemaphores


@dataclass(frozen=True, slots=True)
class AccountServices:
    """The services for accounts that the provider's pages and endpoints, and the operator, use."""

    accounts: Accounts
    sign_in: PasswordSignIn
    known_browsers: KnownBrowsers
    attempts: Attempts
    credentials: ClientCredentials
    audit: Audit
    records: record_store.RecordStore
    administration: Administration


def build_accounts(
    settings: Settings,
    *,
    store: protocol.Store,
    clock: Clock,
    randomness: Randomness,
    passwords: PasswordHasher | None = None,
    audit: Audit | None = None,
    limits: FailureLimits | None = None,
    signing_keys: Sequence[bytes] = (),
    sends_mail: Callable[[], bool] | None = None,
) -> AccountServices:
    """The services of one process; new accounts name this server as their provider.

    ``passwords`` and ``limits`` are for tests, ``audit`` is for the operator's commands. The first
    of the ``signing_keys`` signs the cookies that identify known browsers; without any, no browser
    is known. ``sends_mail`` is that of a server, in which it may change.
    """
    passwords = passwords or Argon2Passwords()
    audit = audit or LogAudit()
    known_browsers = KnownBrowsers(signing_keys, clock=clock, randomness=randomness)
    records = NamingRecordStore(store, clock, randomness)
    accounts = Accounts(
        records=records,
        pods=PodProvisioner(
            base_url=settings.base_url,
            store=store,
            tokens=None,  # a pod with an account comes without a simple token
            clock=clock,
            randomness=randomness,
            issuer=settings.issuer,
        ),
        passwords=passwords,
        audit=audit,
        sends_mail=sends_mail or (lambda: settings.reaches_people),
    )
    attempts = Attempts(
        records=records,
        limits=limits or FailureLimits(per_minute=settings.sign_in_failures_per_minute),
        audit=audit,
        turns=KeyedSemaphores(1),
    )
    return AccountServices(
        accounts=accounts,
        sign_in=PasswordSignIn(
            accounts=accounts,
            passwords=passwords,
            attempts=attempts,
            known_browsers=known_browsers,
            audit=audit,
            clock=clock,
        ),
        known_browsers=known_browsers,
        attempts=attempts,
        credentials=ClientCredentials(records=records, audit=audit),
        audit=audit,
        records=records,
        administration=Administration(
            records=records,
            accounts=accounts,
            audit=audit,
            resets=[reset for each in features() for reset in each.account_resets()],
            ended_with=ended_with_sessions(),
        ),
    )
