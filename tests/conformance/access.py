"""The set-ups of the access matrices: who may do what with a container and its members.

An access is written as in the matrices, modes of the container before the slash and modes of the
resource after it, in their first letters: ``no/R`` is Read by the resource's own ACL and nothing on
the container, ``WA/inherited`` is Write and Append by the container's ACL, which is for itself and
for all within.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.conformance.agents import AUTHENTICATED, EVERYONE, N3_PATCH, Agent, Response, Rule
from tests.conformance.patches import n3
from tests.support.rdf import TURTLE

KINDS = {"plain": "plain.txt", "rdf": "rdf.ttl", "container": "inner/", "fictive": "fictive"}
"""The targets' names in the container; nothing is at the last one."""

_CONTENTS = {"plain": ("Hello", "text/plain"), "rdf": ("<> <#p> 1.", TURTLE)}
_MODES = {"R": "Read", "W": "Write", "A": "Append", "C": "Control"}

_SENT = {
    "turtle": (TURTLE, "<> <#sent> 2."),
    "text": ("text/plain", "Sent"),
    "n3": (N3_PATCH, n3(inserts="<> ex:sent 2 .")),
}
_NO_CONTENT = {"GET", "HEAD", "DELETE"}


def subject(feature: str, bob: Agent) -> str:
    """Whom a feature gives access to, as the subject of a rule."""
    return {"agent": AUTHENTICATED, "bob": bob.named, "public": EVERYONE}[feature]


@dataclass(frozen=True, slots=True)
class Arranged:
    """One target with an access to it."""

    alice: Agent
    target: str
    before: tuple[int, bytes]

    def is_unchanged(self) -> bool:
        return _state(self.alice, self.target) == self.before


def arrange(alice: Agent, container: str, kind: str, access: str, who: str) -> Arranged:
    """Make the target of a kind in a container and give an access to it."""
    held, _, own = access.partition("/")
    target = container + KINDS[kind]
    if kind != "fictive":
        alice.create(target, *_CONTENTS.get(kind, ("",)))
    if own == "inherited":
        alice.grant(container, Rule(who, spelled(held), default=True))
    else:
        assert (held, kind != "fictive") == ("no", True)
        alice.grant(container)
        alice.grant(target, Rule(who, spelled(own)))
    return Arranged(alice, target, _state(alice, target))


def spelled(letters: str) -> str:
    """Modes by their names."""
    return " ".join(_MODES[letter] for letter in letters)


def send(agent: Agent, request: str, target: str) -> Response:
    """Send a request written as a method and what is sent: ``PUT turtle``, ``GET``."""
    method, _, sent = request.partition(" ")
    if method in _NO_CONTENT:
        return agent.request(method, target)
    content_type, body = _SENT[sent]
    return agent.request(method, target, body, {"Content-Type": content_type})


def _state(alice: Agent, target: str) -> tuple[int, bytes]:
    response = alice.get(target)
    return response.status, response.body
