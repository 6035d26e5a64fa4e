"""The pages on which people change what applications may do: one for each application, and one for
the applications of other providers in a pod."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from msgspec.structs import replace

from podstead.core.errors import BadRequest, NotFound
from podstead.core.identifiers import ResourcePath
from podstead.features.access_limits import enforcement
from podstead.features.access_limits import limits as limit_values
from podstead.features.access_limits.codes import LimitCodes
from podstead.features.access_limits.form import LimitForm
from podstead.storage.records import Precondition, Record
from podstead.wac.acl import origin_of
from podstead.wac.modes import Mode
from podstead.web.browsers import see_other
from podstead.web.pages.addresses import APPS, SECURITY
from podstead.web.pages.rendering import PageRenderer
from podstead.web.pages.request import PageRequest
from podstead.web.response import Response
from podstead.web.routes import route

if TYPE_CHECKING:
    from podstead.app.provider import Provider

_ACTION_OF: Final = {
    Mode.READ: limit_values.READ,
    Mode.APPEND: limit_values.ADD,
    Mode.WRITE: limit_values.EDIT,
    Mode.CONTROL: limit_values.EDIT,
}
_MAX_CLIENT_CHARACTERS: Final = 2048


@dataclass(frozen=True, slots=True)
class Limited:
    """What a page is about: an application or script of a person, and its limit. ``clients`` are
    its registrations, each with the hosts that people are sent to."""

    name: str
    pod: str
    owner: str
    clients: Mapping[str, Sequence[str]]
    stored: enforcement.StoredLimit | None = None
    is_credential: bool = False

    @property
    def limit(self) -> limit_values.Limit | None:
        return None if self.stored is None else self.stored.limit


@dataclass(frozen=True, slots=True)
class ApplicationPages:
    """Shows the limits of applications and scripts, and changes them. They are at the origin of the
    provider; ``provider`` is ``None`` without accounts."""

    limits: enforcement.LimitStore
    form: LimitForm
    renderer: PageRenderer
    provider: Provider | None

    @route(enforcement.PAGE + "/{key}", "GET")
    async def get(self, page: PageRequest) -> Response:
        """The page of one application; with ``path`` and ``mode``, the question whether it may do
        this. Raises NotAuthenticated, NotFound, StorageError."""
        found = await self._find(page)
        limit, asked = found.limit, _question(page)
        folder = await self._folder(found)
        return self.renderer.page(
            page,
            "access_limits/limit.html",
            name=found.name,
            action=f"{enforcement.PAGE}/{page.segment}",
            question=None if limit is None else asked,
            described=self.form.described(limit or limit_values.everything(found.pod)),
            fields=await self.form.fields(
                form="limit",
                pod=found.pod,
                chosen=limit,
                own_folder=folder,
                with_identity=True,
            ),
        )

    @route(enforcement.PAGE + "/{key}", "POST")
    async def post(self, page: PageRequest) -> Response:
        """Change the limit. Raises NotAuthenticated, WrongFormToken, NotFound, BadRequest, and
        what refuses a new folder."""
        sent, made = await page.form(), ""
        found, person = await self._find(page), page.signed_in()
        match sent.text("do"):
            case "pause" | "resume" as chosen:

                def changed(limit: limit_values.Limit) -> limit_values.Limit:
                    return replace(limit, paused=chosen == "pause")

            case "widen":

                def changed(limit: limit_values.Limit) -> limit_values.Limit:
                    wider = _widened(limit, sent.text("path"), sent.text("mode"))
                    return limit if limit.is_everything else wider

            case _:
                folder = await self._folder(found)
                read = self.form.read(
                    sent,
                    pod=found.pod,
                    own_folder=folder,
                    present=found.limit,
                )
                made = await self.form.make_folder(read, folder, person.identity)

                def changed(limit: limit_values.Limit) -> limit_values.Limit:
                    return replace(read, paused=limit.paused)

        records: list[Record] = []
        preconditions: list[Precondition] = []
        for client_id, hosts in found.clients.items():
            key = enforcement.client_key(person.web_id, client_id)
            stored = await self.limits.find(key)
            if stored is None:
                value = enforcement.StoredLimit(
                    person.web_id,
                    client_id,
                    limit_values.everything(found.pod),
                    is_credential=found.is_credential,
                )
                preconditions.append(enforcement.LIMITS.absent(key))
            else:
                value = stored.value
                preconditions.append(stored.unchanged)
            named = (*value.redirect_hosts, *map(enforcement.canonical_host, hosts))
            value = replace(
                value,
                limit=changed(value.limit),
                redirect_hosts=tuple(dict.fromkeys(named)),
                own_folder=made or value.own_folder,
            )
            records += await self.limits.putting(key, value, found.owner)
        await self.limits.records.commit(records, preconditions)
        if sent.text("from") == "list":
            return see_other(f"{SECURITY}?view=programs" if found.is_credential else APPS)
        return see_other(f"{enforcement.PAGE}/{page.segment}")

    async def _folder(self, found: Limited) -> ResourcePath:
        others = await self.limits.of_owner(found.owner)
        return await self.form.own_folder(found.pod, found.name, found.stored, others)

    async def _find(self, page: PageRequest) -> Limited:
        """The application whose limit has the key in the address. Raises NotAuthenticated,
        NotFound, StorageError."""
        person, key = page.signed_in(), page.segment
        stored = await self.limits.find(key)
        if stored is not None and stored.value.web_id != person.web_id:
            stored = None
        value = None if stored is None else stored.value
        session = page.open_session
        if session is not None and self.provider is not None:
            from podstead.web.account.collections import shown_applications

            account_id = session.account.account_id
            pod = f"/{session.account.pod}/" if value is None else value.limit.pod
            connected = await self.provider.connected_clients.of_account(account_id)
            for each in shown_applications(connected, base_url=self.form.base_url):
                if key in [
                    enforcement.client_key(person.web_id, client_id)
                    for client_id in each.client_ids
                ]:
                    hosts = {
                        c.client_id: c.hosts for c in connected if c.client_id in each.client_ids
                    }
                    return Limited(each.name, pod, account_id, hosts, value)
            for credential in await self.provider.accounts.credentials.of(account_id):
                if enforcement.client_key(person.web_id, credential.credential_id) == key:
                    name = credential.name or credential.credential_id
                    return Limited(
                        name,
                        pod,
                        account_id,
                        {credential.credential_id: ()},
                        value,
                        is_credential=True,
                    )
        if stored is None or value is None or not value.client_id:
            raise NotFound(LimitCodes.NO_SUCH_APPLICATION)
        clients, owner = {value.client_id: ()}, stored.owner or person.web_id
        return Limited(value.client_id, value.limit.pod, owner, clients, value)


@dataclass(frozen=True, slots=True)
class OtherProvidersPage:
    """Shows the limits of a pod for applications of other providers, and changes them."""

    limits: enforcement.LimitStore
    form: LimitForm
    renderer: PageRenderer

    @route(enforcement.PAGE, "GET")
    async def others(self, page: PageRequest) -> Response:
        """The limits of a pod for applications of other providers. Raises NotAuthenticated,
        NotFound, StorageError."""
        pod = _pod_of(page)
        stored = await self.limits.rules_of(pod)
        rules = () if stored is None else stored.value.rules
        client = page.query_text("client")
        chosen = next((each.limit for each in rules if each.client == client), None)
        return self.renderer.page(
            page,
            "access_limits/others.html",
            pod=pod,
            action=enforcement.PAGE,
            client=client,
            rules=[
                (each.client, self.form.described(each.limit), quote(each.client, safe=""))
                for each in rules
            ],
            fields=await self.form.fields(form="limit", pod=pod, chosen=chosen),
        )

    @route(enforcement.PAGE, "POST")
    async def change_others(self, page: PageRequest) -> Response:
        """Store or remove one of them. Raises NotAuthenticated, WrongFormToken, NotFound,
        BadRequest, Contention."""
        sent = await page.form()
        pod, client = _pod_of(page), sent.text("client").strip()
        if len(client) > _MAX_CLIENT_CHARACTERS:
            raise BadRequest(LimitCodes.NOT_AN_ADDRESS)
        client = origin_of(client) or client
        stored = await self.limits.rules_of(pod)
        before = () if stored is None else stored.value.rules
        present = next((each.limit for each in before if each.client == client), None)
        rules = [each for each in before if each.client != client]
        if sent.text("do") != "remove":
            limit = self.form.read(sent, pod=pod, present=present)
            rules.append(enforcement.ClientRule(client, limit))
        if len(rules) > enforcement.MAX_CLIENTS:
            raise BadRequest(LimitCodes.TOO_MANY)
        unchanged = enforcement.POD_RULES.absent(pod) if stored is None else stored.unchanged
        record = enforcement.POD_RULES.put(pod, enforcement.PodRules(tuple(rules)), owner=pod)
        await self.limits.records.commit([record], [unchanged])
        return see_other(enforcement.PAGE)


def _pod_of(page: PageRequest) -> ResourcePath:
    pods = page.signed_in().pods
    if not pods:
        raise NotFound(LimitCodes.NO_POD)
    return pods[0]


def _question(page: PageRequest) -> tuple[str, str] | None:
    """The path and mode that an application was refused."""
    path, mode = limit_values.usable_path(page.query_text("path")), page.query_text("mode")
    return None if path is None or mode not in set(_ACTION_OF) else (path, mode)


def _widened(limit: limit_values.Limit, path: str, mode: str) -> limit_values.Limit:
    """The limit with one more mode on one resource, and what is in it. Raises BadRequest."""
    usable = limit_values.usable_path(path)
    if usable is None or mode not in set(_ACTION_OF):
        raise BadRequest(LimitCodes.NOT_AN_ADDRESS)
    place = next(
        (each for each in limit.places if each.path == usable),
        limit_values.AllowedPlace(usable, ()),
    )
    given = {*place.actions, _ACTION_OF[Mode(mode)]}
    actions = tuple(each for each in limit_values.ACTIONS if each in given)
    wider = limit_values.AllowedPlace(usable, actions, place.rules or mode == Mode.CONTROL)
    return replace(limit, places=(*(each for each in limit.places if each.path != usable), wider))
