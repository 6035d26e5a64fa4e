"""Which of the person's own pods is a page about? The one that the query names, or the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podstead.core.errors import NotFound
from podstead.core.identifiers import ResourcePath
from podstead.web.codes import WebCodes
from podstead.web.pages.request import PageRequest, Person


@dataclass(frozen=True, slots=True)
class ChosenPod:
    """The chosen pod, and all of them to choose from."""

    root: ResourcePath
    pods: Sequence[ResourcePath]

    @property
    def name(self) -> str:
        return self.root.strip("/")


def chosen_pod(page: PageRequest, person: Person) -> ChosenPod:
    """The pod. Raises NotFound if the person has no such pod."""
    name = page.query_text("pod")
    pods = [each for each in person.pods if not name or each == f"/{name}/"]
    if not pods:
        raise NotFound(WebCodes.NO_SUCH_OWN_POD if name else WebCodes.NO_POD_HERE)
    return ChosenPod(pods[0], person.pods)
