"""What errors about read logs say to people."""

from podstead.core.codes import ErrorCode


class ReadLogCodes(ErrorCode):
    """The errors of this feature."""

    NO_FOLDER = "There is no folder here"
    TOO_MANY = "A pod can have at most {number} read logs; switch others off first"
