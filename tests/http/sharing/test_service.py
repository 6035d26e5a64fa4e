"""Seeing, previewing and editing who has access; what an edit does is checked over HTTP."""

from __future__ import annotations

from collections import Counter

import pytest

from podstead.app.services import Services
from podstead.core.errors import AccessDenied, BadRequest, NotAuthenticated, NotFound
from podstead.core.identifiers import ResourcePath, acl_of
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.resources.sharing.documents import Edit, Inheritance, RulesChanged, RulesOutOfReach
from podstead.resources.sharing.service import (
    Consequence,
    Difference,
    NeedsConfirmation,
    NoParentContainer,
    OwnerLockedOut,
    Preview,
    SharingService,
    SnapshotSource,
)
from podstead.wac.acl import ALWAYS, PeriodCondition
from podstead.wac.effective import EffectiveAcls, paths_to_read
from podstead.wac.modes import NO_MODES, Mode, Modes
from podstead.wac.sharing.access import Cause, Scope
from podstead.wac.sharing.editing import AccessChange
from podstead.wac.sharing.rules import (
    AUTHENTICATED,
    EVERYONE,
    ROLE_MODES,
    Grantee,
    Role,
    agent,
    group,
)
from tests.support.application import BASE, Server, acl_turtle
from tests.support.rdf import JSON_LD, TURTLE

FOLDER = ResourcePath("/alice/photos/")
PHOTO = ResourcePath("/alice/photos/sea.txt")
CAROL = "https://carol.example/#me"
VIEW, EDIT, MANAGE = (ROLE_MODES[role] for role in (Role.VIEW, Role.EDIT, Role.MANAGE))


def owner(server: Server) -> Identity:
    return Identity(server.alice_web_id, AuthenticationMethod.SESSION)


def other(server: Server) -> Identity:
    return Identity(server.bob_web_id, AuthenticationMethod.SESSION)


def both(grantee: Grantee, modes: Modes) -> Edit:
    return Edit((AccessChange(grantee, here=modes, inside=modes),))


@pytest.fixture
async def photos(server: Server) -> Server:
    """A folder with a photo, a folder in it, and one member with rules of its own."""
    for path in (PHOTO, f"{FOLDER}more/sky.txt", f"{FOLDER}private.txt"):
        assert (await server.alice.put(path, "content", "text/plain")).status == 201
    assert (await server.put_acl(f"{FOLDER}private.txt")).status == 201
    return server


async def save(
    sharing: SharingService,
    server: Server,
    edit: Edit,
    path: ResourcePath = FOLDER,
    *,
    who: Identity | None = None,
    confirmed: bool = False,
) -> Preview:
    who = who or owner(server)
    token = (await sharing.view(who, path)).token
    return await sharing.save(who, path, edit, token, confirmed=confirmed)


def difference(differences: tuple[Difference, ...], grantee: Grantee) -> tuple[Modes, Modes]:
    return next((each.before, each.after) for each in differences if each.grantee == grantee)


# --- seeing ------------------------------------------------------------------------------------


async def test_what_is_inherited_is_listed_with_the_folder_that_says_so(
    photos: Server, sharing: SharingService
) -> None:
    await save(sharing, photos, both(EVERYONE, VIEW))
    access = (await sharing.view(owner(photos), PHOTO)).access
    assert (access.owner, access.inherited_from) == (photos.alice_web_id, FOLDER)
    entry = access.entries[0]
    assert (entry.grantee, entry.role) == (EVERYONE, Role.VIEW)
    assert entry.sentence.id == "everyone-view"
    assert (entry.reason.id, entry.reason.parameters) == ("rules-of-folder", (("folder", FOLDER),))


async def test_own_rules_say_whether_they_are_about_the_folder_or_what_is_inside(
    photos: Server, sharing: SharingService
) -> None:
    bob = agent(photos.bob_web_id)
    await save(sharing, photos, Edit((AccessChange(bob, here=VIEW, inside=EDIT),)))
    access = (await sharing.view(owner(photos), FOLDER)).access
    assert access.inherited_from is None
    found = [(entry.role, entry.scope) for entry in access.entries if entry.grantee == bob]
    assert found == [(Role.VIEW, Scope.THIS), (Role.EDIT, Scope.INSIDE)]


