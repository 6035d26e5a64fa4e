"""Runs an authorization, from the authorization request to the code (RFC 6749 section 4.1).

Each step reads the interaction, decides with the functions of ``grants``, and commits. An
interaction belongs to the browser that began it, and a finished one cannot be used again.
"""

import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

import msgspec

from podstead.core.errors import AccessDenied, BadRequest, NotFound
from podstead.idp import client_metadata, sessions
from podstead.idp import records as idp_records
from podstead.idp.clients import ClientDirectory
from podstead.idp.codes import IdpCodes
from podstead.idp.grants import Consents, Grants, Stage, new_interaction, stage_of
from podstead.idp.keys import ProviderKeys
from podstead.idp.oauth import authorization
from podstead.idp.oauth.messages import Parameters
from podstead.idp.sign_in_methods import method_precondition
from podstead.storage.record_store import RecordStore, Versioned, secret_key
from podstead.storage.records import Precondition, Record

_ADDRESS: Final = re.compile(r"https?://[!-~]{1,500}")
"""A client identifier that a page may repeat. The author of a link chose it, so it must not be able
to hold a sentence."""


@dataclass(frozen=True, slots=True)
class AuthorizationReply:
    """A response to the client, sent through the browser."""

    redirect_uri: str
    response_mode: str
    parameters: Mapping[str, str]
    stranger: idp_records.Client | None = None
    """The client, if nobody has agreed to be sent to it. A page then names the address first, so
    that an error cannot make this server redirect to any address (RFC 9700 section 4.11.2)."""


@dataclass(frozen=True, slots=True)
class InteractionRequired:
    """The person has to act: the interaction with this uid continues."""

    uid: str


Next = AuthorizationReply | InteractionRequired


class AuthorizationExtension(Protocol):
    """Lets clients ask for something besides the scopes, such as by ``authorization_details`` (RFC
    9396), and people answer on the consent page."""

    metadata: Mapping[str, object]
    """Members of the discovery document."""

    def asked(self, parameters: Parameters, client: idp_records.Client) -> str | None:
        """What an authorization request asks for, to be stored with it; ``None`` for nothing
        special. Raises UnusableDetails."""

    async def is_settled(
        self,
        account: idp_records.Account,
        client: idp_records.Client,
        request: idp_records.AuthorizationRequest,
        *,
        consented: bool,
    ) -> bool:
        """Whether the person need not be asked, as far as this is concerned. ``consented`` means
        that they have consented to the client before."""

    async def token_members(self, web_id: str, client_id: str) -> Mapping[str, object]:
        """Members of token responses and of introspection about what the client was given."""


@dataclass(frozen=True, slots=True)
class Replies:
    """Creates the responses of one issuer."""

    issuer: str

    def refusal(
        self, address: authorization.ReplyAddress, error: str, description: str
    ) -> AuthorizationReply:
        """An error response (RFC 6749 section 4.1.2.1)."""
        return self.reply(address, {"error": error, "error_description": description})

    def reply(
        self, address: authorization.ReplyAddress, parameters: Mapping[str, str]
    ) -> AuthorizationReply:
        """A response with the issuer, by which a client distinguishes providers (RFC 9207)."""
        state = {} if address.state is None else {"state": address.state}
        return AuthorizationReply(
            address.redirect_uri,
            address.response_mode,
            {**parameters, **state, "iss": self.issuer},
        )


def unusable_client(client_id: str) -> authorization.UnusableClient:
    """The error for a client that does not exist, or whose document is not usable."""
    if _ADDRESS.fullmatch(client_id):
        return authorization.UnusableClient(IdpCodes.CLIENT_DOCUMENT_UNUSABLE, address=client_id)
    return authorization.UnusableClient(IdpCodes.CLIENT_UNKNOWN)


INTERACTION_S: Final = 3600
VERIFIED_S: Final = 120
"""How long a verified factor remains valid until the browser continues."""
SECRET_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class PendingAuthorization:
    """An interaction with everything that its page shows."""

    uid: str
    stored: Versioned[idp_records.Interaction]
    client: idp_records.Client
    stage: Stage
    account: idp_records.Account | None

    @property
    def interaction(self) -> idp_records.Interaction:
        return self.stored.value

    @property
    def redirect_host(self) -> str:
        """The host that the person will be sent to afterwards."""
        return client_metadata.redirect_host(self.interaction.request.redirect_uri)


