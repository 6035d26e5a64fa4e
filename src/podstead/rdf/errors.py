"""What can be wrong with an RDF document that somebody sent?

    BadRequest
    ├── MalformedRdf              not the format it says it is; line and reason in the message
    │   └── RdfTooComplex         within its size, yet deeper or richer than the limits
    └── UnknownContext            its JSON-LD refers to a context that is not at hand (R-11)
        └── UnavailableContext    … and that may be had later: also a RemoteUnavailable
    BodyTooLarge
    └── RdfTooLarge               more bytes or triples than the limits
    UnsupportedMediaType
    ├── UnsupportedRdfType        no parser or writer for the media type
    └── UnsupportedCharset        RDF in anything but UTF-8 (R-13)
    NotAcceptable
    └── NotExpressible            the asked format cannot say what the document says
    Unprocessable
    ├── PatchRefused              a patch that breaks a rule, or asks for what is not supported
    └── PatchTooCostly            its conditions take more steps than a patch may
    Conflict
    └── PatchInapplicable         the document is not what the patch says it is

All but UnavailableContext are the sender's fault, and their messages public. A caller that
converts or patches stored bytes turns ``UnknownContext`` into the answer R-11 wants (406, 409);
left alone it is a 400.
"""

from __future__ import annotations

from podstead.core.errors import (
    BadRequest,
    BodyTooLarge,
    Conflict,
    NotAcceptable,
    RemoteUnavailable,
    Unprocessable,
    UnsupportedMediaType,
)


class MalformedRdf(BadRequest):
    """The document breaks the grammar of its format.

    ``line`` counts from 1; ``None`` where the parser does not tell. ``reason`` is the parser's own
    words, without the place.
    """

    def __init__(self, media_type: str, reason: str, *, line: int | None = None) -> None:
        place = "" if line is None else f", line {line}"
        super().__init__(f"Malformed {media_type}{place}: {reason}")
        self.media_type = media_type
        self.reason = reason
        self.line = line


class RdfTooComplex(MalformedRdf):
    """The document nests deeper, or asks for more work, than the limits allow."""


class RdfTooLarge(BodyTooLarge):
    """The document has more bytes or triples than the limits allow."""


class UnknownContext(BadRequest):
    """A JSON-LD document refers to a context that is neither bundled nor fetched (R-11)."""

    def __init__(self, url: str) -> None:
        super().__init__(f"The JSON-LD context <{url}> is not known to this server")
        self.url = url


class UnavailableContext(RemoteUnavailable, UnknownContext):
    """The context is one that may be fetched, and could not be had at present."""

    def __init__(self, url: str, retry_after_s: int) -> None:
        super().__init__(url)
        self.args = (f"The JSON-LD context <{url}> cannot be had at present: try again later",)
        self.retry_after_s = retry_after_s


class UnsupportedRdfType(UnsupportedMediaType):
    """There is no RDF parser or writer for the media type."""

    def __init__(self, media_type: str) -> None:
        super().__init__(f"'{media_type}' is not an RDF media type that this server speaks")
        self.media_type = media_type


class UnsupportedCharset(UnsupportedMediaType):
    """An RDF document in another encoding than UTF-8 (R-13)."""

    def __init__(self, charset: str) -> None:
        super().__init__(f"RDF must be sent in UTF-8, not '{charset}'")
        self.charset = charset


class NotExpressible(NotAcceptable):
    """The format that was asked for has no way to say what the document says."""

    def __init__(self, media_type: str, reason: str) -> None:
        super().__init__(f"This document cannot be written as {media_type}: {reason}")
        self.media_type = media_type
        self.reason = reason


class PatchRefused(Unprocessable):
    """A patch that can be read, yet breaks a rule of its format or asks for what no patch here may.

    ``line`` counts from 1; ``None`` where the rule is about the patch as a whole.
    """

    def __init__(self, media_type: str, reason: str, *, line: int | None = None) -> None:
        place = "" if line is None else f", line {line}"
        super().__init__(f"Unacceptable {media_type}{place}: {reason}")
        self.media_type = media_type
        self.reason = reason
        self.line = line


class PatchTooCostly(Unprocessable):
    """Evaluating the conditions of a patch took more steps than it may."""


class PatchInapplicable(Conflict):
    """The document does not meet the conditions of a patch, or lacks what it deletes."""
