"""``/.pages/undo``: undoes what an application or a person has changed in a pod."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlencode

from podstead.core.date_times import read_day
from podstead.core.errors import BadRequest
from podstead.core.identifiers import ResourcePath, is_container
from podstead.features.history import undo as history_undo
from podstead.storage.former_states import DELETED
from podstead.web.account.actor_names import ActorNames
from podstead.web.account.home import ChosenPod, chosen_pod
from podstead.web.codes import WebCodes
from podstead.web.pages.addresses import PREFIX
from podstead.web.pages.cookies import FlashMessage, Tone, add_flash_messages
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_, _
from podstead.web.response import Response
from podstead.web.routes import route

UNDO: Final = f"{PREFIX}/undo"

add_flash_messages(Tone.DONE, undone=N_("The changes have been undone."))
add_flash_messages(
    Tone.PROBLEM,
    partly_undone=N_("Some changes could not be undone; those that are left are listed here."),
)


@dataclass(frozen=True, slots=True)
class ShownUndo:
    """A change as the page shows it."""

    name: str
    is_container: bool
    was_deleted: bool
    was_created: bool
    in_conflict: bool
    at_ms: int


@dataclass(frozen=True, slots=True)
class UndoPage:
    """Lists changes, and undoes them."""

    site: Site
    undo: history_undo.Undo
    names: ActorNames

    @route(UNDO, "GET")
    async def get(self, page: PageRequest) -> Response:
        pod = chosen_pod(page, page.signed_in())
        await self.undo.past.gate.require_control(page.identity, pod.root)
        actors = await self.undo.actors(page.identity, pod.root)
        who, since = page.query_text("who"), page.query_text("since")
        found: history_undo.UndoableChanges | None = None
        if who and since:
            found = await self.undo.changes(page.identity, pod.root, _actor(who), _begin(since))
        named = await self.names.of(page, pod.root, [each.agent for each in actors])
        return self.site.page(
            page,
            "history/undo.html",
            pod=pod,
            actors=[(_key(each), _title(*named(each.agent, each.client))) for each in actors],
            who=who,
            since=since,
            changes=None if found is None else [_shown(each, pod) for each in found.all],
            is_complete=found is None or found.is_complete,
            can_undo=found is not None and any(not each.in_conflict for each in found.all),
            action=UNDO,
        )

    @route(f"{UNDO}/changes", "POST")
    async def post(self, page: PageRequest) -> Response:
        sent = await page.form()
        person = page.signed_in()
        pod = ChosenPod(ResourcePath(sent.text("pod")), person.pods)
        if pod.root not in person.pods:
            raise BadRequest(WebCodes.FORM_MALFORMED)
        await self.undo.past.gate.require_control(page.identity, pod.root)
        who, since = sent.text("who"), sent.text("since")
        _done, left = await self.undo.undo(page.identity, pod.root, _actor(who), _begin(since))
        chosen = {"who": who, "since": since} if left else {}
        query = urlencode({"pod": pod.name, **chosen})
        notice = FlashMessage("partly-undone" if left else "undone")
        return self.site.see_other(f"{UNDO}?{query}", notice)


def _title(who: str, application: str) -> str:
    if not application:
        return who
    return _("%(who)s with %(application)s") % {"who": who, "application": application}


def _key(actor: history_undo.Actor) -> str:
    """How forms name the actor."""
    return f"{actor.agent or ''} {actor.client or ''}"


def _actor(key: str) -> history_undo.Actor:
    """Raises BadRequest."""
    agent, space, client = key.partition(" ")
    if not space:
        raise BadRequest(WebCodes.FORM_MALFORMED)
    return history_undo.Actor(agent or None, client or None)


def _begin(since: str) -> int:
    """The beginning of a day in UTC. Raises BadRequest."""
    try:
        return read_day(since)
    except ValueError as error:
        raise BadRequest(WebCodes.DATE_MALFORMED) from error


def _shown(
    change: history_undo.UndoableChange | history_undo.UndoableCreation, pod: ChosenPod
) -> ShownUndo:
    was_deleted = isinstance(change, history_undo.UndoableChange) and change.last.deleted == DELETED
    return ShownUndo(
        name=unquote(change.path[len(pod.root) :]),
        is_container=is_container(change.path),
        was_deleted=was_deleted,
        was_created=isinstance(change, history_undo.UndoableCreation),
        in_conflict=change.in_conflict,
        at_ms=change.at_ms,
    )
