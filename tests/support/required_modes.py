"""Which modes does an operation require, by the name of its method or of its request?"""

from __future__ import annotations

from podstead.core.identifiers import ResourcePath
from podstead.storage.protocol import Snapshot
from podstead.wac import modes
from podstead.wac.modes import PatchContent, Requirements

_INSERTS = PatchContent(inserts=True)
PATCHES = {
    "PATCH": _INSERTS,
    "PATCH sparql": _INSERTS,
    "PATCH replace": PatchContent(inserts=True, deletes=True, where=True),
    "PATCH if": PatchContent(inserts=True, where=True),
}
"""What the patches of the permission matrix contain."""


def required_modes(method: str, target: ResourcePath, snapshot: Snapshot) -> Requirements:
    """What the method requires whatever its body says, which is all but for PATCH."""
    match method:
        case "GET" | "HEAD":
            return modes.for_read(target)
        case "POST":
            return modes.for_post(target)
        case "PUT":
            return modes.for_put(target, snapshot)
        case "PATCH":
            return modes.for_patch(target, snapshot)
        case "DELETE":
            return modes.for_delete(target, snapshot)
    raise ValueError(method)


def requirements_of(request: str, target: ResourcePath, snapshot: Snapshot) -> Requirements:
    """What a request of the permission matrix requires, the content of its patch included."""
    if request in PATCHES:
        return modes.for_patch(target, snapshot, PATCHES[request])
    return required_modes(request.partition(" ")[0], target, snapshot)