async def test_rules_are_seen_with_control_only(photos: Server, sharing: SharingService) -> None:
    with pytest.raises(AccessDenied):
        await sharing.view(other(photos), FOLDER)
    with pytest.raises(NotAuthenticated):
        await sharing.view(None, FOLDER)
    with pytest.raises(AccessDenied):
        await sharing.view(other(photos), ResourcePath("/alice/nothing"))


@pytest.mark.parametrize("path", ["/alice/nothing", "/alice/photos/.acl", "/", "/alice/.meta"])
async def test_there_is_nothing_to_share_where_nothing_can_have_rules(
    path: str, photos: Server, sharing: SharingService
) -> None:
    with pytest.raises((NotFound, AccessDenied)):
        await sharing.view(owner(photos), ResourcePath(path))


async def test_who_manages_only_the_contents_does_not_see_the_rules_of_the_folder(
    photos: Server, sharing: SharingService
) -> None:
    bob = agent(photos.bob_web_id)
    await save(sharing, photos, Edit((AccessChange(bob, inside=MANAGE),)))
    with pytest.raises(RulesOutOfReach) as caught:
        await sharing.view(other(photos), PHOTO)
    assert caught.value.folder == FOLDER


# --- editing -----------------------------------------------------------------------------------


async def test_an_edit_grants_exactly_what_it_says(photos: Server, sharing: SharingService) -> None:
    assert (await photos.bob.get(PHOTO)).status == 403
    await save(sharing, photos, both(agent(photos.bob_web_id), EDIT))
    assert (await photos.bob.get(PHOTO)).header("wac-allow") == (
        'user="read write append",public=""'
    )
    assert (await photos.bob.put(PHOTO, "changed", "text/plain")).status == 204
    assert (await photos.bob.get(f"{FOLDER}.acl")).status == 403
    assert (await photos.public.get(PHOTO)).status == 401
    assert (await photos.alice.get(f"{FOLDER}.acl")).status == 200
    await save(sharing, photos, both(agent(photos.bob_web_id), NO_MODES))
    assert (await photos.bob.get(PHOTO)).status == 403
    assert (await photos.alice.get(PHOTO)).status == 200


async def test_a_resource_that_gets_own_rules_keeps_what_it_inherited(
    photos: Server, sharing: SharingService
) -> None:
    await save(sharing, photos, both(agent(photos.bob_web_id), VIEW))
    preview = await save(sharing, photos, both(EVERYONE, VIEW), PHOTO)
    assert Consequence.GETS_OWN_RULES in preview.consequences
    assert (await photos.public.get(PHOTO)).status == 200
    assert (await photos.bob.get(PHOTO)).status == 200
    # What changes above no longer reaches it.
    await save(sharing, photos, both(agent(photos.bob_web_id), NO_MODES))
    assert (await photos.bob.get(f"{FOLDER}more/sky.txt")).status == 403
    assert (await photos.bob.get(PHOTO)).status == 200


async def test_own_rules_can_be_given_up_again(photos: Server, sharing: SharingService) -> None:
    await save(sharing, photos, both(EVERYONE, VIEW), PHOTO)
    preview = await save(sharing, photos, Edit(inheritance=Inheritance.RESUME), PHOTO)
    assert Consequence.LOSES_OWN_RULES in preview.consequences
    assert difference(preview.here, EVERYONE) == (VIEW, NO_MODES)
    assert (await photos.alice.get(f"{PHOTO}.acl")).status == 404
    assert (await photos.public.get(PHOTO)).status == 401


async def test_inheritance_can_be_stopped_without_changing_anything_else(
    photos: Server, sharing: SharingService
) -> None:
    preview = await save(sharing, photos, Edit(inheritance=Inheritance.STOP), PHOTO)
    assert preview.consequences == {Consequence.GETS_OWN_RULES}
    assert not any(each.is_change for each in preview.here)
    assert (await photos.alice.get(f"{PHOTO}.acl")).status == 200


