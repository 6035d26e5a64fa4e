"""How does a person let a client act for them? From the authorization request to the code (3.4).

Each step reads what is stored, decides by ``interactions``, and commits. An interaction belongs to
the browser that began it; a finished one gives nothing more.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from podstead.core.clock import Clock, Randomness
from podstead.core.errors import AccessDenied, BadRequest, NotFound, Overloaded
from podstead.idp.clients import ClientDirectory
from podstead.idp.consents import Consents
from podstead.idp.interactions import (
    Stage,
    begun,
    granted_scopes,
    remembered_scopes,
    stage_of,
)
from podstead.idp.keys import ProviderKeys
from podstead.idp.oauth.authorization import (
    RefusedRequest,
    ReplyAddress,
    UnusableClient,
    check_authorization_request,
)
from podstead.idp.oauth.messages import Parameters
from podstead.idp.records import (
    ACCOUNTS,
    CODES,
    GRANTS,
    INTERACTIONS,
    Account,
    AuthorizationCode,
    BrowserSession,
    Client,
    Consent,
    Grant,
    Interaction,
    VerifiedFactor,
)
from podstead.idp.redirects import matches_redirect, redirect_host
from podstead.idp.signing_out import read_hint
from podstead.idp.token_minting import GRANT_S
from podstead.idp.token_service import ProviderStore
from podstead.idp.ways import reliance_on
from podstead.storage.records import Precondition, Record
from podstead.storage.registry import Versioned, secret_key
from podstead.storage.writing import commit_entries

INTERACTION_S: Final = 3600
CODE_S: Final = 120
USED_CODE_S: Final = 3600
"""How long a code is remembered, so that its second use is noticed."""
SHORT_GRANT_S: Final = 2 * 3600
"""How long a grant without refresh tokens is kept: longer than its last access token lives."""
VERIFIED_S: Final = 120
"""How long a verified factor counts before the browser comes for what follows from it."""
MOST_GRANTS: Final = 400
"""How many an account has at most; those that were not used for longest go."""
SECRET_BYTES: Final = 32
_ID_BYTES: Final = 16
_ADDRESS: Final = re.compile(r"https?://[!-~]{1,500}")
"""An identifier that a page may repeat: whoever made the link wrote it, so no sentences."""


@dataclass(frozen=True, slots=True)
class AuthorizationReply:
    """An answer to the client, by way of the browser."""

    redirect_uri: str
    response_mode: str
    parameters: Mapping[str, str]
    stranger: Client | None = None
    """The client, if nobody has agreed to be sent to it: a page names the address first, so that
    an error is no way to have this server redirect anywhere (RFC 9700 section 4.11.2)."""


@dataclass(frozen=True, slots=True)
class Interact:
    """The person has something to do, at the interaction of this uid."""

    uid: str


Next = AuthorizationReply | Interact


@dataclass(frozen=True, slots=True)
class Pending:
    """An interaction with everything a page says of it."""

    uid: str
    kept: Versioned[Interaction]
    client: Client
    stage: Stage
    account: Account | None

    @property
    def interaction(self) -> Interaction:
        return self.kept.value

    @property
    def redirect_host(self) -> str:
        """Where the person will be sent afterwards."""
        return redirect_host(self.interaction.request.redirect_uri)


class Authorizations:
    """Begins, continues and finishes interactions."""

    def __init__(
        self,
        *,
        issuer: str,
        store: ProviderStore,
        clients: ClientDirectory,
        keys: ProviderKeys,
        clock: Clock,
        randomness: Randomness,
    ) -> None:
        self._issuer = issuer
        self._store = store
        self._clients = clients
        self._consents = Consents(store=store, clock=clock)
        self._keys = keys
        self._clock = clock
        self._randomness = randomness

    async def begin(
        self, parameters: Parameters, *, session: BrowserSession | None, browser: str
    ) -> Next:
        """Begin with the parameters of an authorization request.

        ``browser`` is the secret that binds the interaction to its browser. Raises UnusableClient
        for what must not be answered by a redirect, StorageError, Overloaded.
        """
        client_ids = parameters.get("client_id", ())
        client_id = client_ids[0] if len(client_ids) == 1 else ""
        client = await self._clients.find(client_id)
        if client is None:
            raise _unusable(client_id)
        try:
            request = check_authorization_request(parameters, client)
        except RefusedRequest as refusal:
            reply = self._refusal(refusal.reply, refusal.error, refusal.description)
            return await self._unless_unknown(reply, client, session)
        found = session
        if session is not None and not await self._may_speak(session, parameters):
            session = None
        interaction = begun(
            request,
            session,
            had_session=found is not None,
            browser_hash=secret_key(browser),
            now_s=self._clock.now_ms() // 1000,
        )
        stage = await self._stage(interaction, client)
        if "none" in request.prompts and stage is not Stage.DONE:
            reply = self._refusal(
                ReplyAddress(request.redirect_uri, request.response_mode, request.state),
                stage.value,
                "The person would have to do something",
            )
            return await self._unless_unknown(reply, client, found)
        return await self._store_begun(interaction, session, stage)

    async def pending(self, uid: str, *, browser: str | None) -> Pending:
        """The interaction of a uid, for the browser that began it.

        Raises NotFound for one that there is not, or no more, AccessDenied for another browser's,
        and BadRequest for one that is finished.
        """
        kept = await INTERACTIONS.read(self._store, secret_key(uid), now_ms=self._clock.now_ms())
        if kept is None:
            raise NotFound("This sign-in has expired. Go back to the application and start again")
        if browser is None or not hmac.compare_digest(secret_key(browser), kept.value.browser_hash):
            raise AccessDenied("This sign-in was started in another browser")
        if kept.value.finished:
            raise BadRequest("This sign-in is finished. Go back to the application")
        client = await self._clients.find(kept.value.request.client_id)
        if client is None or not matches_redirect(kept.value.request.redirect_uri, client):
            raise BadRequest("The application is no longer registered")
        account = await self._account(kept.value.account_id)
        return Pending(uid, kept, client, await self._stage(kept.value, client), account)

    async def signed_in(self, pending: Pending, session: BrowserSession) -> None:
        """Note that a factor was verified in this interaction. Raises StorageError, Overloaded."""
        await self._replace(
            pending,
            account_id=session.account_id,
            authenticated_s=session.authenticated_s,
            amr=session.amr,
            way=session.way,
            here=True,
            # Whoever agreed before may have been somebody else.
            consented=False,
        )

    async def factor_verified(self, pending: Pending, verified: VerifiedFactor) -> None:
        """Note that a passkey or a Nostr key was verified; the browser comes for the rest (A-118).
        Raises StorageError, Overloaded."""
        await self._replace(pending, verified=verified)

    async def use_verified(self, pending: Pending, factor: str) -> VerifiedFactor:
        """What was noted of a verified factor, once. Raises AccessDenied if there is nothing, or
        not any more, StorageError, Overloaded."""
        verified = pending.interaction.verified
        if verified is None or verified.factor != factor:
            raise AccessDenied(
                "Your identity was not verified in this sign-in; go back and try again"
            )
        await self._replace(pending, verified=None)
        age_s = self._clock.now_ms() // 1000 - verified.verified_s
        if not 0 <= age_s <= VERIFIED_S:
            raise AccessDenied("Your identity was verified too long ago; go back and try again")
        return verified

    async def consented(self, pending: Pending, *, may_state_identity: bool = False) -> None:
        """Note that the person agreed on the page; ``may_state_identity`` if they also let the
        application change who can act as them. Raises StorageError, Overloaded, BadRequest."""
        if pending.interaction.account_id is None:
            raise BadRequest("Sign in first")
        await self._replace(pending, consented=True, may_state_identity=may_state_identity)

    async def aborted(self, pending: Pending) -> AuthorizationReply:
        """The person does not want to. Raises StorageError, Overloaded."""
        await self._replace(pending, finished=True)
        return self._refusal(_address(pending), "access_denied", "The person declined")

    async def proceed(self, pending: Pending, session: BrowserSession | None) -> Next:
        """Give the code if everything is done, else say that there is something to do.

        ``session`` must be of the account that signed in. Raises StorageError, Overloaded.
        """
        interaction = pending.interaction
        if pending.stage is not Stage.DONE or session is None:
            return Interact(pending.uid)
        if session.account_id != interaction.account_id:
            return Interact(pending.uid)
        code = self._randomness.token_hex(SECRET_BYTES)
        await self._finish(pending, session, code)
        parameters = {"code": code}
        return self._reply(_address(pending), parameters)

    async def _may_speak(self, session: BrowserSession, parameters: Parameters) -> bool:
        """Whether the session can be used for a request: that of another person than an ID token
        names cannot (OpenID Connect Core section 3.1.2.1, ``id_token_hint``)."""
        account = await self._account(session.account_id)
        if account is None or account.disabled:
            return False
        text = next(iter(parameters.get("id_token_hint", ())), None)
        if text is None:
            return True
        hint = await read_hint(text, issuer=self._issuer, keys=self._keys)
        return hint is not None and hint.account_id == session.account_id

    # --- the steps ----------------------------------------------------------------------------

    async def _store_begun(
        self, interaction: Interaction, session: BrowserSession | None, stage: Stage
    ) -> Next:
        uid = self._randomness.token_hex(SECRET_BYTES)
        now_ms = self._clock.now_ms()
        record = INTERACTIONS.put(
            secret_key(uid), interaction, expires_ms=now_ms + INTERACTION_S * 1000
        )
        await self._commit([record], now_ms=now_ms)
        if stage is not Stage.DONE:
            return Interact(uid)
        kept = await INTERACTIONS.read(self._store, secret_key(uid), now_ms=now_ms)
        client = await self._clients.find(interaction.request.client_id)
        if kept is None or client is None:
            return Interact(uid)
        account = await self._account(interaction.account_id)
        return await self.proceed(Pending(uid, kept, client, stage, account), session)

    async def _finish(self, pending: Pending, session: BrowserSession, code: str) -> None:
        interaction, client = pending.interaction, pending.client
        request = interaction.request
        now_ms = self._clock.now_ms()
        now_s = now_ms // 1000
        kept = await ACCOUNTS.read(self._store, session.account_id, now_ms=now_ms)
        if kept is None or kept.value.disabled:
            raise BadRequest("The account cannot be used")
        account = kept.value
        before = await self._consents.find(account.account_id, client, request.redirect_uri)
        way = await reliance_on(
            self._store, interaction.way, account_id=account.account_id, now_ms=now_ms
        )
        scopes = granted_scopes(interaction, before)
        grant = Grant(
            grant_id=self._randomness.token_hex(_ID_BYTES),
            account_id=account.account_id,
            web_id=account.web_id,
            client_id=client.client_id,
            client_name=client.client_name,
            scopes=scopes,
            authenticated_s=interaction.authenticated_s or now_s,
            session_id=session.public_id,
            began_s=now_s,
            last_used_s=now_s,
            nonce=request.nonce,
            amr=interaction.amr,
            way=interaction.way,
        )
        lasts_s = GRANT_S if "offline_access" in scopes else SHORT_GRANT_S
        consent = Consent(
            client_id=client.client_id,
            client_name=client.client_name,
            redirect_host=pending.redirect_host,
            scopes=remembered_scopes(interaction, before, scopes),
            given_s=before.given_s if before else now_s,
            redirect_uri=request.redirect_uri,
            last_used_s=now_s,
        )
        owner = account.account_id
        done = msgspec.structs.replace(interaction, finished=True)
        await self._commit(
            [
                INTERACTIONS.replace(pending.kept, done),
                GRANTS.put(grant.grant_id, grant, owner=owner, expires_ms=now_ms + lasts_s * 1000),
                CODES.put(
                    secret_key(code),
                    AuthorizationCode(
                        grant_id=grant.grant_id,
                        client_id=client.client_id,
                        redirect_uri=request.redirect_uri,
                        code_challenge=request.code_challenge,
                        expires_s=now_s + CODE_S,
                        dpop_jkt=request.dpop_jkt,
                    ),
                    owner=owner,
                    expires_ms=now_ms + USED_CODE_S * 1000,
                ),
                *await self._consents.changes(owner, client, request.redirect_uri, consent),
                *await self._surplus(owner, now_ms),
            ],
            preconditions=[pending.kept.at, kept.at, *way],
            now_ms=now_ms,
        )
        await self._clients.note_use(client.client_id, account.account_id)

    async def _surplus(self, account_id: str, now_ms: int) -> list[Record]:
        """What must go so that an account has no more grants than :data:`MOST_GRANTS`: an
        application may get one each time that its page is loaded."""
        grants = await GRANTS.of_owner(
            self._store, account_id, now_ms=now_ms, limit=2 * MOST_GRANTS
        )
        oldest = sorted(grants, key=lambda each: each.value.last_used_s)
        return [GRANTS.drop(each.key) for each in oldest[: max(0, len(grants) + 1 - MOST_GRANTS)]]

    async def _stage(self, interaction: Interaction, client: Client) -> Stage:
        redirect_uri = interaction.request.redirect_uri
        consent = await self._consents.find(interaction.account_id, client, redirect_uri)
        return stage_of(interaction, consent)

    async def _unless_unknown(
        self, reply: AuthorizationReply, client: Client, session: BrowserSession | None
    ) -> AuthorizationReply:
        """The reply, marked as one to a stranger unless who is signed in has been there."""
        account_id = None if session is None else session.account_id
        if await self._consents.find(account_id, client, reply.redirect_uri) is not None:
            return reply
        return replace(reply, stranger=client)

    async def _account(self, account_id: str | None) -> Account | None:
        if account_id is None:
            return None
        kept = await ACCOUNTS.read(self._store, account_id, now_ms=self._clock.now_ms())
        return None if kept is None else kept.value

    async def _replace(self, pending: Pending, **changes: object) -> None:
        changed = msgspec.structs.replace(pending.interaction, **changes)
        await self._commit(
            [INTERACTIONS.replace(pending.kept, changed)],
            preconditions=[pending.kept.at],
            now_ms=self._clock.now_ms(),
        )

    async def _commit(
        self, records: list[Record], *, now_ms: int, preconditions: Sequence[Precondition] = ()
    ) -> None:
        if not await commit_entries(
            self._store,
            records,
            preconditions=preconditions,
            now_ms=now_ms,
            randomness=self._randomness,
        ):
            raise Overloaded("This sign-in continued in another window; try again")

    # --- answers ------------------------------------------------------------------------------

    def _refusal(self, address: ReplyAddress, error: str, description: str) -> AuthorizationReply:
        return self._reply(address, {"error": error, "error_description": description})

    def _reply(self, address: ReplyAddress, parameters: Mapping[str, str]) -> AuthorizationReply:
        """With the issuer in it, by which a client tells providers apart (RFC 9207)."""
        state = {} if address.state is None else {"state": address.state}
        return AuthorizationReply(
            address.redirect_uri,
            address.response_mode,
            {**parameters, **state, "iss": self._issuer},
        )


def _address(pending: Pending) -> ReplyAddress:
    request = pending.interaction.request
    return ReplyAddress(request.redirect_uri, request.response_mode, request.state)


def _unusable(client_id: str) -> UnusableClient:
    """A client that there is not, or whose document is of no use."""
    if _ADDRESS.fullmatch(client_id):
        return UnusableClient(
            f"The document that describes the application is not valid: {client_id}. Everybody "
            "must be able to read it, and its client_id must be the same URL."
        )
    return UnusableClient(
        "This server does not know the application. If you have used it here before, clear the "
        "data that your browser stores for the application's site, and try again."
    )
