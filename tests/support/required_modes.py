"""Which modes does an operation require, by the name of its method?"""

from __future__ import annotations

from podstead.core.identifiers import ResourcePath
from podstead.storage.protocol import Snapshot
from podstead.wac import modes
from podstead.wac.modes import Requirements


def required_modes(method: str, target: ResourcePath, snapshot: Snapshot) -> Requirements:
    """What the method requires whatever its body says, which is all but for PATCH."""
    match method:
        case "GET" | "HEAD":
            return modes.read(target)
        case "POST":
            return modes.post(target)
        case "PUT":
            return modes.put(target, snapshot)
        case "PATCH":
            return modes.patch(target, snapshot)
        case "DELETE":
            return modes.delete(target, snapshot)
    raise ValueError(method)
