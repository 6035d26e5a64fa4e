"""``/.pages/share/<path>``: who has access to a resource, and changing that in two steps.

The first form leads to a preview of what it changes for whom; the form of the preview saves. Both
carry the state of the rules that the person has seen.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from podstead.core.errors import RequestRefused
from podstead.core.identifiers import ResourcePath, is_container, parse_path, storage_root
from podstead.resources.sharing import documents, offers, people, service
from podstead.resources.sharing.access_requests import AccessRequest, AccessRequests
from podstead.wac.acl import agent_name
from podstead.wac.sharing import rules
from podstead.wac.sharing.access import Scope
from podstead.web.forms import FormSubmission
from podstead.web.pages import addresses
from podstead.web.pages.addresses import breadcrumb, files_url, local_address, share_url, shown_name
from podstead.web.pages.cookies import FlashMessage, Tone, add_flash_messages
from podstead.web.pages.notifier import SHARED, Notifier, PersonNotice
from podstead.web.pages.rendering import refusal_text
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_, _
from podstead.web.response import Response
from podstead.web.routes import REST, route
from podstead.web.sharing import people_field, views

add_flash_messages(
    Tone.DONE,
    sharing_saved=N_("Saved."),
    shared_with=N_("Shared with %(subject)s."),
)
add_flash_messages(
    Tone.PROBLEM,
    rules_changed=N_(
        "Somebody else changed the access in the meantime, so nothing was saved. This is how it is "
        "now."
    ),
)

_OWNER_KEEPS = N_("The owner of a pod keeps full access, so this cannot be saved.")
_NOT_CONFIRMED = N_("Tick the box to confirm that you give up managing this.")


class SharingSection(Protocol):
    """A section of the page, about agents of one kind."""

    template: str
    """Its template, which gets the values of the page and ``section``."""

    line_template: str
    """What stands below the field for sharing, such as a button that shares in another way; empty
    for nothing. It gets as ``for_whom`` an e-mail address of which nobody was found."""

    list_template: str
    """The part of it that lists the agents, for the page about everything that is shared."""

    def shows(self, agent: str) -> bool:
        """Whether the agent with this IRI is in the section, and not in the list of the page."""

    async def values(self, page: PageRequest, state: service.SharingState) -> Mapping[str, object]:
        """What the templates show as ``section``. Raises ServerTrouble."""

    async def names(self, pod: ResourcePath, agents: Iterable[str]) -> Mapping[str, str]:
        """What pages call those of the agents that belong to a pod, by IRI, also if they are no
        longer there. Raises StorageError."""


@dataclass(frozen=True, slots=True)
class SectionNames:
    """The names of the agents of all sections."""

    sections: Sequence[SharingSection]

    async def __call__(self, pod: ResourcePath, agents: Iterable[str | None]) -> Mapping[str, str]:
        """Raises StorageError."""
        named = list(dict.fromkeys(filter(None, agents)))
        found: dict[str, str] = {}
        for each in self.sections:
            found |= await each.names(pod, named)
        return found


@dataclass(frozen=True, slots=True)
class SharePage:
    """Shows who has access to a resource, previews changes and saves them."""

    site: Site
    sharing: service.SharingService
    requests: AccessRequests
    field: people_field.PeopleField
    names: views.NamesByReader
    notifier: Notifier
    sections: Sequence[SharingSection] = ()

    @route(addresses.SHARE + REST, "GET")
    async def get(self, page: PageRequest) -> Response:
        target = page.target
        try:
            state = await self.sharing.view(page.identity, target)
        except documents.RulesOutOfReach as error:
            return views.out_of_reach_page(self.site.renderer, page, error)
        return await self._list(page, state)

    @route(addresses.SHARE + REST, "POST")
    async def post(self, page: PageRequest) -> Response:
        """The preview of a change, or the change itself. Raises NotAuthenticated, AccessDenied,
        NotFound, BadRequest."""
        sent = await page.form()
        target, token = page.target, sent.text("token")
        try:
            change = views.read_change(sent, await self._grantee(page, sent))
        except people_field.NOT_FOUND as error:
            state = await self.sharing.view(page.identity, target)
            return await self._list(page, state, error=error, sent=sent)
        edit = change.edit(target)
        try:
            preview = None
            if sent.text("step") != "save":
                preview = await self.sharing.preview(page.identity, target, edit, token)
                if sent.text("step") != "share" or views.needs_preview(change, preview):
                    return await self._preview(page, change, token, preview)
            confirmed = sent.ticked("confirmed")
            try:
                saved = await self.sharing.save(
                    page.identity, target, edit, token, confirmed=confirmed
                )
            except (service.OwnerLockedOut, service.NeedsConfirmation) as error:
                preview = await self.sharing.preview(page.identity, target, edit, token)
                return await self._preview(page, change, token, preview, refused=error)
        except documents.RulesChanged:
            return self.site.see_other(share_url(target), FlashMessage("rules-changed"))
        await self._answered(page, change)
        await self._tell(page, change, saved)
        back = local_address(sent.text("next")) or share_url(target)
        return self.site.see_other(back, await self._notice(page, change, preview))

    # --- steps ----------------------------------------------------------------------------

    async def _grantee(self, page: PageRequest, sent: FormSubmission) -> rules.Grantee | None:
        """Whom a form is about: an entry of the list, or somebody whom the person typed."""
        if sent.text("change") in ("stop", "resume"):
            return None
        match views.read_kind(sent):
            case rules.GranteeKind.EVERYONE:
                return rules.EVERYONE
            case rules.GranteeKind.AUTHENTICATED:
                return rules.AUTHENTICATED
            case rules.GranteeKind.GROUP:
                return rules.group(
                    people.agent_iri((sent.text("grantee") or sent.text("who")).strip())
                )
            case rules.GranteeKind.AGENT:
                known = sent.text("grantee")
                return (
                    rules.agent(people.agent_iri(known))
                    if known
                    else await self.field.meant(page, sent)
                )

    async def _tell(
        self, page: PageRequest, change: views.WantedChange, saved: service.Preview
    ) -> None:
        """Tell the person who has got something now; answers to requests are told by themselves."""
        grantee = change.grantee
        if grantee is None or grantee.kind is not rules.GranteeKind.AGENT or change.request:
            return
        gets_now = change.period.begins_ms is None and any(
            each.grantee == grantee and each.after - each.before
            for each in (*saved.here, *saved.inside)
        )
        by = people_field.identity_of(page)
        if gets_now and grantee.iri not in map(agent_name, by.names()):
            target = page.target
            notice = PersonNotice(
                SHARED, files_url(target), shown_name(target), by.iri, change.message
            )
            await self.notifier.tell(grantee.iri, notice)

    async def _notice(
        self, page: PageRequest, change: views.WantedChange, preview: service.Preview | None
    ) -> FlashMessage:
        """What the next page says."""
        if preview is None or change.grantee is None:
            return FlashMessage("sharing-saved")
        names = await self.names.of(page.identity, (change.grantee,))
        return FlashMessage("shared-with", names.grantee(change.grantee))

    async def _answered(self, page: PageRequest, change: views.WantedChange) -> None:
        """Remove the request that a change answers. The access has been granted, so a failure to
        remove it is none of the change."""
        if not change.request or page.identity is None or change.grantee is None:
            return
        try:
            notification = parse_path(change.request.encode())
            request = await self.requests.read(page.identity, notification)
            if request is not None and request.actor == change.grantee.iri:
                await self.requests.answer(page.identity, request, allowed=True)
        except RequestRefused:
            return

    async def _pending(self, page: PageRequest, target: ResourcePath) -> list[AccessRequest]:
        """The requests for access to a resource, if the person may read the inbox."""
        storage = storage_root(target)
        if page.identity is None or storage is None:
            return []
        try:
            found = await self.requests.pending(page.identity, storage)
        except RequestRefused:
            return []
        return [request for request in found if request.resource == target]

    async def _list(
        self,
        page: PageRequest,
        state: service.SharingState,
        *,
        error: RequestRefused | None = None,
        sent: FormSubmission | None = None,
    ) -> Response:
        access = state.access
        target = access.resource
        owner = access.owner
        known = await self.field.suggested(page)
        meant = error.found if isinstance(error, people_field.SeveralFound) else ()
        named = [each.grantee for each in access.entries]
        named += [*(each.grantee for each in known), *meant]
        names = await self.names.of(page.identity, named)
        shown = [(each, await each.values(page, state)) for each in self.sections]
        filled = _filled(sent)
        return self.site.page(
            page,
            "sharing/share.html",
            status=200 if error is None else 400,
            target=target,
            name=shown_name(target),
            breadcrumb=breadcrumb(target),
            token=state.token,
            is_folder=is_container(target),
            owner=None if owner is None else names.iri(owner),
            owner_iri=owner,
            is_own=owner is not None and page.person is not None and page.person.web_id == owner,
            entries=[
                each
                for each in views.shown_entries(state, names)
                if not any(section.shows(each.iri) for section in self.sections)
            ],
            lines=[(each.line_template, values) for each, values in shown if each.line_template],
            sections=[(each.template, values) for each, values in shown],
            rules=views.shown_rules(access.special),
            today=views.last_day(state.now_ms + 1),
            everyone_lists=views.everyone_lists(state),
            inherited_from=access.inherited_from,
            folder=None if access.inherited_from is None else shown_name(access.inherited_from),
            can_inherit=state.can_inherit,
            roles=views.role_choices(),
            scopes=views.scope_choices(target),
            requests=[
                (
                    request,
                    names.iri(request.actor),
                    views.shown_role(request.modes),
                    views.offered_role(request.modes),
                )
                for request in await self._pending(page, target)
            ],
            suggestions=people_field.offered(known, names),
            choices=[(each, names.grantee(each)) for each in meant],
            max_message=offers.MAX_MESSAGE_CHARS,
            error=None if error is None else refusal_text(error),
            filled=filled,
            not_found=str(filled["who"]).strip() if isinstance(error, people.NobodyFound) else "",
        )

    async def _preview(
        self,
        page: PageRequest,
        change: views.WantedChange,
        token: str,
        preview: service.Preview,
        *,
        refused: RequestRefused | None = None,
    ) -> Response:
        target = page.target
        consequences = preview.consequences
        owner_loses = service.Consequence.OWNER_LOSES in consequences
        differences = (*preview.here, *preview.inside)
        names = await self.names.of(page.identity, (each.grantee for each in differences))
        texts = [_OWNER_KEEPS] if owner_loses else []
        if isinstance(refused, service.NeedsConfirmation):
            texts.append(_NOT_CONFIRMED)
        return self.site.page(
            page,
            "sharing/preview.html",
            status=200 if refused is None else 409,
            target=target,
            name=shown_name(target),
            breadcrumb=breadcrumb(target),
            token=token,
            fields=change.fields(),
            parts=views.shown_parts(preview, names),
            changes_anything=preview.changes_anything,
            gets_own_rules=service.Consequence.GETS_OWN_RULES in consequences,
            stops=change.action == "stop",
            loses_own_rules=service.Consequence.LOSES_OWN_RULES in consequences,
            everyone_can_change=service.Consequence.EVERYONE_CAN_CHANGE in consequences,
            profile_hidden=service.Consequence.PROFILE_HIDDEN in consequences,
            loses_control=service.Consequence.LOSES_CONTROL in consequences,
            can_save=not owner_loses,
            problems=[_(text) for text in texts],
            members=preview.members,
            reached=[shown_name(path) for path in preview.members.inheriting],
            is_folder=is_container(target),
        )


_EMPTY: Final = {
    "who": "",
    "kind": rules.GranteeKind.AGENT.value,
    "role": rules.Role.VIEW.value,
    "scope": Scope.BOTH.value,
    "from": "",
    "until": "",
    "message": "",
}


def _filled(sent: FormSubmission | None) -> Mapping[str, object]:
    """What the fields of the form contain; ``is_further`` if one is filled that is folded in."""
    texts = {} if sent is None else {name: sent.text(name) for name in _EMPTY if sent.text(name)}
    filled = {**_EMPTY, **texts}
    folded = filled.keys() - {"who", "role"}
    return {**filled, "is_further": any(filled[name] != _EMPTY[name] for name in folded)}
