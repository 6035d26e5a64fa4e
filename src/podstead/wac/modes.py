"""Maps operations to the access modes that they need, and the resources that they need them on.

Requirements follow from the method, the path of the target, what exists around it and, for PATCH,
what the patch does. They never depend on the agent. Each names one resource and one mode that the
agent must have under the effective ACL of that resource (W-10). If the resource has an ACL of its
own, the rules with ``acl:accessTo`` apply; otherwise, whether it exists or not, the rules with
``acl:default`` of the closest ACL above it.

    operation             on the target          on other resources
    read                  Read                                                          W-30
    post                  Append                                                        W-32
    put    existing       Write                                                         W-33
           missing        Write                  Append on each missing container
                                                 and on the closest existing one        W-34, W-37
    patch  existing       by content             as for put                             W-35, X-20…
           missing        by content             as for put                             W-36, W-37
    delete document       Write                  Write on the parent                    W-38, W-45
           container      Write, Read            Write on the parent                    W-39
           missing        Write, Read            Write on the parent                    W-41
           whole tree     the same on each resource in it
    copy                  Read on each resource  at the destination as for put; to replace a
                                                 document there also as for delete
    move                  Read, Write on each    as for copy, and Write on the parent; Control on
                                                 each that has an ACL, and at the destination

Two kinds of targets stand for another resource. Every operation on an ACL needs Control on its
subject (W-40, X-25), and a description is read and changed like its subject (W-42). What the
requirements depend on, the existence of the target and of the containers above it, must be a
precondition of the write, so that they are still right when it is committed.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import lru_cache

from podstead.core import identifiers
from podstead.core.caches import memoize_short_keys
from podstead.core.value import Value
from podstead.storage.protocol import Snapshot


class Mode(StrEnum):
    """The access modes of WAC, in the order and spelling of ``WAC-Allow`` (W-51)."""

    READ = "read"
    WRITE = "write"
    APPEND = "append"
    CONTROL = "control"


Modes = frozenset[Mode]

NO_MODES: Modes = frozenset()
ALL_MODES: Modes = frozenset(Mode)


def with_entailed(modes: Iterable[Mode]) -> Modes:
    """The modes and those that they entail: Write entails Append, and that is all (W-15)."""
    held = frozenset(modes)
    return held | {Mode.APPEND} if Mode.WRITE in held else held


class Requirement(Value):
    """The agent must have ``mode`` under the effective ACL of ``subject``, which is not an
    auxiliary resource."""

    subject: identifiers.ResourcePath
    mode: Mode


Requirements = tuple[Requirement, ...]


class PatchContent(Value):
    """What a patch does, which determines the modes that it needs (X-20 to X-24).

    ``where`` is true if it has conditions, because its success then reveals what is stored. A patch
    that has not been read yet is ``PatchContent()``.
    """

    inserts: bool = False
    deletes: bool = False
    where: bool = False


UNREAD_PATCH = PatchContent()


class Governed(Value):
    """Which resource's rules decide about a path, and whether the path is their ACL."""

    subject: identifiers.ResourcePath
    is_acl: bool


@memoize_short_keys
def governed(target: identifiers.ResourcePath) -> Governed:
    """Whose effective ACL decides about ``target``: its own, or its subject's (W-40, W-42).

    An ACL has no ACL (W-1): a resource that is auxiliary to it needs Control on the subject too.
    """
    is_acl = False
    while (kind := identifiers.auxiliary_kind(target)) is not None:
        is_acl = is_acl or kind is identifiers.Auxiliary.ACL
        target = identifiers.subject_of(target)
    return Governed(target, is_acl)


@memoize_short_keys
def any_member(container: identifiers.ResourcePath) -> identifiers.ResourcePath:
    """A path in the container that only its ``acl:default`` rules apply to.

    No request can name it, because it contains a control character, so it never exists and never
    has an ACL.
    """
    return identifiers.ResourcePath(container + "%00")


@memoize_short_keys
def for_clone(container: identifiers.ResourcePath) -> Requirements:
    """Fetching from the repository of a container: Read on the container and on its contents.

    A container itself may be open to more agents than its contents: the root of a pod is a public
    profile, for example. A repository is contents.
    """
    return _on(container, Mode.READ) + _on(any_member(container), Mode.READ)


@memoize_short_keys
def for_read(target: identifiers.ResourcePath) -> Requirements:
    """GET and HEAD (W-30), and subscribing to notifications about the target (W-44)."""
    return _on(target, Mode.READ)


@memoize_short_keys
def for_post(target: identifiers.ResourcePath) -> Requirements:
    """POST (W-32). It needs nothing on the new member; 404 and 405 come after this (W-61)."""
    return _on(target, Mode.APPEND)


def for_put(target: identifiers.ResourcePath, snapshot: Snapshot) -> Requirements:
    """PUT of an existing (W-33) or new resource (W-34, W-37)."""
    return _change(target, snapshot, (Mode.WRITE,))


def for_patch(
    target: identifiers.ResourcePath, snapshot: Snapshot, content: PatchContent = UNREAD_PATCH
) -> Requirements:
    """PATCH of an existing (W-35) or new resource (W-36, W-37).

    Without ``content``, these are the requirements of every patch of the target.
    """
    return _change(target, snapshot, patch_modes(content))


