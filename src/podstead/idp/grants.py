"""Interactions, consents and grants: what a person has agreed to, and with which client."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeVar

from podstead.core.identity import IDENTITY_SCOPE
from podstead.idp import client_metadata, records, token_issuing
from podstead.storage.record_store import Changes, RecordStore, Versioned, secret_key
from podstead.storage.records import Record

# Determines the next stage of an authorization before the client gets its code.
#
# Pure. The person signs in and then consents; both may have happened before, and then no page
# appears. A session alone never implies consent. Signing in on the page that names the client and
# what it asks for is consent for once, unless the client could influence whether that page or the
# consent page appears. Even then it does not include lasting access.

_BY_SIGNING_IN: Final = frozenset(
    {client_metadata.OPENID, client_metadata.WEBID, client_metadata.OFFLINE}
)
_FRESH_SIGN_IN: Final = frozenset({"login", "select_account", "create"})


class Stage(Enum):
    """The next thing to do. The values are the error codes for ``prompt=none``."""

    SIGN_IN = "login_required"
    CONSENT = "consent_required"
    DONE = "done"


def new_interaction(
    request: records.AuthorizationRequest,
    session: records.BrowserSession | None,
    *,
    had_session: bool = False,
    browser_hash: str,
    now_s: int,
) -> records.Interaction:
    """The interaction of a new request, already signed in if the session is sufficient for it.
    ``had_session`` means that the browser is signed in, possibly to an account that was not asked
    for."""
    interaction = records.Interaction(
        request=request,
        browser_hash=browser_hash,
        began_s=now_s,
        had_session=had_session or session is not None,
    )
    if session is None or not _FRESH_SIGN_IN.isdisjoint(request.prompts):
        return interaction
    if request.max_age_s is not None and now_s - session.authenticated_s > request.max_age_s:
        return interaction
    return records.Interaction(
        request=request,
        browser_hash=browser_hash,
        began_s=now_s,
        had_session=True,
        account_id=session.account_id,
        authenticated_s=session.authenticated_s,
        amr=session.amr,
        sign_in_method=session.sign_in_method,
    )


def stage_of(interaction: records.Interaction, consent: records.Consent | None) -> Stage:
    """The next stage; ``consent`` is what the account has allowed this client before."""
    if interaction.account_id is None:
        return Stage.SIGN_IN
    if interaction.consented:
        return Stage.DONE
    if "consent" in interaction.request.prompts:
        return Stage.CONSENT
    if (interaction.here and signing_in_consents(interaction)) or _covers(
        consent, interaction.request
    ):
        return Stage.DONE
    return Stage.CONSENT


def signing_in_consents(interaction: records.Interaction) -> bool:
    """Whether signing in on the page that names the client and what it asks for is consent.

    It is if the person came without a session, so that the client could not choose this page
    instead of the consent page; only for the scopes of a Solid application; and only for a redirect
    URI on the web, because any program on the person's device can receive the others.
    """
    request = interaction.request
    return (
        not interaction.had_session
        and set(request.prompts) <= {"none"}
        and _BY_SIGNING_IN.issuperset(request.scopes)
        and not client_metadata.is_on_this_device(request.redirect_uri)
    )


def granted_scopes(
    interaction: records.Interaction, consent: records.Consent | None
) -> tuple[str, ...]:
    """The scopes that a finished interaction grants. Lasting access requires that a page asked for
    it, now or before (A-56). Changes of identity require that the person ticked the box on the last
    page that had it."""
    allowed_before = consent.scopes if consent is not None else ()
    withheld = set()
    if not interaction.consented and client_metadata.OFFLINE not in allowed_before:
        withheld.add(client_metadata.OFFLINE)
    may_state_identity = (
        interaction.may_state_identity
        if interaction.consented
        else IDENTITY_SCOPE in allowed_before
    )
    if not may_state_identity:
        withheld.add(IDENTITY_SCOPE)
    return tuple(scope for scope in interaction.request.scopes if scope not in withheld)


def remembered_scopes(
    interaction: records.Interaction, consent: records.Consent | None, granted: tuple[str, ...]
) -> tuple[str, ...]:
    """The scopes that a consent contains from now on: those allowed before, and those allowed now.
    A person who sees the box for changes of identity and leaves it empty withdraws an earlier
    permission for later sign-ins; to end what the application already has, they disconnect it."""
    before = consent.scopes if consent is not None else ()
    withdrawn = interaction.consented and IDENTITY_SCOPE in interaction.request.scopes
    kept = [scope for scope in before if not (withdrawn and scope == IDENTITY_SCOPE)]
    return tuple(dict.fromkeys((*kept, *client_metadata.permissions(granted))))


def _covers(consent: records.Consent | None, request: records.AuthorizationRequest) -> bool:
    asked = {
        scope
        for scope in client_metadata.permissions(request.scopes)
        if scope != client_metadata.OFFLINE
    }
    return consent is not None and asked.issubset(consent.scopes)


# Remembers a person's consent to an application at one of its redirect URIs.
#
# A consent is for one account, one client and one redirect URI that the client has registered. A
# host would not be enough, because many share one, as the pods of this server do. If an account has
# too many consents, those not used for the longest time are removed.

MAX_CONSENTS: Final = 200
"""How many consents an account has at most."""


class Consents:
    """Finds and replaces consents."""

    def __init__(self, records: RecordStore) -> None:
        self._records = records

    async def find(
        self, account_id: str | None, client: records.Client, redirect_uri: str
    ) -> records.Consent | None:
        """The consent of an account for a client at a redirect URI."""
        if account_id is None:
            return None
        key = _key(account_id, client, redirect_uri)
        return await self._records.value(records.CONSENTS, key)

    async def changes(
        self, account_id: str, client: records.Client, redirect_uri: str, consent: records.Consent
    ) -> list[Record]:
        """The records that store the consent and remove those that exceed the limit."""
        key = _key(account_id, client, redirect_uri)
        stored = await self._records.of_owner(records.CONSENTS, account_id, limit=2 * MAX_CONSENTS)
        others = sorted((each for each in stored if each.key != key), key=_last_used_s)
        surplus = others[: max(0, len(others) + 1 - MAX_CONSENTS)]
        return [
            records.CONSENTS.put(key, consent, owner=account_id),
            *(records.CONSENTS.drop(each.key) for each in surplus),
        ]


def last_used_s(consents: Sequence[records.Consent]) -> int:
    """When the most recently used of them was used."""
    return max((max(each.last_used_s, each.given_s) for each in consents), default=0)


def _last_used_s(stored: Versioned[records.Consent]) -> int:
    return last_used_s([stored.value])


def _key(account_id: str, client: records.Client, redirect_uri: str) -> str:
    registered = client_metadata.registered_redirect(redirect_uri, client) or redirect_uri
    named = f"{account_id}\n{client.client_id}\n{registered}"
    return hashlib.sha256(named.encode()).hexdigest()


# Makes the records of an authorization: a grant, and a code for its tokens.

CODE_S: Final = 120
USED_CODE_S: Final = 3600
"""How long a used code is kept, so that a second use is noticed."""
SHORT_GRANT_S: Final = 2 * 3600
"""How long a grant without refresh tokens is kept: longer than its last access token lives."""
MAX_GRANTS: Final = 400
"""How many grants an account has at most; those not used for the longest time are removed."""
_ID_BYTES: Final = 16


class Grants:
    """Creates the records of new grants."""

    def __init__(self, records: RecordStore, consents: Consents) -> None:
        self._records = records
        self._consents = consents

    async def issued(
        self,
        interaction: records.Interaction,
        client: records.Client,
        account: records.Account,
        *,
        session_id: str,
        code: str,
    ) -> Sequence[Record]:
        """The grant of a finished interaction, its code, and the consent to remember; and what is
        removed to make room for them."""
        request, owner = interaction.request, account.account_id
        before = await self._consents.find(owner, client, request.redirect_uri)
        now_ms = self._records.now_ms()
        now_s = now_ms // 1000
        scopes = granted_scopes(interaction, before)
        grant = records.Grant(
            grant_id=self._records.randomness.token_hex(_ID_BYTES),
            account_id=owner,
            web_id=account.web_id,
            client_id=client.client_id,
            client_name=client.client_name,
            scopes=scopes,
            authenticated_s=interaction.authenticated_s or now_s,
            session_id=session_id,
            began_s=now_s,
            last_used_s=now_s,
            nonce=request.nonce,
            amr=interaction.amr,
            sign_in_method=interaction.sign_in_method,
        )
        lasts_s = token_issuing.GRANT_S if "offline_access" in scopes else SHORT_GRANT_S
        consent = records.Consent(
            client_id=client.client_id,
            client_name=client.client_name,
            redirect_host=client_metadata.redirect_host(request.redirect_uri),
            scopes=remembered_scopes(interaction, before, scopes),
            given_s=before.given_s if before else now_s,
            redirect_uri=request.redirect_uri,
            last_used_s=now_s,
        )
        issued_code = records.AuthorizationCode(
            grant_id=grant.grant_id,
            client_id=client.client_id,
            redirect_uri=request.redirect_uri,
            code_challenge=request.code_challenge,
            expires_s=now_s + CODE_S,
            dpop_jkt=request.dpop_jkt,
        )
        code_expires_ms = now_ms + USED_CODE_S * 1000
        return [
            records.GRANTS.put(
                grant.grant_id, grant, owner=owner, expires_ms=now_ms + lasts_s * 1000
            ),
            records.CODES.put(
                secret_key(code), issued_code, owner=owner, expires_ms=code_expires_ms
            ),
            *await self._consents.changes(owner, client, request.redirect_uri, consent),
            *await self._surplus(owner),
        ]

    async def _surplus(self, account_id: str) -> list[Record]:
        """The grants to remove so that an account has at most :data:`MAX_GRANTS`: an application
        may get one every time its page is loaded."""
        grants = await self._records.of_owner(records.GRANTS, account_id, limit=2 * MAX_GRANTS)
        oldest = sorted(grants, key=lambda each: each.value.last_used_s)
        return [
            records.GRANTS.drop(each.key) for each in oldest[: max(0, len(grants) + 1 - MAX_GRANTS)]
        ]


# Lists the applications that may act for a person, and disconnects them.
#
# One application may have several consents, one for each redirect URI, and a grant for each
# sign-in. Disconnecting it ends all of them, and the tokens issued for them become invalid.

_ID_CHARACTERS: Final = 32

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ConnectedClient:
    """An application that may act for a person. Times are Unix seconds."""

    connection_id: str
    client_id: str
    client_name: str | None
    hosts: Sequence[str]
    scopes: Sequence[str]
    since_s: int
    last_used_s: int | None
    """When it last got tokens; ``None`` if none of its tokens is valid any more."""
    redirect_uris: Sequence[str] = ()
    """The redirect URIs of the consents that have one; ``hosts`` are those of all consents."""
    idle_since_s: int = 0
    """Since when it has certainly not been used: the time at which it last got tokens or, without
    valid ones, at which those of its last sign-in must have ended."""


class ConnectedClients:
    """Lists the connected clients of accounts, and disconnects them."""

    def __init__(self, records: RecordStore) -> None:
        self._records = records

    async def of_account(self, account_id: str) -> Sequence[ConnectedClient]:
        """The applications of an account, the most recently used first."""
        consents, grants = await self._read(account_id)
        found = []
        for client_id in _client_ids(consents, grants):
            given = [each.value for each in consents if each.value.client_id == client_id]
            going_on = [each.value for each in grants if each.value.client_id == client_id]
            found.append(_connected_client(client_id, given, going_on))
        return sorted(found, key=lambda each: each.last_used_s or each.since_s, reverse=True)

    async def end(self, account_id: str, connection_id: str) -> str | None:
        """Disconnect an application. Returns its client id, ``None`` if there is no such
        application."""

        async def compute() -> Changes[str | None]:
            consents, grants = await self._read(account_id)
            named = _client_ids(consents, grants)
            client_id = next((each for each in named if id_of(each) == connection_id), None)
            return _ending(
                client_id,
                [each for each in consents if each.value.client_id == client_id],
                [each for each in grants if each.value.client_id == client_id],
            )

        return await self._records.transact(compute)

    async def end_of_session(self, account_id: str, session_id: str) -> None:
        """End the grants that began in one session of a browser; the consents are kept."""

        async def compute() -> Changes[None]:
            _, grants = await self._read(account_id)
            return _ending(
                None, [], [each for each in grants if each.value.session_id == session_id]
            )

        await self._records.transact(compute)

    async def _read(
        self, account_id: str
    ) -> tuple[Sequence[Versioned[records.Consent]], Sequence[Versioned[records.Grant]]]:
        consents = await self._records.of_owner(records.CONSENTS, account_id)
        grants = await self._records.of_owner(records.GRANTS, account_id)
        return consents, [each for each in grants if not each.value.revoked]


def _ending(
    result: Result,
    consents: Sequence[Versioned[records.Consent]],
    grants: Sequence[Versioned[records.Grant]],
) -> Changes[Result]:
    """The changes that end consents and grants."""
    return Changes(
        result,
        [
            *(records.CONSENTS.drop(each.key) for each in consents),
            *(records.GRANTS.replace(each, records.revoked(each.value)) for each in grants),
        ],
        [*(each.unchanged for each in consents), *(each.unchanged for each in grants)],
    )


def id_of(client_id: str) -> str:
    """The id of a connected client in URLs; its own id may be a URL."""
    return hashlib.sha256(client_id.encode()).hexdigest()[:_ID_CHARACTERS]


def _client_ids(
    consents: Sequence[Versioned[records.Consent]], grants: Sequence[Versioned[records.Grant]]
) -> Sequence[str]:
    named = [each.value.client_id for each in consents]
    return tuple(dict.fromkeys(named + [each.value.client_id for each in grants]))


def _connected_client(
    client_id: str, given: Sequence[records.Consent], going_on: Sequence[records.Grant]
) -> ConnectedClient:
    names = [each.client_name for each in given] + [each.client_name for each in going_on]
    asked = [each.scopes for each in given] + [each.scopes for each in going_on]
    return ConnectedClient(
        connection_id=id_of(client_id),
        client_id=client_id,
        client_name=next(filter(None, names), None),
        hosts=tuple(dict.fromkeys(each.redirect_host for each in given)),
        scopes=tuple(dict.fromkeys(scope for scopes in asked for scope in scopes)),
        since_s=min([each.given_s for each in given] + [each.began_s for each in going_on]),
        last_used_s=max((each.last_used_s for each in going_on), default=None),
        idle_since_s=max(
            (each.last_used_s for each in going_on),
            default=last_used_s(given) + token_issuing.GRANT_S,
        ),
        redirect_uris=tuple(
            dict.fromkeys(each.redirect_uri for each in given if each.redirect_uri is not None)
        ),
    )
