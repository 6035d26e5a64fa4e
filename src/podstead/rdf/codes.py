"""Error codes of the RDF layer."""

from podstead.core.codes import ErrorCode


class RdfCodes(ErrorCode):
    """What errors about RDF documents say to people."""

    MALFORMED_LINE = (
        "Malformed {media_type}, line {line}: {reason}",
        "This is not valid {media_type}, line {line}: {reason}",
    )
    MALFORMED = ("Malformed {media_type}: {reason}", "This is not valid {media_type}: {reason}")
    TOO_MANY_BYTES = (
        "An RDF document can have at most {limit_bytes} bytes",
        "A linked-data document can have at most {limit_bytes}",
    )
    TOO_MANY_TRIPLES = (
        "An RDF document can have at most {number} triples",
        "A linked-data document can have at most {number} statements",
    )
    UNKNOWN_CONTEXT = "The JSON-LD context <{address}> is not known to this server"
    UNAVAILABLE_CONTEXT = (
        "The JSON-LD context <{address}> is temporarily unavailable; try again later"
    )
    UNSUPPORTED_TYPE = (
        "'{media_type}' is not an RDF media type that this server supports",
        "This server does not read linked data of the type “{media_type}”",
    )
    UNSUPPORTED_CHARSET = (
        "RDF must be sent in UTF-8, not '{charset}'",
        "Linked data must be in UTF-8, not in “{charset}”",
    )
    NOT_EXPRESSIBLE = "This document cannot be written as {media_type}: {reason}"
