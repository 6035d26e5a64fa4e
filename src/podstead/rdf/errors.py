"""Errors in RDF documents and patches.

    BadRequest
    ├── MalformedRdf              a syntax error; line and reason are in the message
    │   └── RdfTooComplex         nested deeper, or more work, than the limits allow
    └── UnknownContext            refers to a JSON-LD context that is not available (R-11)
        └── UnavailableContext    … temporarily: also a RemoteUnavailable
    BodyTooLarge
    └── RdfTooLarge               more bytes or triples than the limits
    UnsupportedMediaType
    ├── UnsupportedRdfType        no parser or writer for the media type
    └── UnsupportedCharset        RDF in anything but UTF-8 (R-13)
    NotAcceptable
    └── NotExpressible            the requested format cannot express the document
    Unprocessable
    ├── PatchRefused              a patch that breaks a rule or uses an unsupported feature
    └── PatchTooCostly            its conditions take too many steps to evaluate
    Conflict
    └── PatchInapplicable         the document does not meet the patch's conditions

All except UnavailableContext are the client's fault, and their messages are public. A caller that
converts or patches stored bytes turns ``UnknownContext`` into 406 or 409 (R-11); otherwise it is a
400.
"""

from podstead.core import errors
from podstead.rdf.codes import RdfCodes


class MalformedRdf(errors.BadRequest):
    """The document violates the grammar of its format.

    ``line`` and ``column`` start at 1 and are ``None`` if the parser does not report them.
    ``reason`` is the parser's message without the position.
    """

    def __init__(
        self, media_type: str, reason: str, *, line: int | None = None, column: int | None = None
    ) -> None:
        if line is None:
            super().__init__(RdfCodes.MALFORMED, media_type=media_type, reason=reason)
        else:
            super().__init__(
                RdfCodes.MALFORMED_LINE, media_type=media_type, line=str(line), reason=reason
            )
        self.media_type = media_type
        self.reason = reason
        self.line = line
        self.column = column


class RdfTooComplex(MalformedRdf):
    """The document nests deeper, or requires more work, than the limits allow."""


class RdfTooLarge(errors.BodyTooLarge):
    """The document has more bytes or triples than the limits allow."""


class UnknownContext(errors.BadRequest):
    """A JSON-LD document refers to a context that is neither bundled nor fetched (R-11)."""

    _code = RdfCodes.UNKNOWN_CONTEXT

    def __init__(self, url: str) -> None:
        super().__init__(self._code, address=url)
        self.url = url


class UnavailableContext(errors.RemoteUnavailable, UnknownContext):
    """The context may be fetched, but is temporarily unavailable."""

    _code = RdfCodes.UNAVAILABLE_CONTEXT

    def __init__(self, url: str, retry_after_s: int) -> None:
        super().__init__(url)
        self.retry_after_s = retry_after_s


class UnsupportedRdfType(errors.UnsupportedMediaType):
    """There is no RDF parser or writer for the media type."""

    def __init__(self, media_type: str) -> None:
        super().__init__(RdfCodes.UNSUPPORTED_TYPE, media_type=media_type)
        self.media_type = media_type


class UnsupportedCharset(errors.UnsupportedMediaType):
    """An RDF document in an encoding other than UTF-8 (R-13)."""

    def __init__(self, charset: str) -> None:
        super().__init__(RdfCodes.UNSUPPORTED_CHARSET, charset=charset)
        self.charset = charset


class NotExpressible(errors.NotAcceptable):
    """The requested format cannot express the document."""

    def __init__(self, media_type: str, reason: str) -> None:
        super().__init__(RdfCodes.NOT_EXPRESSIBLE, media_type=media_type, reason=reason)
        self.media_type = media_type
        self.reason = reason


class PatchRefused(errors.Unprocessable):
    """A patch that is well-formed, but breaks a rule of its format or uses an unsupported feature.

    ``line`` starts at 1 and is ``None`` if the rule concerns the patch as a whole.
    """

    def __init__(self, media_type: str, reason: str, *, line: int | None = None) -> None:
        place = "" if line is None else f", line {line}"
        super().__init__(f"Unacceptable {media_type}{place}: {reason}")
        self.media_type = media_type
        self.reason = reason
        self.line = line


class PatchTooCostly(errors.Unprocessable):
    """Evaluating the conditions of a patch takes more steps than allowed."""


class PatchInapplicable(errors.Conflict):
    """The document does not meet the conditions of a patch, or lacks what it deletes."""
