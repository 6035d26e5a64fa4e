"""Error codes of the web layer."""

from podstead.core.codes import ErrorCode


class WebCodes(ErrorCode):
    """What errors of the web layer say to people."""

    DATE_MALFORMED = "A date must be written like 2026-11-22"
    OTHER_ACCOUNT_SIGNED_IN = "Another account is signed in now; go back and sign in again"
    UPLOAD_NEEDS_FOLDER = "Files are uploaded to folders"
    NEW_NEEDS_FOLDER = "Only folders can contain something new"
    SELECTION_NEEDS_FOLDER = "Only members of a folder can be selected"
    REGISTRATION_CLOSED = (
        "Registration is disabled: only the operator of this server creates pods and accounts"
    )
    SELECT_ONE = "Select one file or folder only"
    NOTHING_SELECTED = "Select something first"
    SIGN_IN_AGAIN_TO_DELETE = (
        "Sign in again: deletion requires a sign-in within the last ten minutes"
    )
    SIGN_IN_AGAIN = "Sign in again: this action requires a sign-in within the last ten minutes"
    WRONG_CURRENT_PASSWORD = (
        "The current password is wrong, so nothing was changed",
        "The current password is wrong, so nothing was changed.",
    )
    SEVERAL_FOUND = ("Several are called that", "More than one match. Choose one.")
    TOO_MANY_LOOKED_UP = (
        "You have looked for many people. Try again later, or use the address of a person."
    )
    NO_ADDRESS_OF_APPLICATION = (
        "This is not the address of an application: one looks like https://app.example."
    )
    SIGN_IN_FIRST = "Sign in first"
    ACCOUNT_DELETED = "The account has been deleted"
    ACCOUNT_DELETED_MEANWHILE = "The account has been deleted meanwhile"
    ACCOUNT_CHANGED = "The account has changed in the meantime; go back and sign in again"
    ADDRESS_TOO_SHORT = "The address is too short"
    FILE_WITHOUT_NAME = "The file has no name"
    SEARCH_FOLDER_MALFORMED = "The folder to search in is malformed"
    FORM_MALFORMED = "The form is malformed"
    FILE_NAME_EMPTY = "The name of a file is empty"
    NO_WHOLE_NUMBERS = "The number of uses and of days must be whole numbers"
    NO_SUCH_LANGUAGE = "The pages do not exist in this language"
    PICTURE_TYPE = "The picture must be a JPEG, PNG, WebP, GIF or AVIF file"
    POD_OF_TOKEN_DELETED = "The pod of this token has been deleted"
    QUOTA_MALFORMED = "The quota must be a whole number of megabytes"
    NAME_OF_SERVER = "The server needs this name for itself: rename the file first"
    PASSWORDS_DIFFER = "The two passwords differ: type the same one twice"
    NO_SUCH_PEOPLE = "There are no such people"
    TOO_MANY_NAMES_ALIKE = "There are too many files with names like this one"
    NO_SUCH_FORM = "There is no form for this"
    NO_SUCH_CLIENT = "There is no such application; it may have been removed"
    NO_SUCH_CHOICE = "There is no such choice"
    NO_SUCH_ASSET = "There is no such file in this version"
    NO_SUCH_CHANGE = "There is no such kind of change"
    NO_SUCH_ROLE = "There is no such role"
    NO_SUCH_DAY = "There is no such day; write it as in 2026-12-31"
    NO_SUCH_SESSION = "There is no such session; it may have ended"
    NO_SUCH_PAGE = "There is nothing at this address"
    NO_SUCH_ENTRY = "There is nothing with that name; it may have been removed"
    ACTION_NOT_POSSIBLE = "This cannot be done with this account as it is now"
    OTHERS_POD = "This is not one of your pods"
    OTHER_POD_NAME = "This is not the name of your pod"
    FORM_OUTDATED = (
        "This page is from before you last signed in, so nothing was changed: reload it and try "
        "again"
    )
    CROSS_SITE = (
        "This request did not come from a page of this server, so nothing was changed: open the "
        "page here and try again"
    )
    REQUEST_GONE = "This request is no longer there"
    NO_MAIL = "This server sends no mail"
    TERMS_NOT_ACCEPTED = "To register on this server, accept its terms"
    LOGIN_MISSING = "Type the name of your pod or your e-mail address"
    SELECTION_ELSEWHERE = "What is selected is not in the folder"
    NO_POD = "You have no pod on this server"
    NO_SUCH_OWN_POD = "You have no such pod on this server"
    WEB_ID_UNUSABLE = "Your WebID has no usable address"
    WEB_ID_IN_NO_POD = "Your WebID is in no pod"
    OWN_PROFILE_UNREADABLE = "Your profile cannot be read; repair it first"
    OWN_PROFILE_ELSEWHERE = "Your profile is not on this server"
    NO_CONTENT_OF_CONTAINER = (
        "A container has no content of its own",
        "A folder has no content of its own",
    )
    REPEATED_FIELD = ("A field appears twice", "The form is malformed")
    BODY_LENGTH_DIFFERS = (
        "The body is shorter or longer than its Content-Length",
        "Not everything has arrived; try again",
    )
    POD_NAME_MISSING = (
        "The field pod must contain the name of the pod to delete",
        "Type the name of the pod to delete it",
    )
    GROUP_NAME_MISSING = "A group needs a name"
    TOO_MANY_MEMBERS = "A group can have at most {number} members"
    CHANGE_MISSING = ("The form does not say what to change", "The form is malformed")
    GRANTEE_MISSING = ("The form does not say whose access to change", "The form is malformed")
    FORM_NOT_UTF_8 = ("The form is not UTF-8", "The form is malformed")
    PARAMETERS_MALFORMED = ("The parameters are malformed", "The form is malformed")
    BODY_TIMEOUT = (
        "The request body did not arrive in time",
        "Not everything has arrived; try again",
    )
    BODY_TOO_SLOW = (
        "The request body did not arrive in time; the minimum rate is {number} bytes per second",
        "Not everything has arrived; try again",
    )
    BODY_ENDED_EARLY = ("The request body ended early", "Not everything has arrived; try again")
    TOO_MANY_PARTS = "A form can have at most {number} files: upload the rest with another one"
    TARGET_TOO_LONG = (
        "The request target can have at most {number} bytes",
        "The address is too long: it can have at most {number} bytes",
    )
    METHOD_NOT_ALLOWED = ("This resource does not support {method}", "This cannot be done here")
