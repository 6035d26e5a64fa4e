"""What are resources called on the pages? Their names, decoded, and the way to them."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

from podstead.core.identifiers import ROOT, ResourcePath, ancestors, segment_name


def shown_name(path: ResourcePath) -> str:
    """The name of a resource as people read it, without the slash of a container."""
    return unquote(segment_name(path).removesuffix("/"))


@dataclass(frozen=True, slots=True)
class Crumb:
    """One step on the way to a resource."""

    name: str
    path: ResourcePath


def breadcrumb(path: ResourcePath) -> list[Crumb]:
    """The way from the storage to a resource, both included."""
    above = [each for each in reversed(ancestors(path)) if each != ROOT]
    return [Crumb(shown_name(each), each) for each in (*above, path)]
