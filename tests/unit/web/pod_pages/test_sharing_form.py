"""What the forms of the sharing page mean, and that everything has words."""

from __future__ import annotations

import pytest

from podstead.core.errors import BadRequest
from podstead.core.identifiers import ResourcePath
from podstead.resources.sharing.documents import Inheritance
from podstead.wac.modes import NO_MODES, Modes
from podstead.wac.sharing.access import AccessEntry, Scope
from podstead.wac.sharing.rules import ROLE_MODES, Grantee, GranteeKind, Role, agent
from podstead.web.forms import FormSubmission
from podstead.web.pod_pages.sharing.sentences import Names
from podstead.web.pod_pages.sharing.sharing_form import WantedChange, read_change

BASE = "https://pods.example"
FOLDER, DOCUMENT = ResourcePath("/alice/c/"), ResourcePath("/alice/doc")
BOB = agent("https://bob.example/#me")
EDIT = ROLE_MODES[Role.EDIT]


@pytest.mark.parametrize(
    ("was", "scope", "here", "inside"),
    [
        (None, Scope.BOTH, EDIT, EDIT),
        (None, Scope.THIS, EDIT, None),
        (None, Scope.INSIDE, None, EDIT),
        (Scope.BOTH, Scope.THIS, EDIT, NO_MODES),
        (Scope.BOTH, Scope.INSIDE, NO_MODES, EDIT),
        (Scope.THIS, Scope.INSIDE, NO_MODES, EDIT),
        (Scope.INSIDE, Scope.BOTH, EDIT, EDIT),
    ],
)
def test_a_role_moves_to_where_the_form_says(
    was: Scope | None, scope: Scope, here: Modes | None, inside: Modes | None
) -> None:
    wanted = WantedChange("set", BOB, Role.EDIT, scope, was)
    (change,) = wanted.edit(FOLDER).changes
    assert (change.here, change.inside) == (here, inside)


@pytest.mark.parametrize(
    ("was", "here", "inside"),
    [
        (Scope.BOTH, NO_MODES, NO_MODES),
        (Scope.THIS, NO_MODES, None),
        (Scope.INSIDE, None, NO_MODES),
    ],
)
def test_an_entry_is_removed_where_it_is(
    was: Scope, here: Modes | None, inside: Modes | None
) -> None:
    """Whatever choice the form has for the place."""
    for scope in Scope:
        (change,) = WantedChange("remove", BOB, Role.EDIT, scope, was).edit(FOLDER).changes
        assert (change.here, change.inside) == (here, inside)


def test_a_document_has_nothing_inside() -> None:
    for action, modes in (("set", EDIT), ("remove", NO_MODES)):
        wanted = WantedChange(action, BOB, Role.EDIT, Scope.BOTH, Scope.BOTH)
        (change,) = wanted.edit(DOCUMENT).changes
        assert (change.here, change.inside) == (modes, None)


def test_inheritance_is_changed_alone() -> None:
    assert WantedChange("stop").edit(FOLDER).inheritance is Inheritance.STOP
    assert WantedChange("resume").edit(FOLDER).inheritance is Inheritance.RESUME


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"change": "destroy"},
        {"change": "set", "role": "owner"},
        {"change": "set", "role": "other"},
        {"change": "set", "scope": "everywhere"},
        {"change": "set", "was": "x"},
    ],
)
def test_other_forms_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(BadRequest):
        read_change(FormSubmission(fields), BOB)


def test_a_change_survives_its_form() -> None:
    """The form of the preview saves what was previewed."""
    wanted = WantedChange("set", BOB, Role.ADD, Scope.INSIDE, Scope.THIS, "/alice/inbox/1")
    sent: dict[str, object] = dict(wanted.fields())
    assert read_change(FormSubmission(sent), BOB) == wanted


def test_there_are_words_for_every_entry() -> None:
    names = Names(BASE)
    shown = set()
    for kind in GranteeKind:
        iri = "" if kind in (GranteeKind.EVERYONE, GranteeKind.AUTHENTICATED) else BOB.iri
        for modes in (*ROLE_MODES.values(), frozenset({*NO_MODES, *list(EDIT)[:1]})):
            for folder in (None, FOLDER):
                entry = AccessEntry(Grantee(kind, iri), modes, Scope.BOTH, folder)
                shown.add(names.sentence(entry))
    assert "%" not in "".join(shown)
    assert len(shown) >= 4 * len(ROLE_MODES) * 2


@pytest.mark.parametrize(
    ("iri", "name"),
    [
        (f"{BASE}/alice/#me", "alice"),
        (f"{BASE}/al%20ice/#me", "al ice"),
        (f"{BASE}/bob/alice/#me", f"{BASE}/bob/alice/#me"),
        (f"{BASE}/alice/#you", f"{BASE}/alice/#you"),
        (f"{BASE}/alice#me", f"{BASE}/alice#me"),
        ("https://other.example/alice/#me", "https://other.example/alice/#me"),
        ("did:nostr:ab", "did:nostr:ab"),
    ],
)
def test_only_owners_of_pods_here_are_called_by_a_name(iri: str, name: str) -> None:
    """Nobody can be called like somebody else."""
    assert Names(BASE).iri(iri) == name
