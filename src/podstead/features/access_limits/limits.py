"""Limits as values: what one allows on a resource, and how applications ask for one.

Pure. A limit takes away and never adds: an application may do what both its person and the limit
allow. What everyone may do, an application may always do, since it could leave its token out.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from podstead.core.errors import BadRequest
from podstead.core.identifiers import ResourcePath, parse_path
from podstead.idp.client_metadata import UnusableDetails
from podstead.wac.modes import NO_MODES, Mode, Modes

READ: Final = "read"
ADD: Final = "add"
EDIT: Final = "edit"
ACTIONS: Final = (READ, ADD, EDIT)
_MODES: Final[Mapping[str, Modes]] = {
    READ: frozenset({Mode.READ}),
    ADD: frozenset({Mode.APPEND}),
    EDIT: frozenset({Mode.WRITE, Mode.APPEND}),
}
APPS_FOLDER: Final = "apps/"
"""The folder of a pod with the folders that belong to one application each."""
MAX_PLACES: Final = 50


class AllowedPlace(msgspec.Struct, frozen=True, omit_defaults=True):
    """A container with everything in it, or a document, and what is allowed there. With ``rules``,
    access rules may be read and changed where the place allows ``edit``."""

    path: str
    actions: tuple[str, ...]
    rules: bool = False


class Limit(msgspec.Struct, frozen=True):
    """What a person has given to an application, a script or a token at most.

    ``pod`` is the root of the person's own pod. ``shared`` is what is allowed on everything outside
    it. With ``rules``, access rules may be read and changed wherever ``edit`` is allowed; with
    ``identity``, statements of identity, too; with ``apps``, the folders of other applications are
    part of the places that contain them. Nothing is allowed from ``ends_s`` (Unix seconds) on, or
    while ``paused``.
    """

    pod: str
    places: tuple[AllowedPlace, ...] = ()
    shared: tuple[str, ...] = ()
    rules: bool = False
    identity: bool = False
    apps: bool = False
    ends_s: int | None = None
    paused: bool = False

    def has_ended(self, now_s: int) -> bool:
        """Whether its end has come."""
        return self.ends_s is not None and now_s >= self.ends_s

    @property
    def is_everything(self) -> bool:
        """Whether it takes nothing away."""
        return self == everything(self.pod)


def everything(pod: str, *, ends_s: int | None = None) -> Limit:
    """The limit that takes nothing away until its end."""
    whole = (AllowedPlace(pod, ACTIONS),)
    return Limit(pod, whole, ACTIONS, rules=True, identity=True, apps=True, ends_s=ends_s)


def allowed_modes(limit: Limit, subject: ResourcePath, *, now_s: int) -> Modes:
    """The modes that the limit allows on a resource that is not auxiliary."""
    if limit.paused or limit.has_ended(now_s):
        return NO_MODES
    places = [each for each in limit.places if _covers(limit, each.path, subject)]
    actions = {action for place in places for action in place.actions}
    if not subject.startswith(limit.pod):
        actions.update(limit.shared)
    modes = NO_MODES.union(*(_MODES[each] for each in actions))
    has_rules = any(each.rules and EDIT in each.actions for each in places)
    if has_rules or (limit.rules and EDIT in actions):
        modes |= {Mode.CONTROL}
    return modes


def _covers(limit: Limit, place: str, subject: ResourcePath) -> bool:
    if subject != place and not (place.endswith("/") and subject.startswith(place)):
        return False
    apps = limit.pod + APPS_FOLDER
    return limit.apps or not subject.startswith(apps) or place.startswith(apps)


def folder_of_application(pod: str, name: str, number: int = 1) -> ResourcePath:
    """The folder of its own that an application of this name gets; ``number`` is 2 for the second
    one of that name, and so on."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60].strip("-")
    slug = slug or "application"
    return ResourcePath(f"{pod}{APPS_FOLDER}{slug if number == 1 else f'{slug}-{number}'}/")


# What applications ask for: scope values, or authorization details (RFC 9396) of one type.

DETAILS_TYPE: Final = "pod_access"
SCOPES: Final = ("pod:read", "pod:add", "pod:edit", "pod:folder", "pod:shared")
RULES: Final = "access_rules"
_PRIVILEGES: Final = (RULES, "identity", "other_applications")
MAX_DETAILS_CHARACTERS: Final = 4096


