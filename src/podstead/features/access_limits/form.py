"""The form with which people choose a limit: its fields, and what was sent.

It works without scripts. The folders are shown as a tree, those that are nearest to the root first,
and anything else can be named by its address.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from markupsafe import Markup
from msgspec.structs import replace

from podstead.core.date_times import DAY_MS, day_of, read_day
from podstead.core.errors import BadRequest
from podstead.core.identifiers import ResourcePath, auxiliary_kind, is_container
from podstead.core.identity import IDENTITY_SCOPE, Identity
from podstead.core.operation import Operation
from podstead.core.vocab import LDP_BASIC_CONTAINER
from podstead.features.access_limits import limits
from podstead.features.access_limits.codes import LimitCodes
from podstead.features.access_limits.enforcement import StoredLimit
from podstead.resources import outcome, service
from podstead.storage.record_store import RecordStore, Versioned
from podstead.web.forms import FormSubmission
from podstead.web.pages import addresses, formats, templates

PRESETS: Final[Mapping[str, int]] = {"day": 1, "week": 7, "month": 30, "year": 365}
"""The ends that can be chosen without a date, in days."""
_PLACE: Final = "place:"
_ACTIONS_OF: Final = "actions:"
_OFFERED: Final = (("read",), ("add",), ("read", "add"), limits.ACTIONS, (*limits.ACTIONS, "rules"))
"""What can be chosen for one place, besides what is chosen for all of them."""
_ADJUSTABLE: Final = 30
"""For how many places this is offered before they are chosen: each is a field of every form."""
_SHOWN: Final = 300
"""How many folders and documents the tree has at most."""
_SHOWN_OF_ONE: Final = 60


@dataclass(frozen=True, slots=True)
class Node:
    """A folder or document in the tree."""

    path: str
    name: str
    members: Sequence["Node"] = ()


@dataclass(frozen=True, slots=True)
class LimitForm:
    """Shows the fields of limits in one person's pod, and reads them."""

    records: RecordStore
    resources: service.ResourceService
    base_url: str

    async def tree(self, pod: str) -> Node:
        """The folders and documents of a pod, as many as a page can show. Raises StorageError."""
        below: dict[str, list[str]] = {}
        waiting, left = [pod], _SHOWN
        while waiting and left > 0:
            container = waiting.pop(0)
            limit = min(_SHOWN_OF_ONE, left)
            listed = await self.records.store.list_members(ResourcePath(container), limit=limit)
            paths = [each.path for each in listed if auxiliary_kind(each.path) is None]
            below[container] = list(paths)
            left -= len(paths)
            waiting += [each for each in paths if is_container(each)]

        def node(path: str) -> Node:
            name = unquote(path.rstrip("/").rpartition("/")[2])
            return Node(path, name, [node(each) for each in below.get(path, ())])

        return node(pod)

    async def own_folder(
        self,
        pod: str,
        name: str,
        present: StoredLimit | None,
        others: Sequence[Versioned[StoredLimit]],
    ) -> ResourcePath:
        """The folder of an application of this name: the one that was made for it, or a new one,
        which is not there and which no limit of the person names. Raises StorageError."""
        if present is not None and present.own_folder.startswith(pod):
            return ResourcePath(present.own_folder)
        named = {each.value.own_folder for each in others}
        named |= {place.path for each in others for place in each.value.limit.places}
        number = 1
        while True:
            path = limits.folder_of_application(pod, name, number)
            is_named = any(each.startswith(path) for each in named)
            if not is_named and not await self._is_there(path):
                return path
            number += 1

    async def _is_there(self, path: str) -> bool:
        found = await self.records.store.read_metadata((ResourcePath(path),))
        return found[ResourcePath(path)] is not None

    async def fields(
        self,
        *,
        form: str,
        pod: str,
        chosen: limits.Limit | None,
        asked: limits.Limit | None = None,
        own_folder: str | None = None,
        with_identity: bool = False,
    ) -> Markup:
        """The fields of the form with the id ``form``. ``chosen`` is the present limit, ``None``
        for everything; ``asked`` is what the application asks for. The page of consent has the box
        for statements of identity itself. Raises StorageError."""
        everything_now = limits.everything(pod)
        current = chosen or (everything_now if asked is None else asked)
        places = {each.path: each for each in current.places}
        tree = await self.tree(pod)
        shown = set(_paths(tree))
        folders = [
            path
            for path in (ResourcePath(each.path) for each in tree.members)
            if is_container(path) and path != own_folder
        ]
        given = [each.actions for each in current.places if each.path != own_folder]
        given += [current.shared] if current.shared else []
        common = tuple(each for each in limits.ACTIONS if all(each in actions for actions in given))
        own = {
            each.path: (*each.actions, *(["rules"] if each.rules else []))
            for each in current.places
            if each.rules or each.actions != common
        }
        ends_s, now_s = current.ends_s, self.records.now_s()
        is_new = own_folder is not None and not await self._is_there(own_folder)
        new_folder = own_folder if is_new else None
        text = (
            templates.load_templates()
            .get_template("pods/access_limits/fields.html")
            .render(
                form=form,
                pod=pod,
                tree=tree,
                choices=[
                    (
                        for_apps,
                        [each for each in folders if addresses.is_for_apps(each) is for_apps],
                    )
                    for for_apps in (False, True)
                ],
                places=places,
                opened={above for each in places for above in shown if each.startswith(above)},
                shown_name=addresses.shown_name,
                others=[each for each in places if each not in shown and each != own_folder],
                own_folder=own_folder,
                paused=current.paused,
                choice=_choice(chosen, asked),
                asked=None if asked is None else self.described(asked, new_folder),
                common=common,
                own=own,
                adjustable={*(each.path for each in tree.members[:_ADJUSTABLE]), *places},
                offered=tuple(dict.fromkeys((*_OFFERED, *own.values()))),
                shared=current is not everything_now and bool(current.shared),
                rules=current is not everything_now and current.rules,
                apps=current is not everything_now and current.apps,
                identity_scope=IDENTITY_SCOPE if with_identity else None,
                identity=current is not everything_now and current.identity,
                until="" if ends_s is None or ends_s <= now_s else _last_day_of(ends_s),
                today=day_of(now_s * 1000),
            )
        )
        return Markup(text)  # noqa: S704 - of a template, which escapes

    def described(self, limit: limits.Limit, new_folder: str | None = None) -> Mapping[str, object]:
        """A limit in the words of the templates."""
        return {
            "places": [
                (
                    unquote(each.path),
                    (*each.actions, *(["rules"] if each.rules else [])),
                    each.path == new_folder,
                )
                for each in limit.places
            ],
            "shared": limit.shared,
            "rules": limit.rules,
            "identity": limit.identity,
            "apps": limit.apps,
            "until": None if limit.ends_s is None else formats.date_text((limit.ends_s - 1) * 1000),
            "everything": _is_whole(limit),
            "paused": limit.paused,
            "ended": limit.has_ended(self.records.now_s()),
        }

    def read(
        self,
        sent: FormSubmission,
        *,
        pod: str,
        asked: limits.Limit | None = None,
        own_folder: str | None = None,
        present: limits.Limit | None = None,
    ) -> limits.Limit:
        """The limit that was chosen in place of the present one. Without a choice it is what was
        asked for, or everything. Raises BadRequest."""
        now_s = self.records.now_s()
        ends_s = _end(sent, now_s, None if present is None else present.ends_s)
        access = sent.text("access") or ("all" if asked is None else "asked")
        if sent.text("only"):
            # A folder that was chosen is the limit, whatever else is still ticked.
            access = "less"
            common = {each: sent.fields.get(each) for each in limits.ACTIONS}
            sent = FormSubmission({_PLACE + sent.text("only"): "yes", **common})
        identity = sent.ticked(IDENTITY_SCOPE)
        if access == "all":
            return limits.everything(pod, ends_s=ends_s)
        if access == "asked" and asked is not None:
            ends = [each for each in (asked.ends_s, ends_s) if each is not None]
            return replace(asked, identity=identity, ends_s=min(ends, default=None))
        actions = tuple(each for each in limits.ACTIONS if sent.ticked(each))
        named = [name.removeprefix(_PLACE) for name in sent.fields if name.startswith(_PLACE)]
        if sent.text("another"):
            named.append(sent.text("another").strip().removeprefix(self.base_url))
        paths = [limits.usable_path(each) for each in dict.fromkeys(named)]
        if None in paths or len(paths) > limits.MAX_PLACES:
            raise BadRequest(LimitCodes.NOT_AN_ADDRESS)
        places = [_place(sent, str(each), actions) for each in paths]
        if own_folder is not None and sent.ticked("own_folder"):
            places = [each for each in places if each.path != own_folder]
            places.append(limits.AllowedPlace(own_folder, limits.ACTIONS))
        shared = actions if sent.ticked("shared") else ()
        if not (places or shared) or not all(each.actions for each in places):
            raise BadRequest(LimitCodes.NOTHING_CHOSEN)
        return limits.Limit(
            pod,
            tuple(places),
            shared,
            rules=sent.ticked("rules"),
            identity=identity,
            apps=sent.ticked("apps"),
            ends_s=ends_s,
        )

    async def make_folder(self, limit: limits.Limit, own_folder: str, owner: Identity) -> str:
        """Create the folder of an application and return its path, if the limit has it. Raises
        RequestRefused, ServerTrouble."""
        if all(each.path != own_folder for each in limit.places):
            return ""
        if not await self._is_there(own_folder):
            path, link_types = ResourcePath(own_folder), (LDP_BASIC_CONTAINER,)
            operation = Operation("PUT", path, link_types=link_types)
            await self.resources.handle(outcome.ResourceRequest(operation, owner))
        return own_folder


