"""The reasons why a sign-in at another provider fails."""

from __future__ import annotations

from enum import Enum

from podstead.core.errors import RequestRefused


class SignInProblem(Enum):
    """The kinds of failure. The pages explain what to do about each."""

    NO_ADDRESS = "no-address"
    """The text is not the address of a provider or a WebID."""
    NO_PROVIDER = "no-provider"
    """Nothing at the address is a provider, or names one."""
    UNREACHABLE = "unreachable"
    """The provider cannot be reached at present."""
    UNUSABLE = "unusable"
    """The provider lacks something that is needed."""
    NOT_ACCEPTED = "not-accepted"
    """The operator of this server does not accept the provider."""
    EXPIRED = "expired"
    """The sign-in began too long ago, in another browser, or is over already."""
    DECLINED = "declined"
    """The person, or the provider, has not agreed."""
    INVALID = "invalid"
    """The provider's response is not valid, or from another provider."""
    NOT_TRUSTED = "not-trusted"
    """The document of the WebID does not name the provider."""


class ExternalSignInFailed(RequestRefused):
    """Nobody was signed in."""

    def __init__(self, problem: SignInProblem) -> None:
        super().__init__(problem.value)
        self.problem = problem
