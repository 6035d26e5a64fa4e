"""The messages of services that pages say in other words, or that contain values.

A value is written ``%(name)s``; one whose name ends in ``_bytes`` is shown as a size. A test finds
out whether a service still says what is listed.
"""

from __future__ import annotations

from typing import Final

from podstead.web.pod_pages.texts import N_

REWORDED: Final = {
    "A container cannot be copied or moved into itself": N_(
        "A folder cannot be copied or moved into itself"
    ),
    "A container has no content of its own": N_("A folder has no content of its own"),
    "A field appears twice": N_("The form is malformed"),
    "A storage and its access rules cannot be deleted": N_(
        "A pod and its access rules cannot be deleted here"
    ),
    "A storage is neither moved nor deleted, and access rules and descriptions "
    "are copied and moved with what they belong to": N_(
        "A pod is neither moved nor deleted here, and access rules and "
        "descriptions go along with what they belong to"
    ),
    "Access rules and descriptions are copied and moved with what they belong to": N_(
        "Access rules and descriptions go along with what they belong to"
    ),
    "An auxiliary resource cannot have auxiliary resources of its own": N_(
        "A name cannot end like that of access rules or of a description"
    ),
    "Authentication required": N_("Sign in first"),
    "If-Match was sent, but the resource does not exist": N_(
        "Somebody else has deleted this in the meantime"
    ),
    "Only a container can be downloaded as an archive": N_(
        "Only a folder can be downloaded as an archive"
    ),
    "Rate limit exceeded. Try again in 1 second.": N_("Too many requests: try again in a second"),
    'Send the name of the pod: {"name": "alice"}': N_("Type the name of the pod"),
    "The Content-Type has a malformed parameter": N_("The media type has a malformed parameter"),
    "The Content-Type is not a media type": N_("This is not a media type"),
    "The URL of a container must end in a slash": N_("The name of a folder must end in a slash"),
    "The URL of a document does not end in a slash": N_(
        "The name of a file does not end in a slash"
    ),
    "The access rules are changing too fast to be read; try again": N_(
        "This is changing too fast to be read; try again"
    ),
    "The body is shorter or longer than its Content-Length": N_(
        "Not everything has arrived; try again"
    ),
    "The content does not have the checksum that was sent": N_(
        "What arrived is not what was sent; try again"
    ),
    "The destination is the resource itself": N_("It is in this folder already."),
    "The field pod must contain the name of the pod to delete": N_(
        "Type the name of the pod to delete it"
    ),
    "The form does not say what to change": N_("The form is malformed"),
    "The form does not say whose access to change": N_("The form is malformed"),
    "The form is not UTF-8": N_("The form is malformed"),
    "The parameters are malformed": N_("The form is malformed"),
    "The pod is changing too fast to be read; try again": N_(
        "This is changing too fast to be read; try again"
    ),
    "The request body did not arrive in time": N_("Not everything has arrived; try again"),
    "The request body ended early": N_("Not everything has arrived; try again"),
    "The request target contains a control character": N_(
        "The name or the address contains a control character"
    ),
    "The request target contains a dot segment": N_(
        "The name or the address contains “.” or “..” as a part of its own"
    ),
    "The request target contains a malformed percent-encoding": N_(
        "The address contains a malformed percent-encoding"
    ),
    "The request target contains an empty path segment ('//')": N_(
        "The address contains an empty part (“//”)"
    ),
    "The request target is not UTF-8 after percent-decoding": N_(
        "The name or the address is not in UTF-8"
    ),
    "The resource does not exist": N_("It does not exist"),
    "The resource has changed since the version in If-Match": N_(
        "Somebody else has changed this in the meantime"
    ),
    "The resource is changing too fast to be read; try again": N_(
        "This is changing too fast to be read; try again"
    ),
    "The resource matches If-None-Match": N_("There is already something with this name"),
    "The subject of this auxiliary resource does not exist": N_(
        "What these rules or this description belong to does not exist"
    ),
    "The upload is finished and has become another resource": N_("The upload is finished already"),
    "Too many writes to this resource are in progress; try again": N_(
        "Too many people are changing this at the moment; try again"
    ),
    "Without its trailing slash, the URL is that of an auxiliary resource": N_(
        "A name cannot end like that of access rules or of a description"
    ),
    "You have no pod here": N_("You have no pod on this server"),
}
"""What a service says, and what a page says instead."""

