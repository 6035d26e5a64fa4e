"""What does a person want to change? Read from the forms of the sharing page."""

from __future__ import annotations

from dataclasses import dataclass

from podstead.core.errors import BadRequest
from podstead.core.identifiers import ResourcePath, is_container
from podstead.resources.sharing.documents import Edit, Inheritance
from podstead.wac.modes import NO_MODES, Modes
from podstead.wac.sharing.access import Scope
from podstead.wac.sharing.editing import AccessChange
from podstead.wac.sharing.rules import ROLE_MODES, Grantee, GranteeKind, Role
from podstead.web.codes import WebCodes
from podstead.web.forms import FormSubmission


@dataclass(frozen=True, slots=True)
class WantedChange:
    """One form of the sharing page, with the grantee found.

    ``action`` is ``set``, ``remove``, ``stop`` (inheriting) or ``resume``. ``was`` is the scope of
    the entry that is changed; ``None`` for a new one. ``request`` is the notification of a request
    for access that the change answers.
    """

    action: str
    grantee: Grantee | None = None
    role: Role = Role.VIEW
    scope: Scope = Scope.BOTH
    was: Scope | None = None
    request: str = ""

    def fields(self) -> dict[str, str]:
        """The fields of a form that wants the same."""
        fields = {"change": self.action, "role": self.role.value, "scope": self.scope.value}
        if self.grantee is not None:
            fields |= {"kind": self.grantee.kind.value, "grantee": self.grantee.iri}
        if self.was is not None:
            fields["was"] = self.was.value
        if self.request:
            fields["request"] = self.request
        return fields

    def edit(self, target: ResourcePath) -> Edit:
        """The edit of the rules of a resource."""
        if self.action == "stop":
            return Edit(inheritance=Inheritance.STOP)
        if self.action == "resume":
            return Edit(inheritance=Inheritance.RESUME)
        if self.grantee is None:
            raise BadRequest(WebCodes.GRANTEE_MISSING)
        scope = self.scope if is_container(target) else Scope.THIS
        was = self.was if is_container(target) else None
        modes = NO_MODES if self.action == "remove" else ROLE_MODES[self.role]
        if self.action == "remove":
            scope = was or scope
        here = _modes(modes, now=scope.includes_this, before=bool(was and was.includes_this))
        inside = _modes(modes, now=scope.includes_inside, before=bool(was and was.includes_inside))
        return Edit((AccessChange(self.grantee, here=here, inside=inside),))


def read_change(sent: FormSubmission, grantee: Grantee | None) -> WantedChange:
    """The change that a form asks for. Raises BadRequest."""
    action = sent.text("change")
    if action not in ("set", "remove", "stop", "resume"):
        raise BadRequest(WebCodes.CHANGE_MISSING)
    try:
        role = Role(sent.text("role") or Role.VIEW.value)
        scope = Scope(sent.text("scope") or Scope.BOTH.value)
        was = Scope(sent.text("was")) if sent.text("was") else None
    except ValueError as error:
        raise BadRequest(WebCodes.NO_SUCH_ROLE) from error
    if role not in ROLE_MODES:
        raise BadRequest(WebCodes.NO_SUCH_ROLE)
    return WantedChange(action, grantee, role, scope, was, sent.text("request"))


def read_kind(sent: FormSubmission) -> GranteeKind:
    """Whom the form is about. Raises BadRequest."""
    try:
        return GranteeKind(sent.text("kind") or GranteeKind.AGENT.value)
    except ValueError as error:
        raise BadRequest(WebCodes.NO_SUCH_PEOPLE) from error


def _modes(modes: Modes, *, now: bool, before: bool) -> Modes | None:
    """The modes for one part: the new ones where the entry applies now, none where it no longer
    does, and ``None`` where it never did."""
    if now:
        return modes
    return NO_MODES if before else None
