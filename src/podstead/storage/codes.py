"""Error codes of the storage layer."""

from podstead.core.codes import ErrorCode


class StorageCodes(ErrorCode):
    """What errors of the storage say to people."""

    BUSY = "Another request is changing the same data; try again"
    INVITATION_REQUIRED = "To register on this server, you need the code of an invitation"
    INVITATION_UNUSABLE = (
        "There is no invitation with this code, or it has ended, or it has been used up; ask for "
        "another one"
    )
    NO_SUCH_INVITATION = ("There is no invitation '{name}'.", "There is no such invitation")
    NO_SUCH_POD = ("There is no pod '{name}'.", "There is no pod with the name “{name}”")
    TOO_MANY_CHANGES = "Too many changes are waiting to be stored"