WITH_VALUES: Final = {
    "Rate limit exceeded. Try again in %(number)s seconds.": N_(
        "Too many requests: try again in %(number)s seconds"
    ),
    "The storage quota is exceeded: the storage uses %(used_bytes)s of its "
    "%(limit_bytes)s bytes, and this request needs %(needed_bytes)s more": N_(
        "There is no room for this: it needs %(needed_bytes)s, and the pod "
        "already uses %(used_bytes)s of its %(limit_bytes)s"
    ),
    "The storage quota is exceeded: the storage uses %(used_bytes)s of its "
    "%(limit_bytes)s bytes": N_(
        "There is no room for this: the pod already uses %(used_bytes)s of its %(limit_bytes)s"
    ),
    "The body is larger than the limit of %(limit_bytes)s bytes": N_(
        "This is larger than %(limit_bytes)s, the most that this server accepts at once"
    ),
    "The body can have at most %(limit_bytes)s bytes": N_(
        "This is larger than %(limit_bytes)s, the most that this server accepts at once"
    ),
    "A form can have at most %(number)s files: upload the rest with another one": N_(
        "A form can have at most %(number)s files: upload the rest with another one"
    ),
    "The request body did not arrive in time; the minimum rate is %(number)s bytes per second": N_(
        "Not everything has arrived; try again"
    ),
    "There is no pod '%(name)s'.": N_("There is no pod with the name “%(name)s”"),
    "There is no deleted pod '%(name)s'.": N_("There is no deleted pod with the name “%(name)s”"),
    "The pod '%(name)s' already has an account.": N_("The pod “%(name)s” already has an account"),
    "There is no invitation '%(name)s'.": N_("There is no such invitation"),
    "An invitation can be used 1 to %(number)s times": N_(
        "An invitation can be used 1 to %(number)s times"
    ),
    "An invitation is valid for 1 to %(number)s days": N_(
        "An invitation is valid for 1 to %(number)s days"
    ),
    "A profile can have at most %(number)s keys; remove one first": N_(
        "A profile can have at most %(number)s keys; remove one first"
    ),
    "A name can have at most %(number)s characters": N_(
        "A name can have at most %(number)s characters"
    ),
    "An account can have at most %(number)s client credentials; remove one first": N_(
        "An account can have at most %(number)s client credentials; remove one first"
    ),
    "An account can have at most %(number)s passkeys; remove one first": N_(
        "An account can have at most %(number)s passkeys; remove one first"
    ),
    "An account can have at most %(number)s keys; unlink one first": N_(
        "An account can have at most %(number)s keys; unlink one first"
    ),
    "At most %(number)s such keys can sign in to an account; remove one first": N_(
        "At most %(number)s such keys can sign in to an account; remove one first"
    ),
    "An e-mail address must contain one @ and have at most %(number)s "
    "characters, as in alice@example.org": N_(
        "An e-mail address must contain one @ and have at most %(number)s "
        "characters, as in alice@example.org"
    ),
    "The name of a pod must have 1 to %(number)s characters: letters from A to "
    "Z or a to z, digits, - and _; it must not contain a space": N_(
        "The name of a pod must have 1 to %(number)s characters: letters from A"
        " to Z or a to z, digits, - and _; it must not contain a space"
    ),
    "The name of a pod must have 1 to %(number)s characters: letters from A to "
    "Z or a to z, digits, - and _; it must not contain the character "
    "%(character)s": N_(
        "The name of a pod must have 1 to %(number)s characters: letters from A"
        " to Z or a to z, digits, - and _; it must not contain the character "
        "%(character)s"
    ),
    "The name of a pod must have 1 to %(number)s characters: letters from A to "
    "Z or a to z, digits, - and _; it must not contain %(character)s": N_(
        "The name of a pod must have 1 to %(number)s characters: letters from A"
        " to Z or a to z, digits, - and _; it must not contain %(character)s"
    ),
    "The name of a pod must have 1 to %(number)s characters: letters from A to "
    "Z or a to z, digits, - and _; this one has %(length)s characters": N_(
        "The name of a pod must have 1 to %(number)s characters: letters from A"
        " to Z or a to z, digits, - and _; this one has %(length)s characters"
    ),
    "The document that describes the application is not valid: %(address)s. "
    "Everybody must be able to read it, and its client_id must be the same URL.": N_(
        "The document that describes the application is not valid: %(address)s."
        " Everybody must be able to read it, and its client_id must be the same"
        " URL."
    ),
    "Malformed %(media_type)s, line %(line)s: %(reason)s": N_(
        "This is not valid %(media_type)s, line %(line)s: %(reason)s"
    ),
    "Malformed %(media_type)s: %(reason)s": N_("This is not valid %(media_type)s: %(reason)s"),
    "An RDF document can have at most %(limit_bytes)s bytes": N_(
        "A linked-data document can have at most %(limit_bytes)s"
    ),
    "An RDF document can have at most %(number)s triples": N_(
        "A linked-data document can have at most %(number)s statements"
    ),
    "The JSON-LD context <%(address)s> is not known to this server": N_(
        "The JSON-LD context <%(address)s> is not known to this server"
    ),
    "The JSON-LD context <%(address)s> is temporarily unavailable; try again later": N_(
        "The JSON-LD context <%(address)s> is temporarily unavailable; try again later"
    ),
    "'%(media_type)s' is not an RDF media type that this server supports": N_(
        "This server does not read linked data of the type “%(media_type)s”"
    ),
    "RDF must be sent in UTF-8, not '%(charset)s'": N_(
        "Linked data must be in UTF-8, not in “%(charset)s”"
    ),
    "This document cannot be written as %(media_type)s: %(reason)s": N_(
        "This document cannot be written as %(media_type)s: %(reason)s"
    ),
    "This resource is RDF and must be sent as Turtle or JSON-LD, not %(media_type)s": N_(
        "This is linked data and must be Turtle or JSON-LD, not %(media_type)s"
    ),
    "An ACL can name at most %(number)s agent groups": N_(
        "Access rules can name at most %(number)s groups"
    ),
    "A path can have at most %(number)s levels": N_(
        "Folders can be nested at most %(number)s deep"
    ),
    "The path of a new resource can have at most %(number)s bytes, so that the "
    "URLs of its access rules and its description can be requested": N_(
        "The name, with those of the folders above, is too long: all of them "
        "can have at most %(number)s bytes"
    ),
    "The request target can have at most %(number)s bytes": N_(
        "The address is too long: it can have at most %(number)s bytes"
    ),
    "One request can concern at most %(number)s resources, including access "
    "rules and descriptions. Copy, move or delete parts of it first": N_(
        "That is too much at once: at most %(number)s items, including access "
        "rules and descriptions. Copy, move or delete parts of it first"
    ),
    "The access rules of %(subject)s cannot be read: %(reason)s": N_(
        "The access rules of %(subject)s cannot be read: %(reason)s"
    ),
    "An archive can contain at most %(number)s files": N_(
        "An archive can contain at most %(number)s files"
    ),
    "A pod with more than %(number)s resources cannot be renamed. Export it, "
    "import it under the new name, and delete this one": N_(
        "A pod with more than %(number)s items cannot be renamed. Export it, "
        "import it under the new name, and delete this one"
    ),
    "The name '%(name)s' belonged to another pod. Release it first with "
    "'podstead account free-name %(command_name)s', or choose another one": N_(
        "The name “%(name)s” belonged to another pod. Release it first with "
        "“podstead account free-name %(command_name)s”, or choose another name"
    ),
    "This resource does not support %(method)s": N_("This cannot be done here"),
}
"""The same for messages with values; the first that fits applies."""