def patch_modes(content: PatchContent) -> tuple[Mode, ...]:
    """The modes that a patch needs on its target.

    Append always: a patch requests a change even if it turns out to change nothing, and Read alone
    is not enough for any patch (X-26).
    """
    if content.deletes:  # which deletions succeed reveals what is stored
        return (Mode.READ, Mode.WRITE)
    if content.where:
        return (Mode.READ, Mode.APPEND)
    return (Mode.APPEND,)


def for_delete(target: identifiers.ResourcePath, snapshot: Snapshot) -> Requirements:
    """DELETE of a document (W-38), a container (W-39) or nothing (W-41)."""
    place = governed(target)
    required = _on(target, Mode.WRITE)
    if place.is_acl:
        return required
    if place.subject == target:
        required += _on_parent(target)
    if identifiers.is_container(target) or not _exists(target, place.subject, snapshot):
        required += _on(target, Mode.READ)
    return required


def for_copy(
    copied: Iterable[identifiers.ResourcePath],
    destination: identifiers.ResourcePath,
    snapshot: Snapshot,
) -> Requirements:
    """COPY of the resources ``copied``, the first of them to ``destination`` and the others below.

    What is created below the destination has no closer ACL than the destination, so the modes
    required there apply to it as well. The ACLs of the resources are copied only where the agent
    has Control on both sides; that is not required.
    """
    read = tuple(Requirement(path, Mode.READ) for path in copied)
    return read + _replacement(destination, snapshot)


def for_move(
    moved: Sequence[identifiers.ResourcePath],
    with_rules: Iterable[identifiers.ResourcePath],
    destination: identifiers.ResourcePath,
    snapshot: Snapshot,
) -> Requirements:
    """MOVE of the resources ``moved``, the first of them to ``destination`` and the others below.

    Those ``with_rules`` have an ACL. Without it, they could become accessible to others at the
    destination, so a move always takes the ACLs along and needs Control for that.
    """
    required = list(_on_parent(moved[0]))
    for path in moved:
        required += (Requirement(path, Mode.READ), Requirement(path, Mode.WRITE))
    ruled = tuple(with_rules)
    required += (Requirement(path, Mode.CONTROL) for path in ruled)
    required += _replacement(destination, snapshot)
    if ruled:
        required.append(Requirement(destination, Mode.CONTROL))
    return tuple(required)


def for_tree_deletion(deleted: Sequence[identifiers.ResourcePath]) -> Requirements:
    """DELETE of the resources ``deleted``, the first of them with all the others below it."""
    required = list(_on_parent(deleted[0]))
    for path in deleted:
        required.append(Requirement(path, Mode.WRITE))
        if identifiers.is_container(path):
            required.append(Requirement(path, Mode.READ))
    return tuple(required)


def _replacement(destination: identifiers.ResourcePath, snapshot: Snapshot) -> Requirements:
    required = for_put(destination, snapshot)
    if snapshot[destination] is not None:
        required += for_delete(destination, snapshot)
    return required


def identity_change(target: identifiers.ResourcePath) -> Requirements:
    """A write that changes the identity statements in a WebID's own document: Control, besides what
    the method needs, so that an agent with Append cannot become the owner."""
    return _on(target, Mode.CONTROL)


def _on(target: identifiers.ResourcePath, *modes: Mode) -> Requirements:
    """The modes on the target's subject, or Control alone if the target is an ACL."""
    place = governed(target)
    if place.is_acl:
        modes = (Mode.CONTROL,)
    return tuple(Requirement(place.subject, mode) for mode in modes)


def _change(
    target: identifiers.ResourcePath, snapshot: Snapshot, modes: tuple[Mode, ...]
) -> Requirements:
    place = governed(target)
    required = _on(target, *modes)
    if place.is_acl or snapshot[place.subject] is not None:
        return required
    return _creation(place.subject, snapshot) + required


def _creation(subject: identifiers.ResourcePath, snapshot: Snapshot) -> Requirements:
    """Append on every container to be created, and on the existing one that will contain them."""
    required = []
    for container in identifiers.ancestors(subject):
        required.append(Requirement(container, Mode.APPEND))
        if snapshot[container] is not None:
            break
    return tuple(required)


def _on_parent(target: identifiers.ResourcePath) -> Requirements:
    """Write on the container that loses the member. A storage root is a member of none, so that its
    owner is told that it cannot be deleted (C-19) and not that access is denied."""
    parent = identifiers.parent_container(target)
    if parent is None or identifiers.storage_root(target) == target:
        return ()
    return (Requirement(parent, Mode.WRITE),)


def _exists(
    target: identifiers.ResourcePath, subject: identifiers.ResourcePath, snapshot: Snapshot
) -> bool:
    # The description of a container is a part of the container itself (C-30).
    stored = subject if identifiers.is_container(subject) else target
    return snapshot[stored] is not None


@lru_cache(maxsize=256)  # every pair of sets of four modes
def wac_allow(user: Modes, public: Modes) -> str:
    """The header value: both groups, even if empty, modes in one fixed order (W-51, W-52).

    ``user`` are the modes of the requesting agent, the public ones included. Both sets include
    entailed modes, so Append is listed with Write (W-54).
    """
    return f'user="{_listed(user)}",public="{_listed(public)}"'


def _listed(modes: Modes) -> str:
    return " ".join(mode for mode in Mode if mode in modes)