async def test_an_edit_that_changes_nothing_writes_nothing(
    photos: Server, sharing: SharingService
) -> None:
    preview = await save(sharing, photos, both(agent(photos.bob_web_id), NO_MODES))
    assert not preview.changes_anything
    assert (await photos.alice.get(f"{FOLDER}.acl")).status == 404


@pytest.mark.parametrize("content_type", [TURTLE, JSON_LD])
async def test_rules_that_cannot_be_edited_are_listed_and_kept(
    content_type: str, photos: Server, sharing: SharingService
) -> None:
    special = (
        "<#app> a acl:Authorization; acl:agentClass acl:AuthenticatedAgent; "
        "acl:origin <https://app.example>; acl:accessTo <./>; acl:mode acl:Read.\n"
        "<#later> a acl:Authorization; acl:agentClass <https://example.org/Friends>; "
        "acl:accessTo <./>; acl:mode acl:Write, <https://example.org/Fly>."
    )
    acl = f"{FOLDER}.acl"
    await photos.alice.put(acl, f"{acl_turtle(FOLDER)}\n{special}", TURTLE)
    if content_type == JSON_LD:
        as_json = await photos.alice.get(acl, accept=JSON_LD)
        assert (await photos.alice.put(acl, as_json.text, JSON_LD)).status == 204
    access = (await sharing.view(owner(photos), FOLDER)).access
    assert {str(rule.name).partition("#")[2] for rule in access.special} == {"app", "later"}
    await save(sharing, photos, both(agent(photos.bob_web_id), VIEW))
    stored = await photos.alice.get(acl)
    assert (stored.header("content-type") or "").startswith(content_type)
    for kept in ("https://app.example", "https://example.org/Friends", "https://example.org/Fly"):
        assert kept in stored.text


# --- what must not happen ----------------------------------------------------------------------


@pytest.mark.parametrize("left", [NO_MODES, VIEW])
async def test_no_edit_takes_anything_from_the_owner(
    left: Modes, photos: Server, sharing: SharingService
) -> None:
    with pytest.raises(OwnerLockedOut):
        await save(sharing, photos, both(agent(photos.alice_web_id), left), FOLDER, confirmed=True)
    assert (await photos.alice.get(f"{FOLDER}.acl")).status == 404
    assert (await photos.alice.put(PHOTO, "still mine", "text/plain")).status == 204


async def test_not_even_giving_up_own_rules_does(photos: Server, sharing: SharingService) -> None:
    """The rules above may not name the owner."""
    await save(sharing, photos, both(EVERYONE, VIEW), PHOTO)
    bob = (f"acl:agent <{photos.bob_web_id}>", "+Read +Write +Control")
    assert (await photos.put_acl(FOLDER, bob, owner=False)).status == 201
    with pytest.raises(OwnerLockedOut):
        await save(sharing, photos, Edit(inheritance=Inheritance.RESUME), PHOTO)


async def test_who_manages_is_asked_before_giving_up_control(
    photos: Server, sharing: SharingService
) -> None:
    bob = agent(photos.bob_web_id)
    await save(sharing, photos, both(bob, MANAGE))
    leave = both(bob, VIEW)
    with pytest.raises(NeedsConfirmation):
        await save(sharing, photos, leave, who=other(photos))
    assert (await photos.bob.get(f"{FOLDER}.acl")).status == 200
    await save(sharing, photos, leave, who=other(photos), confirmed=True)
    assert (await photos.bob.get(f"{FOLDER}.acl")).status == 403


async def test_the_root_of_a_pod_inherits_from_nothing(
    photos: Server, sharing: SharingService
) -> None:
    root = ResourcePath("/alice/")
    assert not (await sharing.view(owner(photos), root)).can_inherit
    with pytest.raises(NoParentContainer):
        await save(sharing, photos, Edit(inheritance=Inheritance.RESUME), root)


