"""The state of a target and its surroundings.

Pure: values in, values out. The snapshot contains the paths of
:func:`podstead.wac.effective.paths_to_read`: the target, its subject, every container above, and
the slash variants of all of these.
"""

from podstead.core import identifiers
from podstead.core.errors import Conflict, StorageError, TargetTooLong
from podstead.resources.codes import ResourceCodes
from podstead.storage import protocol, quota
from podstead.storage.records import Absent, Metadata, Precondition, Present


class TargetState:
    """The target of a request and what was stored around it at one moment.

    ``subject`` is the resource that the target is auxiliary to, or the target itself.
    ``stored_path`` is the path under which its bytes are stored: the description of a container is
    stored as the container's own body (C-30). ``existing`` is the metadata of the stored resource,
    ``None`` if there is none.
    """

    __slots__ = ("_above", "auxiliary", "existing", "snapshot", "stored_path", "subject", "target")

    def __init__(self, target: identifiers.ResourcePath, snapshot: protocol.Snapshot) -> None:
        """Raises StorageError if the snapshot does not hold the target."""
        self.target = target
        self.snapshot = snapshot
        self.auxiliary = identifiers.auxiliary_kind(target)
        self.subject = target if self.auxiliary is None else identifiers.subject_of(target)
        of_container = (
            self.auxiliary is identifiers.Auxiliary.DESCRIPTION
            and identifiers.is_container(self.subject)
        )
        self.stored_path = self.subject if of_container else target
        self.existing = self.metadata(self.stored_path)
        self._above: tuple[tuple[identifiers.ResourcePath, ...], Metadata | None] | None = None

    def metadata(self, path: identifiers.ResourcePath) -> Metadata | None:
        """The metadata at a path of the snapshot; ``None`` if nothing is stored there.

        Raises StorageError for a path that was not read, because that does not mean absence.
        """
        try:
            return self.snapshot[path]
        except KeyError as error:
            raise StorageError(
                "An authorization decision needed a path that was not read"
            ) from error

    @property
    def slash_variant(self) -> Metadata | None:
        """What is stored at the target's slash variant; auxiliary resources have none (P-47)."""
        if self.auxiliary is not None:
            return None
        return self.metadata(identifiers.slash_variant(self.target))

    @property
    def is_storage_root(self) -> bool:
        return identifiers.storage_root(self.stored_path) == self.stored_path

    @property
    def is_possible_description(self) -> bool:
        """Whether the target is the description of a resource that exists and can have one."""
        return (
            self.auxiliary is identifiers.Auxiliary.DESCRIPTION
            and identifiers.auxiliary_kind(self.subject) is None
            and self.metadata(self.subject) is not None
        )

    def missing_containers(self) -> tuple[identifiers.ResourcePath, ...]:
        """The containers that creating the target would create, outermost first (C-2)."""
        return self._surroundings()[0]

    def _surroundings(self) -> tuple[tuple[identifiers.ResourcePath, ...], Metadata | None]:
        """The missing containers above the target, and the nearest existing one, if any."""
        if self._above is None:
            missing: list[identifiers.ResourcePath] = []
            nearest = None
            for container in identifiers.ancestors(self.subject):
                nearest = self.metadata(container)
                if nearest is not None or identifiers.storage_root(container) is None:
                    break
                missing.append(container)
            self._above = tuple(reversed(missing)), nearest
        return self._above

    def check_creatable(self) -> None:
        """Raise Conflict if slash semantics forbid creating the target (P-47, P-49).

        That includes a URL whose slash variant is reserved for an auxiliary resource (P-52).
        """
        if self.auxiliary is not None:
            if identifiers.auxiliary_kind(self.subject) is not None:
                raise Conflict(ResourceCodes.AUXILIARY_OF_AUXILIARY)
            if self.metadata(self.subject) is None:
                raise Conflict(ResourceCodes.SUBJECT_MISSING)
            return
        if self.slash_variant is not None:
            raise Conflict(ResourceCodes.SLASH_VARIANT_EXISTS)
        missing = self.missing_containers()
        for container in missing:
            if self.metadata(identifiers.slash_variant(container)) is not None:
                raise Conflict(ResourceCodes.INSIDE_DOCUMENT)
        for created in (self.target, *missing):
            if (
                identifiers.is_container(created)
                and identifiers.auxiliary_kind(identifiers.slash_variant(created)) is not None
            ):
                raise Conflict(ResourceCodes.CONTAINER_NAMED_AS_AUXILIARY)

    def extra_charge_bytes(self) -> int:
        """The bytes that a PUT of the target adds to the charge of its storage besides the body."""
        existing = self.existing
        if existing is not None:
            return 0 if existing.blob is not None else -existing.size_bytes
        created = (self.stored_path, *self.missing_containers())
        return sum(quota.fixed_charge(path) for path in created)

    def creation_preconditions(self) -> tuple[Precondition, ...]:
        """The preconditions of creating the target: the path is free, and its container exists."""
        preconditions: list[Precondition] = [
            Absent(self.target),
            Absent(identifiers.slash_variant(self.target)),
        ]
        missing, nearest = self._surroundings()
        for container in missing:
            preconditions += [Absent(container), Absent(identifiers.slash_variant(container))]
        if nearest is not None:
            preconditions.append(Present(nearest.path))
        return tuple(preconditions)


def check_new_path_length(path: identifiers.ResourcePath) -> None:
    """Refuse to create a resource whose ACL or description could not be requested afterwards.

    Raises TargetTooLong.
    """
    max_bytes = identifiers.MAX_TARGET_BYTES - identifiers.MAX_SUFFIX_BYTES
    if len(path) > max_bytes:
        raise TargetTooLong(ResourceCodes.PATH_TOO_LONG, number=max_bytes)
