"""Error codes of operations on resources."""

from podstead.core.codes import ErrorCode


class ResourceCodes(ErrorCode):
    """What errors of operations on resources say to people."""

    INSIDE_DOCUMENT = "A document cannot contain other resources"
    SLASH_VARIANT_EXISTS = "A resource exists whose URL differs only in the trailing slash"
    POD_NAME_IN_USE = "Another pod already has this name, ignoring case; choose another one"
    UPLOAD_CONTINUED_ELSEWHERE = "Another request continues this upload"
    NOBODY_FOUND = (
        "Nobody was found by this name or address",
        (
            "Nobody was found. Type the name of somebody on this server or of a group, an e-mail "
            "address that their public profile names, or the address of their profile."
        ),
    )
    NO_ADDRESS_OF_PERSON = (
        "This is not the address (WebID) of a person or group",
        "This is not the address of a person: one looks like https://name.example/profile#me.",
    )
    NO_REQUESTS_HERE = (
        "The owner does not take requests here",
        "The owner takes no requests here. Ask them in another way.",
    )
    HAS_ACCESS = ("You have this access already", "You have this access already.")
    TOO_COSTLY = "This takes more processor time or memory than the server gives to it"
    RULES_CHANGED = "Somebody else has changed the access rules in the meantime"
    TREE_KEEPS_CHANGING = "Something in it keeps changing, so nothing was done; try again"
    RULES_UNREADABLE = "The access rules cannot be read, so they cannot be edited here"
    NOT_EMPTY = "The container is not empty"
    DESTINATION_WITHOUT_CONTAINER = "The container of the destination does not exist"
    DESTINATION_MISSING = "The destination is missing"
    TOO_MANY_CONTEXTS = "The document refers to too many JSON-LD contexts"
    IMPORT_UNFINISHED = "The import of the pod is unfinished: run it again, or delete the pod"
    SAME_NAME = "The names of pods are compared without case, and this is the same one"
    END_HAS_PASSED = "The last day of access must not have passed"
    ENDS_BEFORE_IT_BEGINS = "The last day of access must not be before the first one"
    OWNER_LOCKED_OUT = "The owner of the storage keeps full access; this would take it away"
    POD_KEEPS_CHANGING = "The pod keeps changing, so nothing was done; try again"
    NOTHING_ABOVE = "The root of a storage inherits from nothing, so it keeps its own rules"
    RULES_OUT_OF_REACH = "The rules of the folder above decide, and you may not see them"
    DESTINATION_IS_CONTAINER = "There is a container at the destination, which is not replaced"
    DESTINATION_EXISTS = "There is a resource at the destination"
    NO_SUCH_UPLOAD = "There is no such upload"
    OWNER_ONLY = (
        "This changes who can act as the owner of this storage: their identity providers, keys, "
        "owl:sameAs or storages. Only the owner may do that, even if others have Control"
    )
    TOO_MANY_UPLOADS = "Too many uploads are in progress. Finish or cancel some of them first."
    CONFIRMATION_NEEDED = "You would no longer be able to manage this; confirm if you mean it"
    INTO_ITSELF = (
        "A container cannot be copied or moved into itself",
        "A folder cannot be copied or moved into itself",
    )
    STORAGE_STAYS = (
        "A storage and its access rules cannot be deleted",
        "A pod and its access rules cannot be deleted here",
    )
    STORAGE_AND_AUXILIARIES_STAY = (
        (
            "A storage is neither moved nor deleted, and access rules and descriptions are copied "
            "and moved with what they belong to"
        ),
        (
            "A pod is neither moved nor deleted here, and access rules and descriptions go along "
            "with what they belong to"
        ),
    )
    AUXILIARY_STAYS = (
        "Access rules and descriptions are copied and moved with what they belong to",
        "Access rules and descriptions go along with what they belong to",
    )
    AUXILIARY_OF_AUXILIARY = (
        "An auxiliary resource cannot have auxiliary resources of its own",
        "A name cannot end like that of access rules or of a description",
    )
    CONTAINER_NAMED_AS_AUXILIARY = (
        "Without its trailing slash, the URL is that of an auxiliary resource",
        "A name cannot end like that of access rules or of a description",
    )
    NO_CONTAINER = (
        "Only a container can be downloaded as an archive",
        "Only a folder can be downloaded as an archive",
    )
    SLASH_MISSING = (
        "The URL of a container must end in a slash",
        "The name of a folder must end in a slash",
    )
    SLASH_OF_DOCUMENT = (
        "The URL of a document does not end in a slash",
        "The name of a file does not end in a slash",
    )
    RULES_CHANGE_TOO_FAST = (
        "The access rules are changing too fast to be read; try again",
        "This is changing too fast to be read; try again",
    )
    CHECKSUM_DIFFERS = (
        "The content does not have the checksum that was sent",
        "What arrived is not what was sent; try again",
    )
    DESTINATION_IS_SOURCE = (
        "The destination is the resource itself",
        "It is in this folder already.",
    )
    POD_CHANGES_TOO_FAST = (
        "The pod is changing too fast to be read; try again",
        "This is changing too fast to be read; try again",
    )
    CHANGES_TOO_FAST = (
        "The resource is changing too fast to be read; try again",
        "This is changing too fast to be read; try again",
    )
    SUBJECT_MISSING = (
        "The subject of this auxiliary resource does not exist",
        "What these rules or this description belong to does not exist",
    )
    UPLOAD_FINISHED = (
        "The upload is finished and has become another resource",
        "The upload is finished already",
    )
    TOO_MANY_WRITES = (
        "Too many writes to this resource are in progress; try again",
        "Too many people are changing this at the moment; try again",
    )
    RDF_REQUIRED = (
        "This resource is RDF and must be sent as Turtle or JSON-LD, not {media_type}",
        "This is linked data and must be Turtle or JSON-LD, not {media_type}",
    )
    PATH_TOO_LONG = (
        (
            "The path of a new resource can have at most {number} bytes, so that the URLs of its "
            "access rules and its description can be requested"
        ),
        (
            "The name, with those of the folders above, is too long: all of them can have at most "
            "{number} bytes"
        ),
    )
    TOO_MANY_RESOURCES = (
        (
            "One request can concern at most {number:,} resources, including access rules and "
            "descriptions. Copy, move or delete parts of it first"
        ),
        (
            "That is too much at once: at most {number} items, including access rules and "
            "descriptions. Copy, move or delete parts of it first"
        ),
    )
    RULES_UNREADABLE_BECAUSE = "The access rules of {subject} cannot be read: {reason}"
    TOO_MANY_FILES = "An archive can contain at most {number:,} files"
    TOO_LARGE_TO_RENAME = (
        (
            "A pod with more than {number:,} resources cannot be renamed. Export it, import it "
            "under the new name, and delete this one"
        ),
        (
            "A pod with more than {number} items cannot be renamed. Export it, import it under "
            "the new name, and delete this one"
        ),
    )
    NAME_OF_FORMER_POD = (
        (
            "The name '{name}' belonged to another pod. Release it first with 'podstead account "
            "free-name {command_name}', or choose another one"
        ),
        (
            "The name “{name}” belonged to another pod. Release it first with “podstead account "
            "free-name {command_name}”, or choose another name"
        ),
    )
