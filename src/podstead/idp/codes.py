"""Error codes of the identity provider."""

from podstead.core.codes import ErrorCode


class IdpCodes(ErrorCode):
    """What errors of the identity provider say to people."""

    PASSWORD_TOO_LONG = "A password can have at most {number} characters; choose a shorter one"
    PASSWORD_TOO_SHORT = (
        "A password must have at least {number} characters; choose a longer one, such as a few "
        "words that you can remember"
    )
    EMAIL_TAKEN = "An account has this e-mail address already: sign in, or use another"
    NAME_TAKEN = "Another account has this name"
    SIGN_IN_FIRST = "Sign in first"
    ACCOUNT_UNUSABLE = "The account cannot be used"
    OTHER_WEB_ID = "The account has another WebID"
    CLIENT_GONE = "The application is no longer registered"
    CLIENT_UNAVAILABLE = "The application's document cannot be read at present; try again later"
    EMAIL_MISSING = "The e-mail address of the account is missing"
    PASSWORD_NOT_UNICODE = "The password is not well-formed Unicode"
    PASSWORD_MISSING = "The password of the account is missing"
    PROFILE_ADDRESS_UNUSABLE = "The profile of this account has no usable address"
    PROFILE_ELSEWHERE = "The profile of this account is not on this server"
    REDIRECT_URI_UNKNOWN = (
        "The redirect_uri of the request is not one that the application has registered."
    )
    REDIRECT_URI_MISSING = "The request does not contain a redirect_uri."
    NO_SUCH_CREDENTIALS = "There are no such client credentials"
    TOO_MANY_INVITATIONS = "There are too many invitations; revoke some of them first"
    NO_SUCH_ACCOUNT = "There is no such account"
    LAST_OPERATOR = "This is the only operator: make somebody else an operator first"
    NO_SUCH_TOKEN = "There is no such token; it may have been revoked"
    LAST_FACTOR = "This is the only way to sign in to the account: add another one first"
    LINK_USED_MEANWHILE = "This link has been used meanwhile"
    LINK_USED = "This link has been used, or it has expired: ask for a new one"
    CLIENT_UNKNOWN = (
        "This server does not know the application. If you have used it here before, clear the "
        "data that your browser stores for the application's site, and try again."
    )
    INTERACTION_EXPIRED = "This sign-in has expired. Go back to the application and start again"
    INTERACTION_FINISHED = "This sign-in is finished. Go back to the application"
    OTHER_BROWSER = "This sign-in was started in another browser"
    CHALLENGE_INVALID = (
        "The challenge has expired or was already used; try again",
        "This took too long, or was done already: try again",
    )
    SIGN_IN_FAILED = (
        "The name or the password is wrong",
        "The name or the password is wrong. Check both and try again.",
    )
    ACCOUNT_DISABLED = (
        "This account is disabled: ask the operator of this server",
        "This account is disabled. Ask the operator of this server.",
    )
    METHOD_REMOVED = "What you signed in with was removed meanwhile: sign in in another way"
    OWN_ACCOUNT = (
        (
            "This is your own account: another operator, or the command 'podstead account', can do "
            "this"
        ),
        "You cannot do this with your own account. Another operator can.",
    )
    TOO_MANY_SIGN_INS = "Too many sign-ins are in progress; try again"
    NOT_VERIFIED = "Your identity was not verified in this sign-in; go back and try again"
    VERIFIED_TOO_LONG_AGO = "Your identity was verified too long ago; go back and try again"
    NO_SUCH_DELETED_POD = (
        "There is no deleted pod '{name}'.",
        "There is no deleted pod with the name “{name}”",
    )
    POD_HAS_ACCOUNT = (
        "The pod '{name}' already has an account.",
        "The pod “{name}” already has an account",
    )
    INVITATION_NOTE = "A note can have at most {number} characters"
    TOO_MANY_INVITATION_MESSAGES = "Too many invitations wait to be sent, or were sent today"
    INVITATION_USES = "An invitation can be used 1 to {number:,} times"
    INVITATION_DAYS = "An invitation is valid for 1 to {number:,} days"
    NAME_TOO_LONG = "A name can have at most {number} characters"
    TOO_MANY_CREDENTIALS = (
        "An account can have at most {number} client credentials; remove one first"
    )
    EMAIL_UNUSABLE = (
        "An e-mail address must contain one @ and have at most {number} characters, as in "
        "alice@example.org"
    )
    CLIENT_DOCUMENT_UNUSABLE = (
        "The document that describes the application is not valid: {address}. Everybody must be "
        "able to read it, and its client_id must be the same URL."
    )
