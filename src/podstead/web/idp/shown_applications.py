"""How are connected applications listed on the account page? By their places.

Many applications register again each time that somebody signs in. To a person these are one
application, so registrations with the same places form one entry of the list, and disconnecting it
ends all of them. Programs see each registration separately.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from podstead.idp.client_metadata import is_document_url
from podstead.idp.grants import ConnectedClient
from podstead.web.idp.client_display import places_of

_ID_CHARACTERS: Final = 32


@dataclass(frozen=True, slots=True)
class ShownApplication:
    """An entry of the list, for one registration or several. Times are Unix seconds."""

    application_id: str
    """Its id in URLs: the connection's own id, if it has only one."""
    name: str
    """The name that it gives itself, or the host where it is."""
    places: Sequence[str]
    """Its places, except for what the name says already."""
    also_called: Sequence[str]
    """The names of other registrations at the same place."""
    connection_ids: Sequence[str]
    scopes: frozenset[str]
    since_s: int
    last_used_s: int | None


def shown_applications(
    connected_clients: Sequence[ConnectedClient], *, base_url: str
) -> Sequence[ShownApplication]:
    """The entries for the connected clients of an account at the server at ``base_url``, in their
    order, which is by last use."""
    groups: dict[tuple[str, ...], list[ConnectedClient]] = {}
    for client in connected_clients:
        places = tuple(sorted(places_of(client, base_url=base_url)))
        alone = is_document_url(client.client_id) or not places
        key = (client.client_id,) if alone else ("", *places)
        groups.setdefault(key, []).append(client)
    return [
        _application(key, group, places_of(group[0], base_url=base_url))
        for key, group in groups.items()
    ]


def _application(
    key: tuple[str, ...], group: Sequence[ConnectedClient], places: Sequence[str]
) -> ShownApplication:
    names = list(dict.fromkeys(each.client_name for each in group if each.client_name))
    name = names[0] if names else next(iter(places), group[0].client_id)
    used = [each.last_used_s for each in group if each.last_used_s is not None]
    several = hashlib.sha256("\n".join(key).encode()).hexdigest()[:_ID_CHARACTERS]
    return ShownApplication(
        application_id=group[0].connection_id if len(group) == 1 else several,
        name=name,
        places=[each for each in places if each != name],
        also_called=names[1:],
        connection_ids=[each.connection_id for each in group],
        scopes=frozenset(scope for each in group for scope in each.scopes),
        since_s=min(each.since_s for each in group),
        last_used_s=max(used, default=None),
    )