def _place(sent: FormSubmission, path: str, common: tuple[str, ...]) -> limits.AllowedPlace:
    """A place with what was chosen for it, or for all of them."""
    own = sent.text(_ACTIONS_OF + path).split()
    actions = tuple(each for each in limits.ACTIONS if each in own) if own else common
    return limits.AllowedPlace(path, actions, limits.EDIT in actions and "rules" in own)


def _choice(chosen: limits.Limit | None, asked: limits.Limit | None) -> str:
    if chosen is None:
        return "all" if asked is None else "asked"
    return "all" if _is_whole(chosen) else "less"


def _is_whole(limit: limits.Limit) -> bool:
    return replace(limit, identity=True, ends_s=None, paused=False).is_everything


def _paths(node: Node) -> Sequence[str]:
    return [node.path, *(path for each in node.members for path in _paths(each))]


def _last_day_of(ends_s: int) -> str:
    """The day with the last second before the end."""
    return day_of((ends_s - 1) * 1000)


def _end(sent: FormSubmission, now_s: int, present_s: int | None) -> int | None:
    """The end of the chosen day, in UTC, or the time of a preset; the present end remains if its
    day is chosen."""
    chosen = sent.text("until")
    if chosen in PRESETS:
        return now_s + PRESETS[chosen] * DAY_MS // 1000
    if chosen != "date":
        return None
    kept_s = present_s or 0
    if kept_s > now_s and sent.text("until_date") == _last_day_of(kept_s):
        return kept_s
    try:
        ends_s = (read_day(sent.text("until_date")) + DAY_MS) // 1000
    except ValueError as error:
        raise BadRequest(LimitCodes.NO_DAY) from error
    if ends_s <= now_s:
        raise BadRequest(LimitCodes.END_IS_PAST)
    return ends_s
