"""What applications ask for, and what people answer on the consent page."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
from markupsafe import Markup
from msgspec.structs import replace

from podstead.core.identity import AuthenticationMethod, Identity
from podstead.features.access_limits import enforcement
from podstead.features.access_limits import limits as limit_values
from podstead.features.access_limits.form import LimitForm
from podstead.idp.authorizations import PendingAuthorization
from podstead.idp.client_metadata import SCOPES as USUAL_SCOPES
from podstead.idp.client_metadata import redirect_host
from podstead.idp.oauth.messages import Parameters
from podstead.idp.records import Account, AuthorizationRequest, Client, ClientCredential
from podstead.storage.records import Record, TokenRecord
from podstead.web.forms import FormSubmission
from podstead.web.pages.request import PageRequest, Person
from podstead.web.pages.templates import load_templates
from podstead.web.sign_in.authorization import ClientTerms

_METADATA: Final[Mapping[str, object]] = {
    "authorization_details_types_supported": [limit_values.DETAILS_TYPE],
    "scopes_supported": [*USUAL_SCOPES, *limit_values.SCOPES],
}


@dataclass(frozen=True, slots=True)
class LimitConsent:
    """Lets people limit an application while they let it in."""

    limits: enforcement.LimitStore
    form: LimitForm
    base_url: str
    metadata: Mapping[str, object] = field(default_factory=lambda: _METADATA)

    # --- protocol -----------------------------------------------------------------------------

    def asked(self, parameters: Parameters, client: Client) -> str | None:
        """The authorization details of a request, of its scopes, or of the client's document.
        Raises UnusableDetails."""
        given = next(iter(parameters.get("authorization_details", ())), None) or client.details
        if given is not None:
            details = limit_values.parse_details(given)
        else:
            scopes = " ".join(parameters.get("scope", ())).split()
            details = limit_values.details_of_scopes(scopes)
        return msgspec.json.encode(details).decode() if details else None

    async def is_settled(
        self, account: Account, client: Client, request: AuthorizationRequest, *, consented: bool
    ) -> bool:
        """Whether no page is needed: the person has answered this request before, and their answer
        has not ended. An application that comes as a new client to where one was limited gets no
        more than that without a page."""
        stored = await self.limits.find(enforcement.client_key(account.web_id, client.client_id))
        if stored is not None and stored.value.limit.has_ended(self.limits.records.now_s()):
            return False
        if request.details is not None:
            return stored is not None and stored.value.asked == request.details
        if stored is not None or consented:
            return True
        host = enforcement.canonical_host(redirect_host(request.redirect_uri))
        others = await self.limits.of_owner(account.account_id)
        return all(host not in each.value.redirect_hosts for each in others)

    async def token_members(self, web_id: str, client_id: str) -> Mapping[str, object]:
        """The authorization details that the person has granted (RFC 9396 sections 7 and 9.2)."""
        limit = await self.limits.of_client(web_id, client_id)
        if limit is None:
            return {}
        details = limit_values.details_of_limit(
            limit, base_url=self.base_url, now_s=self.limits.records.now_s()
        )
        return {"authorization_details": details}

    # --- the page -----------------------------------------------------------------------------

    async def fields(self, page: PageRequest, pending: PendingAuthorization) -> Markup:
        """The fields of the choice. Raises StorageError."""
        account, present = page.owner().account, await self._present(page, pending)
        folder = await self._folder(account, pending, present)
        return await self.form.fields(
            form="allow",
            pod=f"/{account.pod}/",
            chosen=None if present is None else present.limit,
            asked=self._asked(account, pending, folder),
            own_folder=folder,
        )

    async def records(
        self, page: PageRequest, pending: PendingAuthorization, sent: FormSubmission
    ) -> Sequence[Record]:
        """The limit that was chosen; a program that sends no choice keeps the present one. Raises
        BadRequest, RequestRefused, ServerTrouble."""
        account, present = page.owner().account, await self._present(page, pending)
        request, client = pending.interaction.request, pending.client
        folder = await self._folder(account, pending, present)
        asked = self._asked(account, pending, folder)
        if present is not None and "access" not in sent.fields and asked is None:
            return ()
        limit = self.form.read(
            sent,
            pod=f"/{account.pod}/",
            asked=asked,
            own_folder=folder,
            present=None if present is None else present.limit,
        )
        limit = replace(limit, paused=present is not None and present.limit.paused)
        owner = Identity(account.web_id, AuthenticationMethod.SESSION, may_state_identity=True)
        made = await self.form.make_folder(limit, folder, owner)
        uris = (request.redirect_uri, *client.redirect_uris)
        stored = enforcement.StoredLimit(
            account.web_id,
            client.client_id,
            limit,
            tuple(dict.fromkeys(enforcement.canonical_host(redirect_host(each)) for each in uris)),
            request.details or "",
            made or ("" if present is None else present.own_folder),
        )
        key = enforcement.client_key(account.web_id, client.client_id)
        return await self.limits.putting(key, stored, account.account_id)

    async def credential_fields(self, account: Account) -> Markup:
        """The fields of the choice, for new client credentials. Raises StorageError."""
        return await self.form.fields(
            form="new-credential",
            pod=f"/{account.pod}/",
            chosen=None,
            with_identity=True,
        )

    async def credential_records(
        self, account: Account, credential: ClientCredential | TokenRecord, sent: FormSubmission
    ) -> Sequence[Record]:
        """The limit that was chosen for new client credentials or a new token. Raises
        BadRequest."""
        limit = self.form.read(sent, pod=f"/{account.pod}/")
        if limit.is_everything:
            return ()
        return await self.limits.of_new_credential(credential, limit)

    async def shown(
        self, person: Person, client_ids: Iterable[str], token_ids: Iterable[str] = ()
    ) -> Mapping[str, ClientTerms]:
        """What each client and each token may do, with the link to the page that changes it for
        clients. Raises StorageError."""
        found = {}
        tokens = {each: enforcement.token_key(each) for each in token_ids}
        clients = {each: enforcement.client_key(person.web_id, each) for each in client_ids}
        for shown, key in (clients | tokens).items():
            stored = await self.limits.find(key)
            limit = None if stored is None else stored.value.limit
            text = self._rendered(
                "application.html",
                described=None if limit is None else self.form.described(limit),
                address=None if shown in tokens else f"{enforcement.PAGE}/{key}",
                csrf_token=person.csrf_token,
            )
            found[shown] = ClientTerms(text, are_limited=limit is not None)
        if person.pods:
            stored_rules = await self.limits.rules_of(person.pods[0])
            rules = () if stored_rules is None else stored_rules.value.rules
            text = self._rendered(
                "below.html",
                rules=[(each.client, self.form.described(each.limit)) for each in rules],
                address=self.base_url + enforcement.PAGE,
            )
            found[""] = ClientTerms(text)
        return found

    def _rendered(self, template: str, **values: object) -> Markup:
        found = load_templates().get_template(f"pods/access_limits/{template}")
        return Markup(found.render(**values))  # noqa: S704 - it escapes

    async def _present(
        self, page: PageRequest, pending: PendingAuthorization
    ) -> enforcement.StoredLimit | None:
        key = enforcement.client_key(page.owner().account.web_id, pending.client.client_id)
        stored = await self.limits.find(key)
        return None if stored is None else stored.value

    async def _folder(
        self,
        account: Account,
        pending: PendingAuthorization,
        present: enforcement.StoredLimit | None,
    ) -> str:
        name = pending.client.client_name or pending.redirect_host
        others = await self.limits.of_owner(account.account_id)
        return await self.form.own_folder(f"/{account.pod}/", name, present, others)

    def _asked(
        self, account: Account, pending: PendingAuthorization, own_folder: str
    ) -> limit_values.Limit | None:
        details = pending.interaction.request.details
        if details is None:
            return None
        return limit_values.limit_of_details(
            limit_values.parse_details(details),
            pod=f"/{account.pod}/",
            base_url=self.base_url,
            own_folder=own_folder,
            now_s=self.limits.records.now_s(),
        )
