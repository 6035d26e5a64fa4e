"""What errors say to people: codes, from which pages make texts in each language."""

import re
from enum import StrEnum
from typing import Final, Self

_PARAMETER: Final = re.compile(r"\{([a-z_]+)(?::,)?\}")


class ErrorCode(StrEnum):
    """What an error says to people. The value is the message to programs, in English, with
    ``{name}`` for each parameter. Errors that only programs meet have no code."""

    text: str
    """What catalogues translate for people, with ``%(name)s`` for each parameter."""

    def __new__(cls, message: str, text: str | None = None) -> Self:
        """``text`` if people read other words than programs."""
        code = str.__new__(cls, message)
        code._value_ = message
        code.text = _PARAMETER.sub(r"%(\1)s", text or message)
        return code


class CoreCodes(ErrorCode):
    """What errors of every part say to people."""

    ACCESS_DENIED = "Access denied"
    SIGN_IN_REQUIRED = ("Authentication required", "Sign in first")
    NO_SUCH_RESOURCE = ("The resource does not exist", "It does not exist")
    RATE_LIMIT_ONE_SECOND = (
        "Rate limit exceeded. Try again in 1 second.",
        "Too many requests: try again in a second",
    )
    RATE_LIMIT = (
        "Rate limit exceeded. Try again in {number} seconds.",
        "Too many requests: try again in {number} seconds",
    )
    QUOTA_EXCEEDED = (
        "The storage quota is exceeded: the storage uses {used_bytes} of its {limit_bytes} bytes",
        "There is no room for this: the pod already uses {used_bytes} of its {limit_bytes}",
    )
    QUOTA_EXCEEDED_BY_THIS = (
        (
            "The storage quota is exceeded: the storage uses {used_bytes} of its {limit_bytes} "
            "bytes, and this request needs {needed_bytes} more"
        ),
        (
            "There is no room for this: it needs {needed_bytes}, and the pod already uses "
            "{used_bytes} of its {limit_bytes}"
        ),
    )
    DISK_FULL = (
        "The server does not have enough disk space to store this. Reading and deleting still "
        "work; try again when there is space."
    )
    STORE_UNAVAILABLE = (
        "The database cannot be reached at the moment. Try again; if this was a change, look "
        "first whether it has been made."
    )
    DELETED_MEANWHILE = (
        "If-Match was sent, but the resource does not exist",
        "Somebody else has deleted this in the meantime",
    )
    CHANGED_MEANWHILE = (
        "The resource has changed since the version in If-Match",
        "Somebody else has changed this in the meantime",
    )
    NAME_TAKEN = ("The resource matches If-None-Match", "There is already something with this name")
    MALFORMED_PARAMETER = (
        "The Content-Type has a malformed parameter",
        "The media type has a malformed parameter",
    )
    NO_MEDIA_TYPE = ("The Content-Type is not a media type", "This is not a media type")
    CONTROL_CHARACTER = (
        "The request target contains a control character",
        "The name or the address contains a control character",
    )
    DOT_SEGMENT = (
        "The request target contains a dot segment",
        "The name or the address contains “.” or “..” as a part of its own",
    )
    MALFORMED_ESCAPE = (
        "The request target contains a malformed percent-encoding",
        "The address contains a malformed percent-encoding",
    )
    EMPTY_SEGMENT = (
        "The request target contains an empty path segment ('//')",
        "The address contains an empty part (“//”)",
    )
    TARGET_NOT_UTF_8 = (
        "The request target is not UTF-8 after percent-decoding",
        "The name or the address is not in UTF-8",
    )
    TOO_LARGE = (
        "The body is larger than the limit of {limit_bytes} bytes",
        "This is larger than {limit_bytes}, the most that this server accepts at once",
    )
    TOO_MANY_BYTES = (
        "The body can have at most {limit_bytes} bytes",
        "This is larger than {limit_bytes}, the most that this server accepts at once",
    )
