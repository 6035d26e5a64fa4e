"""An edit of a resource's access rules, and the rules that it leads to. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from podstead.core.identifiers import ACL_SUFFIX, ResourcePath, acl_of
from podstead.rdf.codecs import Document
from podstead.rdf.graph import Dataset
from podstead.storage.records import Version
from podstead.wac.sharing.editing import AccessChange, as_own_rules, with_changes


@dataclass(frozen=True, slots=True)
class RulesDocument:
    """The ACL that decides about ``resource``: its own, or that of the container ``of``."""

    resource: ResourcePath
    of: ResourcePath
    document: Document
    content_type: str
    etag: str
    version: Version

    @property
    def is_own(self) -> bool:
        return self.of == self.resource

    @property
    def token(self) -> str:
        """Identifies this state of the rules: another ACL, or another version, has another."""
        return f"{acl_of(self.of)} {self.version}"


class Inheritance(Enum):
    """How the rules of the containers above apply after the edit."""

    AS_IT_IS = "as it is"
    """A resource that inherits gets own rules only if the edit changes something."""
    STOP = "stop"
    """The resource gets own rules that grant what it inherited."""
    RESUME = "resume"
    """The resource loses its own rules."""


@dataclass(frozen=True, slots=True)
class Edit:
    """The changes that a person makes in one step."""

    changes: tuple[AccessChange, ...] = ()
    inheritance: Inheritance = Inheritance.AS_IT_IS


def edited(current: RulesDocument, edit: Edit, *, url: str) -> Document | None:
    """The resource's own ACL after an edit; ``None`` if it has none then.

    ``url`` is that of the resource.
    """
    if edit.inheritance is Inheritance.RESUME:
        return None
    acl_url = url + ACL_SUFFIX
    if current.is_own:
        document = current.document
    else:
        base = url.removesuffix(current.resource)
        graph = as_own_rules(
            current.document.graph, from_url=base + current.of, acl_url=acl_url, subject_url=url
        )
        document = Document(Dataset(graph), current.document.prefixes)
    graph = with_changes(document.graph, edit.changes, acl_url=acl_url, subject_url=url)
    if edit.inheritance is Inheritance.AS_IT_IS and not current.is_own and graph == document.graph:
        return None
    return document.with_graph(graph)