@pytest.mark.parametrize("own", [True, False])
async def test_an_edit_of_rules_that_somebody_changed_meanwhile_is_refused(
    own: bool, photos: Server, sharing: SharingService
) -> None:
    if own:
        await save(sharing, photos, both(EVERYONE, VIEW))
    who = owner(photos)
    token = (await sharing.view(who, FOLDER)).token
    changed = FOLDER if own else "/alice/"
    carol = ("acl:agent <https://carol.example/#me>", "+Read")
    assert (await photos.put_acl(changed, carol)).status == 204
    edit = both(agent(photos.bob_web_id), VIEW)
    with pytest.raises(RulesChanged):
        await sharing.preview(who, FOLDER, edit, token)
    with pytest.raises(RulesChanged):
        await sharing.save(who, FOLDER, edit, token)
    assert (await photos.bob.get(PHOTO)).status == 403


# --- what an edit changes, before it is saved --------------------------------------------------


async def test_a_preview_says_what_changes_for_whom_and_changes_nothing(
    photos: Server, sharing: SharingService
) -> None:
    who, bob = owner(photos), agent(photos.bob_web_id)
    await save(sharing, photos, both(bob, EDIT))
    token = (await sharing.view(who, FOLDER)).token
    edit = Edit(
        (
            AccessChange(bob, here=VIEW, inside=VIEW),
            AccessChange(AUTHENTICATED, inside=VIEW),
        )
    )
    preview = await sharing.preview(who, FOLDER, edit, token)
    assert difference(preview.here, bob) == (EDIT, VIEW)
    assert difference(preview.inside, bob) == (EDIT, VIEW)
    assert difference(preview.here, AUTHENTICATED) == (NO_MODES, NO_MODES)
    assert difference(preview.inside, AUTHENTICATED) == (NO_MODES, VIEW)
    assert difference(preview.inside, EVERYONE) == (NO_MODES, NO_MODES)
    assert difference(preview.here, agent(photos.alice_web_id)) == (MANAGE, MANAGE)
    assert (preview.members.with_own_rules, preview.members.is_complete) == (1, True)
    assert set(preview.members.inheriting) == {
        PHOTO,
        f"{FOLDER}more/",
        f"{FOLDER}more/sky.txt",
    }
    assert (await photos.bob.put(PHOTO, "still", "text/plain")).status == 204


async def test_a_preview_knows_what_members_of_a_group_get(
    photos: Server, sharing: SharingService
) -> None:
    friends = group(f"{photos.alice_web_id.partition('#')[0]}friends.ttl#us")
    turtle = (
        "@prefix vcard: <http://www.w3.org/2006/vcard/ns#>. "
        f"<#us> a vcard:Group; vcard:hasMember <{photos.bob_web_id}>."
    )
    await photos.alice.put("/alice/friends.ttl", turtle, TURTLE)
    who, bob = owner(photos), agent(photos.bob_web_id)
    token = (await sharing.view(who, FOLDER)).token
    edit = Edit((AccessChange(friends, here=VIEW, inside=VIEW), AccessChange(bob, here=NO_MODES)))
    preview = await sharing.preview(who, FOLDER, edit, token)
    assert difference(preview.here, friends) == (NO_MODES, VIEW)
    assert difference(preview.here, bob) == (NO_MODES, VIEW)


async def test_a_preview_warns_of_rules_by_which_everybody_can_change_something(
    photos: Server, sharing: SharingService
) -> None:
    preview = await save(sharing, photos, both(EVERYONE, EDIT))
    assert Consequence.EVERYONE_CAN_CHANGE in preview.consequences
    assert (
        Consequence.EVERYONE_CAN_CHANGE
        not in (await save(sharing, photos, both(EVERYONE, VIEW))).consequences
    )


async def test_a_preview_warns_of_hiding_the_profile(
    photos: Server, sharing: SharingService
) -> None:
    """Others verify the owner's tokens by it."""
    who, root = owner(photos), ResourcePath("/alice/")
    profile = "[] a acl:Authorization; acl:agentClass foaf:Agent; acl:mode acl:Read; acl:accessTo "
    rules = acl_turtle("/alice/", ("acl:agentClass foaf:Agent", "Read"))
    for extra, when_hidden in (
        ("", True),
        (f"{profile} <{BASE}/alice/#me>.", False),  # it stays readable without the members
    ):
        put = await photos.alice.put("/alice/.acl", rules + extra, "text/turtle")
        assert put.status == 204
        await assert_warned(sharing, who, root, when_hidden=when_hidden)


