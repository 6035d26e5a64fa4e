"""Evaluates the preconditions of a request in the steps of RFC 9110, section 13.2.2.

Entity tags have the form ``"<version>-<form>"``: the version part identifies a state of the
resource, the form its representation (P-24). Reads compare entire tags. Writes compare the version
part only, because a client may GET Turtle and PUT JSON-LD (P-24); the commit checks that version
again inside its transaction.

Dates are in whole seconds and come from clocks that may be wrong, so a date counts only if it is
that of the present state and of no other (RFC 9110 section 8.8.2.2). The last two milliseconds of a
second mark times that several changes may share; see :func:`time_after`.
"""

import re
from datetime import UTC
from email.utils import parsedate_to_datetime
from enum import Enum
from functools import lru_cache

from podstead.core.caches import memoize_short_keys
from podstead.core.codes import CoreCodes
from podstead.core.errors import BadRequest, PreconditionFailed
from podstead.core.value import Value

_ENTITY_TAG = re.compile(r'(W/)?"([\x21\x23-\x7e\x80-\xff]*)"')
# No two adjacent parts can match the same character, so matching takes linear time.
_TAG_LIST = re.compile(
    rf"\s*(?:,\s*)*{_ENTITY_TAG.pattern}\s*(?:,\s*(?:{_ENTITY_TAG.pattern}\s*)?)*\Z"
)
MAX_TAGS_CHARS = 4096
"""A longer list is treated as malformed."""


_SEVERAL_MS = 998
"""The millisecond that marks a change which may share its second with another."""
_DELETED_MS = 999
"""The same for the deletion of a member, which may be created again within the second."""


def time_after(at_ms: int, before_ms: int) -> int:
    """The modification time of a resource that was changed at ``at_ms``, and previously at
    ``before_ms``.

    Never goes back, even if the clock did or the clock of another node is ahead.
    """
    if at_ms // 1000 > before_ms // 1000:
        return at_ms
    return before_ms - before_ms % 1000 + max(_SEVERAL_MS, before_ms % 1000)


def time_of_member(at_ms: int, members_modified_ms: int) -> int:
    """The modification time of a member created at ``at_ms`` in a container whose members last
    changed at ``members_modified_ms``. A resource of that name may have existed before."""
    same_second = at_ms // 1000 == members_modified_ms // 1000
    if same_second and members_modified_ms % 1000 != _DELETED_MS:
        return at_ms
    return time_after(at_ms, members_modified_ms)


def time_of_deletion(at_ms: int, modified_ms: int = 0) -> int:
    """The modification time of a container's members after one last modified at ``modified_ms`` was
    deleted at ``at_ms``. Also used for a creation when it is unknown whether the resource existed
    before."""
    return max(at_ms, modified_ms) // 1000 * 1000 + _DELETED_MS


class EntityTag(Value):
    """An entity tag as received (RFC 9110 section 8.8.3); ``opaque`` without its quotes."""

    opaque: str
    weak: bool = False

    @property
    def version(self) -> str:
        """The part that identifies the state, independent of the representation."""
        return self.opaque.rpartition("-")[0]


ANY = "*"


class Conditions(Value):
    """The If-… headers of one request as received, decoded; ``None`` where absent."""

    if_match: str | None = None
    if_none_match: str | None = None
    if_modified_since: str | None = None
    if_unmodified_since: str | None = None

    @property
    def any_given(self) -> bool:
        return not (
            self.if_none_match is None
            and self.if_match is None
            and self.if_modified_since is None
            and self.if_unmodified_since is None
        )


UNCONDITIONAL = Conditions()


class PreconditionResult(Enum):
    """How the server should respond to a safe request."""

    PROCEED = "proceed"
    NOT_MODIFIED = "not modified"


def parse_tags(value: str) -> tuple[EntityTag, ...] | str | None:
    """Parse an If-Match or If-None-Match value: tags, ``ANY``, or ``None`` if it is malformed or
    longer than :data:`MAX_TAGS_CHARS`."""
    return _parse_tags(value) if len(value) <= MAX_TAGS_CHARS else None


@lru_cache(maxsize=256)
def _parse_tags(value: str) -> tuple[EntityTag, ...] | str | None:
    if value.strip() == ANY:
        return ANY
    if not _TAG_LIST.match(value):
        return None
    return tuple(
        EntityTag(opaque=match.group(2), weak=match.group(1) is not None)
        for match in _ENTITY_TAG.finditer(value)
    )


