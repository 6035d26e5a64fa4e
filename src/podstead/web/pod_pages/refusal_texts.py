"""The messages of services that people meet on pages, for the catalogues.

A test finds out whether a service still says what is listed.
"""

from __future__ import annotations

from typing import Final

from podstead.web.pod_pages.texts import N_

REFUSALS: Final = frozenset(
    {
        N_(
            "A container in it is a git repository, which stays where it is. Clone "
            "it, push it to another container, and delete this one"
        ),
        N_("A date must be written like 2026-11-22"),
        N_("A document cannot contain other resources"),
        N_("A passkey must have a name"),
        N_("A password can have at most 1024 characters; choose a shorter one"),
        N_(
            "A password must have at least 8 characters; choose a longer one, such "
            "as a few words that you can remember"
        ),
        N_("A resource exists whose URL differs only in the trailing slash"),
        N_("Access denied"),
        N_("Add a passkey first"),
        N_("An account has this e-mail address already: sign in, or use another"),
        N_("Another account has this name"),
        N_("Another account is signed in now; go back and sign in again"),
        N_("Another pod already has this name, ignoring case; choose a different one"),
        N_("Another pod already has this name, ignoring case; choose another one"),
        N_("Another request continues this upload"),
        N_("Another request is changing the same data; try again"),
        N_("Files are uploaded to folders"),
        N_("Only folders can contain something new"),
        N_("Only members of a folder can be selected"),
        N_("Registration is disabled: only the operator of this server creates pods and accounts"),
        N_("Select one file or folder only"),
        N_("Select something first"),
        N_("Sign in again: deletion requires a sign-in within the last ten minutes"),
        N_("Sign in again: this action requires a sign-in within the last ten minutes"),
        N_("Sign in first"),
        N_("Somebody else has changed the access rules in the meantime"),
        N_("Something in it keeps changing, so nothing was done; try again"),
        N_("The ACL of a storage's root must grant Control to at least one agent"),
        N_("The access rules cannot be read, so they cannot be edited here"),
        N_("The account cannot be used"),
        N_("The account has a second factor already: sign in again"),
        N_("The account has another WebID"),
        N_("The account has been deleted"),
        N_("The account has been deleted meanwhile"),
        N_("The account has changed in the meantime; go back and sign in again"),
        N_("The address is too short"),
        N_("The application is no longer registered"),
        N_("The application's document cannot be read at present; try again later"),
        N_("The container is not empty"),
        N_("The container of the destination does not exist"),
        N_(
            "The database cannot be reached at the moment. Try again; if this was a"
            " change, look first whether it has been made."
        ),
        N_("The destination is missing"),
        N_("The document refers to too many JSON-LD contexts"),
        N_("The e-mail address of the account is missing"),
        N_("The file has no name"),
        N_("The folder to search in is malformed"),
        N_("The form is malformed"),
        N_("The import of the pod is unfinished: run it again, or delete the pod"),
        N_("The name of a file is empty"),
        N_("The names of pods are compared without case, and this is the same one"),
        N_("The number of uses and of days must be whole numbers"),
        N_("The owner of the storage keeps full access; this would take it away"),
        N_("The pages do not exist in this language"),
        N_("The password is not well-formed Unicode"),
        N_("The password of the account is missing"),
        N_("The picture must be a JPEG, PNG, WebP, GIF or AVIF file"),
        N_("The pod keeps changing, so nothing was done; try again"),
        N_("The pod of this token has been deleted"),
        N_("The profile does not state this key; it may have been removed"),
        N_("The profile of this account has no usable address"),
        N_("The profile of this account is not on this server"),
        N_("The quota must be a whole number of megabytes"),
        N_("The redirect_uri of the request is not one that the application has registered."),
        N_("The request does not contain a redirect_uri."),
        N_("The root of a storage inherits from nothing, so it keeps its own rules"),
        N_("The rules of the folder above decide, and you may not see them"),
        N_(
            "The server does not have enough disk space to store this. Reading and "
            "deleting still work; try again when there is space."
        ),
        N_("The server needs this name for itself: rename the file first"),
        N_("The server reserves this name; choose another"),
        N_("The two passwords differ: type the same one twice"),
        N_("There are no such client credentials"),
        N_("There are no such people"),
        N_("There are too many files with names like this one"),
        N_("There are too many invitations; revoke some of them first"),
        N_("There is a container at the destination, which is not replaced"),
        N_("There is a resource at the destination"),
        N_("There is no form for this"),
        N_(
            "There is no invitation with this code, or it has ended, or it has been"
            " used up; ask for another one"
        ),
        N_("There is no such account"),
        N_("There is no such application; it may have been removed"),
        N_("There is no such choice"),
        N_("There is no such file in this version"),
        N_("There is no such key; it may have been removed"),
        N_("There is no such kind of change"),
        N_("There is no such passkey; it may have been removed"),
        N_("There is no such role"),
        N_("There is no such session; it may have ended"),
        N_("There is no such token; it may have been revoked"),
        N_("There is no such upload"),
        N_("There is nothing at this address"),
        N_("There is nothing with that name; it may have been removed"),
        N_("This cannot be done with this account as it is now"),
        N_(
            "This changes who can act as the owner of this storage: their identity "
            "providers, keys, owl:sameAs or storages. Only the owner may do that, "
            "even if others have Control"
        ),
        N_("This is no secret of an authenticator app"),
        N_("This is not one of your pods"),
        N_("This is not the name of your pod"),
        N_("This is the only way to sign in to the account: add another one first"),
        N_("This key cannot sign in; its permission may have been removed"),
        N_("This link has been used meanwhile"),
        N_("This link has been used, or it has expired: ask for a new one"),
        N_(
            "This page is from before you last signed in, so nothing was changed: "
            "reload it and try again"
        ),
        N_("This passkey is already registered"),
        N_(
            "This request did not come from a page of this server, so nothing was "
            "changed: open the page here and try again"
        ),
        N_("This request is no longer there"),
        N_(
            "This server does not know the application. If you have used it here "
            "before, clear the data that your browser stores for the application's "
            "site, and try again."
        ),
        N_("This server requires a second factor besides the password: add another one first"),
        N_("This server sends no mail"),
        N_("This sign-in has expired. Go back to the application and start again"),
        N_("This sign-in is finished. Go back to the application"),
        N_("This sign-in was started in another browser"),
        N_("To register on this server, accept its terms"),
        N_("To register on this server, you need the code of an invitation"),
        N_("Too many changes are waiting to be stored"),
        N_("Too many sign-ins are in progress; try again"),
        N_("Too many uploads are in progress. Finish or cancel some of them first."),
        N_("Type the name of your pod or your e-mail address"),
        N_("Type your name and password first"),
        N_("What is selected is not in the folder"),
        N_("You have no pod on this server"),
        N_("You have no such pod on this server"),
        N_("You would no longer be able to manage this; confirm if you mean it"),
        N_("Your WebID has no usable address"),
        N_("Your WebID is in no pod"),
        N_("Your identity was not verified in this sign-in; go back and try again"),
        N_("Your identity was verified too long ago; go back and try again"),
        N_("Your profile cannot be read, so its keys are not known; repair it first"),
        N_("Your profile cannot be read; repair it first"),
        N_("Your profile does not state this key; it may have been removed"),
        N_("Your profile is not on this server"),
    }
)
"""Messages that pages repeat as they are."""