async def assert_warned(
    sharing: SharingService, who: Identity, root: ResourcePath, *, when_hidden: bool
) -> None:
    token = (await sharing.view(who, root)).token
    for modes, warned in ((NO_MODES, when_hidden), (EDIT, False)):
        edit = Edit((AccessChange(EVERYONE, here=modes),))
        preview = await sharing.preview(who, root, edit, token)
        assert (Consequence.PROFILE_HIDDEN in preview.consequences) is warned


# --- why ---------------------------------------------------------------------------------------


async def test_an_answer_names_the_rule_that_grants_and_the_folder_that_has_it(
    photos: Server, sharing: SharingService
) -> None:
    await save(sharing, photos, both(AUTHENTICATED, VIEW))
    answer = await sharing.explain(owner(photos), PHOTO, person=photos.bob_web_id)
    assert (answer.explanation.modes, answer.decided_by) == (VIEW, FOLDER)
    (reason,) = answer.explanation.about(Mode.READ)
    assert (reason.cause, reason.grantee) == (Cause.RULE, AUTHENTICATED)
    assert reason.rule is not None
    assert str(reason.rule.name).startswith(f"http://localhost:3000{FOLDER}.acl#")
    (missing,) = answer.explanation.about(Mode.WRITE)
    assert missing.cause is Cause.NO_RULE


async def test_an_answer_says_that_owners_always_have_control(
    photos: Server, sharing: SharingService
) -> None:
    bob = (f"acl:agent <{photos.bob_web_id}>", "+Read +Write +Control")
    await photos.put_acl(FOLDER, bob, owner=False)
    answer = await sharing.explain(owner(photos), FOLDER, person=photos.alice_web_id)
    assert answer.explanation.modes == {Mode.CONTROL}
    assert [each.cause for each in answer.explanation.about(Mode.CONTROL)] == [Cause.OWNER]


async def test_an_answer_about_an_application_names_the_rules_that_name_others(
    photos: Server, sharing: SharingService
) -> None:
    acl = (
        f"{acl_turtle(FOLDER)}\n<#app> a acl:Authorization; acl:agent <{photos.bob_web_id}>; "
        "acl:origin <https://app.example>; acl:accessTo <./>; acl:mode acl:Read."
    )
    await photos.alice.put(f"{FOLDER}.acl", acl, TURTLE)
    for origin, modes, cause in (
        ("https://app.example", VIEW, Cause.RULE),
        ("https://other.example", NO_MODES, Cause.ORIGIN),
    ):
        answer = await sharing.explain(
            owner(photos), FOLDER, person=photos.bob_web_id, origin=origin
        )
        assert answer.explanation.modes == modes
        assert answer.explanation.about(Mode.READ)[0].cause is cause
        seen = await photos.bob.get(FOLDER, origin=origin)
        assert seen.status == (200 if modes else 403)


async def test_an_answer_about_the_public_is_what_the_public_gets(
    photos: Server, sharing: SharingService
) -> None:
    answer = await sharing.explain(owner(photos), PHOTO, person=None)
    assert answer.explanation.modes == NO_MODES
    with pytest.raises(AccessDenied):
        await sharing.explain(other(photos), PHOTO, person=None)


# --- what must not be learned from the answers -------------------------------------------------


@pytest.fixture
async def friends(photos: Server, sharing: SharingService) -> Grantee:
    """A group of Alice's that nobody else may read, with Carol in it; Bob manages the photos."""
    turtle = (
        "@prefix vcard: <http://www.w3.org/2006/vcard/ns#>. "
        f"<#us> a vcard:Group; vcard:hasMember <{CAROL}>."
    )
    await photos.alice.put("/alice/private/friends.ttl", turtle, TURTLE)
    await save(sharing, photos, both(agent(photos.bob_web_id), MANAGE))
    return group("http://localhost:3000/alice/private/friends.ttl#us")