@memoize_short_keys
def parse_http_date(value: str) -> int | None:
    """An HTTP date as Unix seconds; ``None`` if it is not one (RFC 9110 section 5.6.7)."""
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, TypeError, OverflowError):
        return None
    # The obsolete asctime form has no time zone, and every HTTP date is in UTC.
    return int((date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp())


def evaluate_read(conditions: Conditions, *, etag: str, modified_ms: int) -> PreconditionResult:
    """Evaluate the conditions of a GET or HEAD of an existing resource.

    ``etag`` is the quoted entity tag of the negotiated representation (P-23). A malformed list
    matches nothing. Raises PreconditionFailed (steps 1 and 2).
    """
    opaque = etag[1:-1]
    if conditions.if_match is not None:  # step 1, strong comparison
        tags = parse_tags(conditions.if_match) or ()
        if tags != ANY and not any(t.opaque == opaque and not t.weak for t in _tags(tags)):
            raise PreconditionFailed("The resource does not match the entity tag in If-Match")
    elif conditions.if_unmodified_since is not None:  # step 2
        _check_unmodified(conditions.if_unmodified_since, modified_ms)
    if conditions.if_none_match is not None:  # step 3, weak comparison
        tags = parse_tags(conditions.if_none_match) or ()
        matches = tags == ANY or any(tag.opaque == opaque for tag in _tags(tags))
        return PreconditionResult.NOT_MODIFIED if matches else PreconditionResult.PROCEED
    if conditions.if_modified_since is not None:  # step 4
        since_s = parse_http_date(conditions.if_modified_since)
        if since_s is not None and _is_date_of(since_s, modified_ms):
            return PreconditionResult.NOT_MODIFIED
    return PreconditionResult.PROCEED


def check_write(conditions: Conditions, *, version: str | None, modified_ms: int | None) -> None:
    """Check the conditions of a state-changing request; P-21, P-22.

    ``version`` is the version part of the target's current entity tags, ``None`` if the target
    does not exist. Raises PreconditionFailed, or BadRequest for a malformed list, because a write
    must not happen if its condition cannot be parsed.
    """
    if conditions.if_match is not None:  # step 1
        tags = _parse_or_refuse("If-Match", conditions.if_match)
        if version is None:
            raise PreconditionFailed(CoreCodes.DELETED_MEANWHILE)
        if tags != ANY and not any(t.version == version and not t.weak for t in _tags(tags)):
            raise PreconditionFailed(CoreCodes.CHANGED_MEANWHILE)
    elif conditions.if_unmodified_since is not None and modified_ms is not None:  # step 2
        _check_unmodified(conditions.if_unmodified_since, modified_ms)
    if conditions.if_none_match is not None:  # step 3
        tags = _parse_or_refuse("If-None-Match", conditions.if_none_match)
        if version is not None and (
            tags == ANY or any(tag.version == version for tag in _tags(tags))
        ):
            raise PreconditionFailed(CoreCodes.NAME_TAKEN)


def _tags(condition: tuple[EntityTag, ...] | str) -> tuple[EntityTag, ...]:
    return condition if isinstance(condition, tuple) else ()


def _parse_or_refuse(header: str, value: str) -> tuple[EntityTag, ...] | str:
    tags = parse_tags(value)
    if tags is None:
        raise BadRequest(f"{header} must be * or a list of entity tags in double quotes")
    return tags


def _check_unmodified(value: str, modified_ms: int) -> None:
    since_s = parse_http_date(value)
    if since_s is not None and not _is_date_of(since_s, modified_ms):
        raise PreconditionFailed(
            "The resource may have changed since If-Unmodified-Since, which must be its exact"
            " Last-Modified; If-Match with its entity tag is always exact"
        )


def _is_date_of(date_s: int, modified_ms: int) -> bool:
    """Whether a date is the Last-Modified of the present state and of no other.

    A later date says nothing: the clock that gave it may be ahead of the one that dated the state,
    and a resource that was moved here brought an earlier date along.
    """
    return date_s == modified_ms // 1000 and modified_ms % 1000 < _SEVERAL_MS
