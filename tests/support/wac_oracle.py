"""An independent model of WAC: SPARQL over the ACL's text, written from the specification.

Slow and plain on purpose, and made with another RDF library. It answers for one required mode at a
time, as the specification's "Authorization Evaluation" does, and takes the choice W-17 for origins.
"""

from __future__ import annotations

from collections.abc import Mapping

from rdflib import Graph as RdflibGraph
from rdflib import URIRef

ACL = "http://www.w3.org/ns/auth/acl#"

_PROLOGUE = """
PREFIX acl: <http://www.w3.org/ns/auth/acl#>
PREFIX foaf: <http://xmlns.com/foaf/0.1/>
"""

# "When a request requires an access mode which is a limitation of another access mode, then access
# is granted if either mode is allowed": Append is a limitation of Write.
_ALLOWING = {
    "read": "acl:Read",
    "write": "acl:Write",
    "append": "acl:Append, acl:Write",
    "control": "acl:Control",
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
        self._graph = RdflibGraph().parse(data=turtle, format="turtle", publicID=acl_url)
        self._object = "acl:accessTo" if access_to else "acl:default"
        self._subject = subject
        self._members = members

    def modes(self, agents: set[str] | None, origin: str | None) -> set[str]:
        """The modes for an agent with these names, ``None`` for the public."""
        return {mode for mode in _ALLOWING if self._grants(mode, agents, origin)}

    def _grants(self, mode: str, agents: set[str] | None, origin: str | None) -> bool:
        if mode == "append" and self._grants("write", agents, origin):
            return True
        if self._matches(mode, "?rule acl:agentClass foaf:Agent"):
            return True  # "available to all agents": whatever the origin
        if agents is None or not self._agent_matches(mode, agents):
            return False
        if origin is None or not self._matches(mode, "?rule acl:origin ?any"):
            return True
        return self._matches(mode, f"?rule acl:origin <{origin}>")

    def _agent_matches(self, mode: str, agents: set[str]) -> bool:
        if self._matches(mode, "?rule acl:agentClass acl:AuthenticatedAgent"):
            return True
        if any(self._matches(mode, f"?rule acl:agent <{agent}>") for agent in agents):
            return True
        groups = {group for group, members in self._members.items() if members & agents}
        return any(self._matches(mode, f"?rule acl:agentGroup <{group}>") for group in groups)

    def _matches(self, mode: str, subject_pattern: str) -> bool:
        answer = self._graph.query(
            f"""{_PROLOGUE}
            ASK {{
                ?rule a acl:Authorization ; {self._object} ?object ; acl:mode ?mode .
                FILTER(?mode IN ({_ALLOWING[mode]}))
                {subject_pattern} .
            }}""",
            initBindings={"object": URIRef(self._subject)},
        )
        return bool(answer.askAnswer)