async def test_who_manages_does_not_learn_who_is_in_a_private_group(
    photos: Server, sharing: SharingService, friends: Grantee
) -> None:
    bob = other(photos)
    await save(sharing, photos, both(friends, VIEW), who=bob)
    answer = await sharing.explain(bob, PHOTO, person=CAROL)
    assert (answer.explanation.modes, answer.hidden_groups) == (NO_MODES, (friends.iri,))
    answer = await sharing.explain(owner(photos), PHOTO, person=CAROL)
    assert (answer.explanation.modes, answer.hidden_groups) == (VIEW, ())


async def test_nor_by_a_preview(photos: Server, sharing: SharingService, friends: Grantee) -> None:
    carol = agent(CAROL)
    edit = Edit(
        (
            AccessChange(friends, here=EDIT, inside=EDIT),
            AccessChange(carol, here=VIEW, inside=VIEW),
        )
    )
    for who, modes in ((other(photos), VIEW), (owner(photos), EDIT)):
        token = (await sharing.view(who, FOLDER)).token
        preview = await sharing.preview(who, FOLDER, edit, token)
        assert difference(preview.here, carol) == (NO_MODES, modes)
        assert difference(preview.here, friends) == (NO_MODES, EDIT)


async def test_who_manages_a_file_does_not_learn_what_the_folder_grants_to_others(
    photos: Server, sharing: SharingService
) -> None:
    """By naming people in the file's own rules and asking what they would have without them."""
    carol, bob = agent(CAROL), agent(photos.bob_web_id)
    await save(sharing, photos, both(carol, EDIT))
    edit = Edit((AccessChange(bob, here=MANAGE), AccessChange(carol, here=NO_MODES)))
    await save(sharing, photos, edit, PHOTO)
    who = other(photos)
    token = (await sharing.view(who, PHOTO)).token
    preview = await sharing.preview(who, PHOTO, Edit(inheritance=Inheritance.RESUME), token)
    assert carol not in {each.grantee for each in preview.here}
    assert difference(preview.here, bob) == (MANAGE, NO_MODES)
    assert Consequence.LOSES_CONTROL in preview.consequences


# --- what it costs -----------------------------------------------------------------------------


