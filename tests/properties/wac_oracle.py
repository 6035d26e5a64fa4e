"""An independent model of WAC over the ACL's text, written from the specification.

Plain on purpose, and on another RDF library: it looks for single triples and knows no rules, caches
or indexes. It answers for one required mode at a time, as the specification's "Authorization
Evaluation" does, and takes the choice W-17 for origins.
"""

from __future__ import annotations

from collections.abc import Mapping

from rdflib import RDF, Graph, Namespace, URIRef
from rdflib.namespace import FOAF
from rdflib.term import Node

ACL = Namespace("http://www.w3.org/ns/auth/acl#")

# "When a request requires an access mode which is a limitation of another access mode, then access
# is granted if either mode is allowed": Append is a limitation of Write.
_ALLOWING = {
    "read": [ACL.Read],
    "write": [ACL.Write],
    "append": [ACL.Append, ACL.Write],
    "control": [ACL.Control],
}


class Oracle:
    """What one ACL document grants on ``subject`` (``access_to``) or below it."""

    def __init__(
        self,
        turtle: str,
        *,
        acl_url: str,
        subject: str,
        access_to: bool,
        members: Mapping[str, set[str]],
    ) -> None:
        self._graph = Graph().parse(data=turtle, format="turtle", publicID=acl_url)
        about = ACL.accessTo if access_to else ACL.default
        self._authorizations = [
            each
            for each in self._graph.subjects(RDF.type, ACL.Authorization)
            if (each, about, URIRef(subject)) in self._graph
        ]
        self._members = members

    def modes(self, agents: set[str] | None, origin: str | None) -> set[str]:
        """The modes for an agent with these names, ``None`` for the public."""
        return {mode for mode in _ALLOWING if self._grants(mode, agents, origin)}

    def _grants(self, mode: str, agents: set[str] | None, origin: str | None) -> bool:
        if mode == "append" and self._grants("write", agents, origin):
            return True
        allowing = [
            each
            for each in self._authorizations
            if any((each, ACL.mode, allowed) in self._graph for allowed in _ALLOWING[mode])
        ]
        if any((each, ACL.agentClass, FOAF.Agent) in self._graph for each in allowing):
            return True  # "available to all agents": whatever the origin
        if agents is None or not any(self._is_for(each, agents) for each in allowing):
            return False
        origins = {named for each in allowing for named in self._graph.objects(each, ACL.origin)}
        return origin is None or not origins or URIRef(origin) in origins

    def _is_for(self, authorization: Node, agents: set[str]) -> bool:
        groups = {group for group, members in self._members.items() if members & agents}
        statements = [
            (ACL.agentClass, ACL.AuthenticatedAgent),
            *((ACL.agent, URIRef(agent)) for agent in agents),
            *((ACL.agentGroup, URIRef(group)) for group in groups),
        ]
        return any((authorization, *each) in self._graph for each in statements)
