"""Error codes of Web Access Control."""

from podstead.core.codes import ErrorCode


class WacCodes(ErrorCode):
    """What errors about access rules say to people."""

    OWNER_WITHOUT_CONTROL = "The ACL of a storage's root must grant Control to at least one agent"
    TOO_MANY_GROUPS = (
        "An ACL can name at most {number} agent groups",
        "Access rules can name at most {number} groups",
    )
    TOO_DEEP = (
        "A path can have at most {number} levels",
        "Folders can be nested at most {number} deep",
    )
