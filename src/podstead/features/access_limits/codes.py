"""What errors about limits say to people."""

from podstead.core.codes import ErrorCode


class LimitCodes(ErrorCode):
    """The errors of this feature."""

    NOT_AN_ADDRESS = "This is not the address of a folder or document of this server"
    NOTHING_CHOSEN = "Choose at least one folder or document, and what is allowed there"
    NO_DAY = "Give the day until which it is allowed"
    END_IS_PAST = "The end must be in the future"
    NO_SUCH_APPLICATION = "There is no such application"
    NO_POD = "You have no pod here"
    TOO_MANY = "There are too many limits; remove those that you do not need"
