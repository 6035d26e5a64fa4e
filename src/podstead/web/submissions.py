"""What did a person or a script send? A form or a JSON object, read in the same way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from podstead.core.errors import BadRequest
from podstead.web.codes import WebCodes
from podstead.web.forms import MAX_FORM_BYTES, only, read_form
from podstead.web.json_bodies import json_object
from podstead.web.request import Request


class PasswordsDiffer(BadRequest):
    """The new password and its repetition differ."""

    code = WebCodes.PASSWORDS_DIFFER


@dataclass(frozen=True, slots=True)
class FormSubmission:
    """The fields by name; from JSON a value may have any type."""

    fields: Mapping[str, object]

    def text(self, name: str) -> str:
        """The text of a field, empty if it is absent. Raises BadRequest for another type."""
        value = self.fields.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise BadRequest(f"The field {name} must be a string")
        return value

    def ticked(self, name: str) -> bool:
        """Whether a box was ticked."""
        return self.fields.get(name) not in (None, False, "")


async def read_submission(request: Request, *, max_bytes: int = MAX_FORM_BYTES) -> FormSubmission:
    """Read the body; an empty one is an empty form.

    Raises UnsupportedMediaType, BadRequest, BodyTooLarge and BodyTimeout.
    """
    content_type = (request.fields.get(b"content-type") or "").partition(";")[0].strip().lower()
    if not request.body.announced:
        return FormSubmission({})
    if content_type == "application/json":
        return FormSubmission(json_object(await request.body.read(limit_bytes=max_bytes)))
    form = await read_form(request, max_bytes=max_bytes)
    return FormSubmission({name: only(form, name) for name in form})