async def test_a_preview_reads_everything_once(
    photos: Server,
    sharing: SharingService,
    parts: Services,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However many decisions it takes: without that, these were 25 reads of metadata, 22 of the
    pod, and 36 searches for rules."""
    counts: Counter[str] = Counter()

    def count(owner: object, name: str) -> None:
        function = getattr(owner, name)

        async def counted(*arguments: object, **named: object) -> object:
            counts[name] += 1
            return await function(*arguments, **named)

        monkeypatch.setattr(owner, name, counted)

    who, edit = owner(photos), both(agent(CAROL), VIEW)
    token = (await sharing.view(who, FOLDER)).token
    count(parts.store, "read_metadata")
    count(parts.store, "read_pod")
    count(EffectiveAcls, "find")
    preview = await sharing.preview(who, FOLDER, edit, token)
    assert difference(preview.here, agent(CAROL)) == (NO_MODES, VIEW)
    assert difference(preview.inside, agent(CAROL)) == (NO_MODES, VIEW)
    assert counts["read_metadata"] <= 25 // 5, counts
    assert counts["read_pod"] <= 22 // 5, counts
    assert counts["find"] <= 36 // 5, counts


async def test_a_moment_ends_when_a_body_that_is_wanted_has_been_replaced(
    photos: Server, parts: Services
) -> None:
    assert (await photos.put_acl(PHOTO)).status == 201
    paths = paths_to_read(PHOTO)
    now = SnapshotSource(parts.store, paths)
    before = (await now.read_metadata(paths))[acl_of(PHOTO)]
    assert before is not None
    assert (await photos.put_acl(PHOTO, ("acl:agentClass foaf:Agent", "Read"))).status == 204
    assert (await now.read_metadata(paths))[acl_of(PHOTO)] == before
    assert await now.open_body(before) is None
    after = (await now.read_metadata(paths))[acl_of(PHOTO)]
    assert after is not None
    assert after.version != before.version
    assert await now.open_body(after) is not None


# --- ends ----------------------------------------------------------------------------------------

DAY_MS = 86_400_000


def until(ends_ms: int) -> PeriodCondition:
    return PeriodCondition(ends_ms=ends_ms)


async def test_access_with_an_end_is_previewed_with_it(
    photos: Server, sharing: SharingService, parts: Services
) -> None:
    bob = agent(photos.bob_web_id)
    ends_ms = parts.clock.now_ms() + DAY_MS
    edit = Edit((AccessChange(bob, VIEW, VIEW, until(ends_ms)),))
    preview = await save(sharing, photos, edit)
    (found,) = (each for each in preview.here if each.grantee == bob)
    assert (found.before, found.after, found.after_period) == (NO_MODES, VIEW, until(ends_ms))
    assert [each for each in preview.inside if each.grantee == bob] == [found]
    entry = next(
        each for each in (await sharing.view(owner(photos), FOLDER)).access.entries
        if each.grantee == bob
    )  # fmt: skip
    assert (entry.modes, entry.period) == (VIEW, until(ends_ms))
    assert (await photos.bob.get(PHOTO)).status == 200
    lasting = await save(sharing, photos, both(bob, VIEW))
    (found,) = (each for each in lasting.here if each.grantee == bob)
    assert found.is_change
    assert (found.before_period, found.after_period) == (until(ends_ms), ALWAYS)


async def test_access_that_begins_later_is_previewed_as_it_will_be(
    photos: Server, sharing: SharingService, parts: Services
) -> None:
    """And what is taken away until then counts as lost."""
    bob, begins_ms = agent(photos.bob_web_id), parts.clock.now_ms() + DAY_MS
    later = PeriodCondition(begins_ms, begins_ms + DAY_MS)
    preview = await save(sharing, photos, Edit((AccessChange(bob, VIEW, VIEW, later),)))
    (found,) = (each for each in preview.here if each.grantee == bob)
    assert (found.before, found.after, found.after_period) == (NO_MODES, VIEW, later)
    assert (await photos.bob.get(PHOTO)).status == 403
    alice, always = agent(photos.alice_web_id), PeriodCondition(parts.clock.now_ms() + DAY_MS)
    with pytest.raises(OwnerLockedOut):
        await save(sharing, photos, Edit((AccessChange(alice, MANAGE, MANAGE, always),)))


async def test_an_end_that_has_passed_is_refused(
    photos: Server, sharing: SharingService, parts: Services
) -> None:
    bob, now_ms = agent(photos.bob_web_id), parts.clock.now_ms()
    for period in (until(now_ms), PeriodCondition(now_ms + 5, now_ms + 5)):
        with pytest.raises(BadRequest):
            await save(sharing, photos, Edit((AccessChange(bob, VIEW, VIEW, period),)))


async def test_what_would_be_lost_at_the_end_counts_as_lost(
    photos: Server, sharing: SharingService, parts: Services
) -> None:
    """The owner's access, one's own Control, and the public profile."""
    ends_ms = parts.clock.now_ms() + DAY_MS
    edit = Edit((AccessChange(agent(photos.alice_web_id), MANAGE, MANAGE, until(ends_ms)),))
    with pytest.raises(OwnerLockedOut):
        await save(sharing, photos, edit)
    bob = agent(photos.bob_web_id)
    await save(sharing, photos, both(bob, MANAGE))
    edit = Edit((AccessChange(bob, MANAGE, MANAGE, until(ends_ms)),))
    with pytest.raises(NeedsConfirmation):
        await save(sharing, photos, edit, who=other(photos))
    await save(sharing, photos, edit, who=other(photos), confirmed=True)


async def test_a_condition_that_does_not_hold_is_explained(
    photos: Server, sharing: SharingService
) -> None:
    condition = "[ a acl:ClientCondition; acl:client <https://app.example/id> ]"
    rule = f"acl:agent <{CAROL}>; acl:condition {condition}"
    await photos.put_acl(FOLDER, (rule, "Read"))
    answer = await sharing.explain(owner(photos), FOLDER, person=CAROL)
    (reason,) = answer.explanation.about(Mode.READ)
    assert (reason.cause, reason.grantee) == (Cause.CONDITION, agent(CAROL))
    assert [each.cause for each in answer.explanation.about(Mode.WRITE)] == [Cause.NO_RULE]