class Authorizations:
    """Begins, continues and finishes interactions."""

    def __init__(
        self,
        *,
        issuer: str,
        records: RecordStore,
        clients: ClientDirectory,
        keys: ProviderKeys,
        extension: AuthorizationExtension | None = None,
    ) -> None:
        self._issuer = issuer
        self._extension = extension
        self._replies = Replies(issuer)
        self._records = records
        self._clients = clients
        self._consents = Consents(records)
        self._grants = Grants(records, self._consents)
        self._keys = keys

    async def begin(
        self, parameters: Parameters, *, session: idp_records.BrowserSession | None, browser: str
    ) -> Next:
        """Begin an interaction for an authorization request.

        ``browser`` is the secret that binds the interaction to its browser. Raises UnusableClient
        where no redirect must be sent.
        """
        client_ids = parameters.get("client_id", ())
        client_id = client_ids[0] if len(client_ids) == 1 else ""
        client = await self._clients.find(client_id)
        if client is None:
            raise unusable_client(client_id)
        try:
            request = authorization.check_authorization_request(parameters, client)
            request = self._with_details(request, parameters, client)
        except authorization.RefusedRequest as refusal:
            reply = self._replies.refusal(refusal.reply, refusal.error, refusal.description)
            return await self._unless_unknown(reply, client, session)
        found = session
        if session is not None and not await self._may_speak(session, parameters):
            session = None
        interaction = new_interaction(
            request,
            session,
            had_session=found is not None,
            browser_hash=secret_key(browser),
            now_s=self._records.now_s(),
        )
        stage = await self._stage(interaction, client)
        if "none" in request.prompts and stage is not Stage.DONE:
            reason = "The person would have to do something"
            reply = self._replies.refusal(_address(request), stage.value, reason)
            return await self._unless_unknown(reply, client, found)
        return await self._store_begun(interaction, session, stage)

    async def pending(self, uid: str, *, browser: str | None) -> PendingAuthorization:
        """The interaction with this uid, for the browser that began it.

        Raises NotFound if there is none or it has expired, AccessDenied if it belongs to another
        browser, and BadRequest if it is finished.
        """
        stored = await self._records.read(idp_records.INTERACTIONS, secret_key(uid))
        if stored is None:
            raise NotFound(IdpCodes.INTERACTION_EXPIRED)
        if browser is None or not hmac.compare_digest(
            secret_key(browser), stored.value.browser_hash
        ):
            raise AccessDenied(IdpCodes.OTHER_BROWSER)
        if stored.value.finished:
            raise BadRequest(IdpCodes.INTERACTION_FINISHED)
        client = await self._clients.find(stored.value.request.client_id)
        if client is None or not client_metadata.matches_redirect(
            stored.value.request.redirect_uri, client
        ):
            raise BadRequest(IdpCodes.CLIENT_GONE)
        account = await self._account(stored.value.account_id)
        return PendingAuthorization(
            uid, stored, client, await self._stage(stored.value, client), account
        )

    async def signed_in(
        self, pending: PendingAuthorization, session: idp_records.BrowserSession
    ) -> None:
        """Record that a factor was verified in the interaction."""
        await self._replace(
            pending,
            account_id=session.account_id,
            authenticated_s=session.authenticated_s,
            amr=session.amr,
            sign_in_method=session.sign_in_method,
            here=True,
            # Somebody else may have agreed before.
            consented=False,
        )

    async def factor_verified(
        self, pending: PendingAuthorization, verified: idp_records.VerifiedFactor
    ) -> None:
        """Record what was verified in place of a password; the browser then continues (A-118)."""
        await self._replace(pending, verified=verified)

    async def use_verified(
        self, pending: PendingAuthorization, factor: str
    ) -> idp_records.VerifiedFactor:
        """The verified factor, which can be used once. Raises AccessDenied if there is none or it
        has expired."""
        verified = pending.interaction.verified
        if verified is None or verified.factor != factor:
            raise AccessDenied(IdpCodes.NOT_VERIFIED)
        await self._replace(pending, verified=None)
        age_s = self._records.now_s() - verified.verified_s
        if not 0 <= age_s <= VERIFIED_S:
            raise AccessDenied(IdpCodes.VERIFIED_TOO_LONG_AGO)
        return verified

    async def consented(
        self,
        pending: PendingAuthorization,
        *,
        may_state_identity: bool = False,
        records: Sequence[Record] = (),
    ) -> None:
        """Record that the person agreed on the page; ``may_state_identity`` if they also allowed
        the application to change who can act as them. ``records`` are stored with it. Raises
        BadRequest."""
        if pending.interaction.account_id is None:
            raise BadRequest(IdpCodes.SIGN_IN_FIRST)
        await self._replace(pending, records, consented=True, may_state_identity=may_state_identity)

    async def aborted(self, pending: PendingAuthorization) -> AuthorizationReply:
        """Finish the interaction because the person declined."""
        await self._replace(pending, finished=True)
        address = _address(pending.interaction.request)
        return self._replies.refusal(address, "access_denied", "The person declined")

    async def proceed(
        self, pending: PendingAuthorization, session: idp_records.BrowserSession | None
    ) -> Next:
        """Issue the code if nothing is left to do; otherwise return the next step.

        ``session`` must belong to the account that signed in.
        """
        interaction = pending.interaction
        if (
            pending.stage is not Stage.DONE
            or session is None
            or session.account_id != interaction.account_id
        ):
            return InteractionRequired(pending.uid)
        code = self._records.randomness.token_hex(SECRET_BYTES)
        await self._finish(pending, session, code)
        return self._replies.reply(_address(interaction.request), {"code": code})

    async def _may_speak(self, session: idp_records.BrowserSession, parameters: Parameters) -> bool:
        """Whether the session can be used for a request. It cannot if an ID token in the request
        names another person (OpenID Connect Core section 3.1.2.1, ``id_token_hint``)."""
        account = await self._account(session.account_id)
        if account is None or account.disabled:
            return False
        text = next(iter(parameters.get("id_token_hint", ())), None)
        if text is None:
            return True
        hint = await sessions.read_id_token_hint(text, issuer=self._issuer, keys=self._keys)
        return hint is not None and hint.account_id == session.account_id

    # --- the steps ----------------------------------------------------------------------------

    async def _store_begun(
        self,
        interaction: idp_records.Interaction,
        session: idp_records.BrowserSession | None,
        stage: Stage,
    ) -> Next:
        uid = self._records.randomness.token_hex(SECRET_BYTES)
        now_ms = self._records.now_ms()
        record = idp_records.INTERACTIONS.put(
            secret_key(uid), interaction, expires_ms=now_ms + INTERACTION_S * 1000
        )
        await self._records.commit([record])
        if stage is not Stage.DONE:
            return InteractionRequired(uid)
        stored = await self._records.read(idp_records.INTERACTIONS, secret_key(uid))
        client = await self._clients.find(interaction.request.client_id)
        if stored is None or client is None:
            return InteractionRequired(uid)
        account = await self._account(interaction.account_id)
        return await self.proceed(
            PendingAuthorization(uid, stored, client, stage, account), session
        )

    async def _finish(
        self, pending: PendingAuthorization, session: idp_records.BrowserSession, code: str
    ) -> None:
        interaction, client = pending.interaction, pending.client
        stored = await self._records.read(idp_records.ACCOUNTS, session.account_id)
        if stored is None or stored.value.disabled:
            raise BadRequest(IdpCodes.ACCOUNT_UNUSABLE)
        account = stored.value
        method_exists = await method_precondition(
            self._records, interaction.sign_in_method, account_id=account.account_id
        )
        done = msgspec.structs.replace(interaction, finished=True)
        await self._commit(
            [
                idp_records.INTERACTIONS.replace(pending.stored, done),
                *await self._grants.issued(
                    interaction, client, account, session_id=session.public_id, code=code
                ),
            ],
            [pending.stored.unchanged, stored.unchanged, *method_exists],
        )
        await self._clients.note_use(client.client_id, account.account_id)

    async def _stage(
        self, interaction: idp_records.Interaction, client: idp_records.Client
    ) -> Stage:
        redirect_uri = interaction.request.redirect_uri
        consent = None
        if client_metadata.identifies_client(redirect_uri, client):
            consent = await self._consents.find(interaction.account_id, client, redirect_uri)
        stage = stage_of(interaction, consent)
        if stage is not Stage.DONE or interaction.consented or self._extension is None:
            return stage
        account = await self._account(interaction.account_id)
        if account is None or await self._extension.is_settled(
            account, client, interaction.request, consented=consent is not None
        ):
            return stage
        return Stage.CONSENT

    def _with_details(
        self,
        request: idp_records.AuthorizationRequest,
        parameters: Parameters,
        client: idp_records.Client,
    ) -> idp_records.AuthorizationRequest:
        if self._extension is None:
            return request
        try:
            details = self._extension.asked(parameters, client)
        except client_metadata.UnusableDetails as error:
            code, reply = "invalid_authorization_details", _address(request)
            raise authorization.RefusedRequest(code, str(error), reply=reply) from error
        return msgspec.structs.replace(request, details=details)

    async def _unless_unknown(
        self,
        reply: AuthorizationReply,
        client: idp_records.Client,
        session: idp_records.BrowserSession | None,
    ) -> AuthorizationReply:
        """The reply, marked as one to a stranger unless the person who is signed in has agreed to
        be sent there before."""
        account_id = None if session is None else session.account_id
        if await self._consents.find(account_id, client, reply.redirect_uri) is not None:
            return reply
        return replace(reply, stranger=client)

    async def _account(self, account_id: str | None) -> idp_records.Account | None:
        return (
            None
            if account_id is None
            else await self._records.value(idp_records.ACCOUNTS, account_id)
        )

    async def _replace(
        self, pending: PendingAuthorization, records: Sequence[Record] = (), **changes: object
    ) -> None:
        changed = msgspec.structs.replace(pending.interaction, **changes)
        await self._commit(
            [idp_records.INTERACTIONS.replace(pending.stored, changed), *records],
            [pending.stored.unchanged],
        )

    async def _commit(
        self, records: Sequence[Record], preconditions: Sequence[Precondition]
    ) -> None:
        await self._records.commit(
            records, preconditions, busy="This sign-in continued in another window; try again"
        )


def _address(request: idp_records.AuthorizationRequest) -> authorization.ReplyAddress:
    return authorization.ReplyAddress(request.redirect_uri, request.response_mode, request.state)
