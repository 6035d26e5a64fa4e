"""``/.pages/groups``: the groups of a person, with their names and members."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from podstead.core.errors import BadRequest, NotFound, PreconditionFailed, RequestRefused
from podstead.core.identifiers import ResourcePath, is_container
from podstead.resources.sharing import documents, people, service, shared
from podstead.wac.modes import NO_MODES
from podstead.wac.sharing.editing import AccessChange
from podstead.wac.sharing.rules import GranteeKind, agent, group
from podstead.web.codes import WebCodes
from podstead.web.forms import FormSubmission
from podstead.web.pages.addresses import GROUPS, files_url, shown_name
from podstead.web.pages.cookies import FlashMessage, Tone, add_flash_messages
from podstead.web.pages.formats import name_sort_key
from podstead.web.pages.rendering import refusal_text
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_
from podstead.web.response import Response
from podstead.web.routes import REST, route
from podstead.web.sharing import people_field, views
from podstead.web.sharing import shared as sharing_shared

_SHOWN_PLACES: Final = 50

add_flash_messages(
    Tone.DONE,
    group_made=N_("The group “%(subject)s” is made. Add its members."),
    group_saved=N_("Saved."),
    group_deleted=N_("The group “%(subject)s” is deleted, and what it gave has ended."),
)
add_flash_messages(
    Tone.PROBLEM,
    group_changed=N_("Somebody else changed the group in the meantime. This is how it is now."),
)


@dataclass(frozen=True, slots=True)
class GroupsPage:
    """Lists groups, and makes, changes and deletes them."""

    site: Site
    groups: people.OwnGroups
    field: people_field.PeopleField
    names: views.NamesByReader
    lists: shared.SharedLists
    sharing: service.SharingService

    @route(GROUPS, "GET")
    async def get(self, page: PageRequest) -> Response:
        person = page.signed_in()
        pods = _pods(page)
        by_name = name_sort_key()
        found = await self.groups.of(person.identity, pods)
        return self.site.page(
            page,
            "sharing/groups.html",
            views=sharing_shared.shared_tabs(page, sharing_shared.GROUPS_TAB),
            groups=sorted(found, key=lambda each: (by_name(each.name), each.path)),
            max_name=people.MAX_NAME_CHARACTERS,
        )

    @route(GROUPS, "POST")
    async def post(self, page: PageRequest) -> Response:
        """Make a group. Raises NotAuthenticated, NotFound without a pod, BadRequest, and what a
        PUT raises."""
        sent = await page.form()
        pods = _pods(page)
        made = await self.groups.create(people_field.identity_of(page), pods[0], _name(sent), ())
        return self.site.see_other(GROUPS + made.path, FlashMessage("group-made", made.name))

    @route(GROUPS + REST, "GET")
    async def get_one(self, page: PageRequest) -> Response:
        return await self._one(page, await self._group(page))

    @route(GROUPS + REST, "POST")
    async def post_one(self, page: PageRequest) -> Response:
        """Change or delete a group. Raises NotAuthenticated, AccessDenied, NotFound, BadRequest,
        and what a PUT and a DELETE raise."""
        sent = await page.form()
        found = await self._group(page)
        name, members = found.name, set(found.members)
        match sent.text("change"):
            case "add":
                try:
                    meant = await self.field.meant(page, sent)
                    if meant.kind is not GranteeKind.AGENT:
                        raise people.NobodyFound
                except people_field.NOT_FOUND as error:
                    return await self._one(page, found, error=error, typed=sent.text("who"))
                if len(members) >= people.MAX_MEMBERS:
                    raise BadRequest(WebCodes.TOO_MANY_MEMBERS, number=people.MAX_MEMBERS)
                members.add(meant.iri)
            case "remove":
                members.discard(sent.text("member"))
            case "rename":
                name = _name(sent)
            case "delete":
                return await self._deleted(page, found)
            case _:
                raise BadRequest(WebCodes.CHANGE_MISSING)
        try:
            await self.groups.change(people_field.identity_of(page), found, name, sorted(members))
        except PreconditionFailed:
            return self.site.see_other(GROUPS + found.path, FlashMessage("group-changed"))
        return self.site.see_other(GROUPS + found.path, FlashMessage("group-saved"))

    # --- steps ----------------------------------------------------------------------------

    async def _group(self, page: PageRequest) -> people.OwnGroup:
        target = page.target
        if not target.startswith(tuple(_pods(page))) or is_container(target):
            raise NotFound
        return await self.groups.read(people_field.identity_of(page), target)

    async def _one(
        self,
        page: PageRequest,
        found: people.OwnGroup,
        *,
        error: RequestRefused | None = None,
        typed: str = "",
    ) -> Response:
        members = list(map(agent, found.members))
        known = [
            each
            for each in await self.field.suggested(page)
            if each.grantee.kind is GranteeKind.AGENT and each.grantee not in members
        ]
        places = await self._places(page, found)
        choices = error.found if isinstance(error, people_field.SeveralFound) else ()
        names = await self.names.of(page.identity, ())
        by_name = name_sort_key()
        shown = [(names.iri(iri), iri) for iri in found.members]
        return self.site.page(
            page,
            "sharing/group.html",
            status=200 if error is None else 400,
            group=found,
            action=GROUPS + found.path,
            members=sorted(shown, key=lambda each: (by_name(each[0]), each[1])),
            suggestions=people_field.offered(known, names),
            choices=[(each, names.grantee(each)) for each in choices],
            error=None if error is None else refusal_text(error),
            typed=typed,
            places=[
                (shown_name(each), files_url(each), is_container(each))
                for each in places[:_SHOWN_PLACES]
            ],
            more_places=len(places[_SHOWN_PLACES:]),
            max_name=people.MAX_NAME_CHARACTERS,
        )

    async def _places(self, page: PageRequest, found: people.OwnGroup) -> Sequence[ResourcePath]:
        """What the rules of the person's pods give to the group."""
        return await self.lists.places_of(found.iri, page.signed_in().pods)

    async def _deleted(self, page: PageRequest, found: people.OwnGroup) -> Response:
        """Remove the group from the rules that name it, and its document. What another change
        keeps from being removed names nobody from then on."""
        identity, grantee = people_field.identity_of(page), group(found.iri)
        edit = documents.Edit((AccessChange(grantee, NO_MODES, NO_MODES),))
        for place in await self._places(page, found):
            try:
                state = await self.sharing.view(identity, place)
                if any(each.grantee == grantee for each in state.access.entries):
                    await self.sharing.save(identity, place, edit, state.token)
            except RequestRefused:
                continue
        try:
            await self.groups.remove(identity, found)
        except PreconditionFailed:
            return self.site.see_other(GROUPS + found.path, FlashMessage("group-changed"))
        return self.site.see_other(GROUPS, FlashMessage("group-deleted", found.name))


def _pods(page: PageRequest) -> Sequence[ResourcePath]:
    """The pods of the person. Raises NotAuthenticated, NotFound without any."""
    pods = page.signed_in().pods
    if not pods:
        raise NotFound(WebCodes.NO_POD)
    return pods


def _name(sent: FormSubmission) -> str:
    """Raises BadRequest."""
    name = " ".join(sent.text("name").split())[: people.MAX_NAME_CHARACTERS]
    if not name:
        raise BadRequest(WebCodes.GROUP_NAME_MISSING)
    return name
