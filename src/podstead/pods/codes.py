"""Error codes for the names of pods."""

from typing import Final

from podstead.core.codes import ErrorCode

NAME_RULE_TEXT: Final = (
    "The name of a pod must have 1 to {number} characters: letters from A to Z or a to z, digits, "
    "- and _"
)


class PodCodes(ErrorCode):
    """What errors about the names of pods say to people."""

    NAME_IN_USE = "Another pod already has this name, ignoring case; choose a different one"
    NAME_MISSING = ('Send the name of the pod: {"name": "alice"}', "Type the name of the pod")
    NAME_RESERVED = "The server reserves this name; choose another"
    NAME_WITH_SPACE = f"{NAME_RULE_TEXT}; it must not contain a space"
    NAME_WITH_UNPRINTABLE = f"{NAME_RULE_TEXT}; it must not contain the character {{character}}"
    NAME_WITH_OTHER_CHARACTER = f"{NAME_RULE_TEXT}; it must not contain {{character}}"
    NAME_TOO_LONG = f"{NAME_RULE_TEXT}; this one has {{length}} characters"