class Detail(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One object of the type :data:`DETAILS_TYPE`.

    ``locations`` are URLs of containers and documents, also relative to the root of the person's
    pod; ``own_folder`` asks for a folder of the application's own. ``shared`` are actions on what
    others share with the person. Access rules among the ``privileges`` are for the locations if
    there are any. ``until`` is a time in UTC (RFC 3339).
    """

    type: str
    locations: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    own_folder: bool = False
    shared: tuple[str, ...] = ()
    privileges: tuple[str, ...] = ()
    until: datetime | None = None


_decoder: Final = msgspec.json.Decoder(tuple[Detail, ...])


def parse_details(text: str) -> tuple[Detail, ...]:
    """The authorization details in JSON. Raises UnusableDetails."""
    if len(text) > MAX_DETAILS_CHARACTERS:
        raise UnusableDetails("The authorization details are too long")
    try:
        details = _decoder.decode(text)
    except msgspec.DecodeError as error:
        raise UnusableDetails("The authorization details are not of the documented form") from error
    for each in details:
        known = set(ACTIONS).issuperset((*each.actions, *each.shared))
        if each.type != DETAILS_TYPE or not known or not set(_PRIVILEGES) >= set(each.privileges):
            raise UnusableDetails(
                f"The only type of authorization details is {DETAILS_TYPE}, with "
                f"the actions {', '.join(ACTIONS)}"
            )
    return details


def details_of_scopes(scopes: Iterable[str]) -> tuple[Detail, ...]:
    """The authorization details that scope values stand for, if some of them do."""
    asked = set(SCOPES).intersection(scopes)
    if not asked:
        return ()
    actions = tuple(each for each in ACTIONS if f"pod:{each}" in asked)
    return (
        Detail(
            DETAILS_TYPE,
            locations=("./",) if actions else (),
            actions=actions,
            own_folder="pod:folder" in asked,
            shared=actions if "pod:shared" in asked else (),
        ),
    )


def limit_of_details(
    details: Iterable[Detail], *, pod: str, base_url: str, own_folder: str, now_s: int
) -> Limit:
    """The limit that an application asks for whose folder would be ``own_folder``. What it cannot
    be given, such as a location elsewhere, is left out."""
    places: dict[str, AllowedPlace] = {}
    shared: set[str] = set()
    privileges: set[str] = set()
    ends: list[int] = []
    for each in details:
        given = set(each.privileges)
        has_rules = bool(each.locations or each.own_folder) and RULES in given
        for path in filter(None, (_path_of(url, pod, base_url) for url in each.locations)):
            before = places.get(path, AllowedPlace(path, ()))
            actions = _in_order((*before.actions, *each.actions))
            places[path] = AllowedPlace(path, actions, before.rules or has_rules)
        if each.own_folder:
            places[own_folder] = AllowedPlace(own_folder, ACTIONS, has_rules)
        shared.update(each.shared)
        privileges |= given - {RULES} if has_rules else given
        if each.until is not None:
            ends.append(max(int(each.until.timestamp()), now_s))
    return Limit(
        pod,
        tuple(places.values())[:MAX_PLACES],
        _in_order(shared),
        rules=RULES in privileges,
        identity="identity" in privileges,
        apps="other_applications" in privileges,
        ends_s=min(ends, default=None),
    )


def details_of_limit(limit: Limit, *, base_url: str, now_s: int) -> Sequence[object]:
    """The authorization details that say what a limit allows now."""
    if limit.paused or limit.has_ended(now_s):
        return []
    until = None if limit.ends_s is None else datetime.fromtimestamp(limit.ends_s, UTC)
    alike: dict[AllowedPlace, list[str]] = {}
    for place in limit.places:
        alike.setdefault(replace(place, path=""), []).append(base_url + place.path)
    details = [
        Detail(
            DETAILS_TYPE,
            locations=tuple(urls),
            actions=each.actions,
            privileges=(RULES,) if each.rules else (),
            until=until,
        )
        for each, urls in alike.items()
    ]
    granted = zip(_PRIVILEGES, (limit.rules, limit.identity, limit.apps), strict=True)
    privileges = tuple(name for name, has in granted if has)
    if limit.shared or privileges:
        details.append(
            Detail(DETAILS_TYPE, shared=limit.shared, privileges=privileges, until=until)
        )
    return [msgspec.to_builtins(each) for each in details]


def _path_of(url: str, pod: str, base_url: str) -> str | None:
    """The path of a location: a URL of this server, or one relative to the root of the pod."""
    if url.startswith(f"{base_url}/"):
        path = url.removeprefix(base_url)
    elif urlsplit(url).netloc or urlsplit(url).scheme or url.startswith("/"):
        return None
    else:
        path = pod + url.removeprefix("./")
    return usable_path(path)


def usable_path(path: str) -> ResourcePath | None:
    """The path of a resource as the server writes it; ``None`` for anything else."""
    try:
        return parse_path(path.encode("utf-8"))
    except (BadRequest, UnicodeError):
        return None


def _in_order(actions: Iterable[str]) -> tuple[str, ...]:
    given = set(actions)
    return tuple(each for each in ACTIONS if each in given)
