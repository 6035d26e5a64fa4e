"""Finds the credentials with which objects are read and written.

The library reads the variables of the environment, and asks the services that give credentials to
machines and containers. It does not read the file that the tools of AWS share, so this does.
"""

import configparser
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, TypedDict

from podstead.core.errors import StorageError

_REREAD_AFTER: Final = timedelta(minutes=5)
"""Somebody may have replaced the keys in the file since."""

_BY_OTHER_MEANS: Final = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)


class SharedCredential(TypedDict):
    """A pair of keys, as the library wants it."""

    access_key_id: str
    secret_access_key: str
    token: str | None
    expires_at: datetime | None


def shared_credentials(
    environment: Mapping[str, str] = os.environ,
) -> Callable[[], SharedCredential] | None:
    """What reads the credentials in the shared file; ``None`` if there are none, or if the
    environment has others. Raises StorageError."""
    if any(name in environment for name in _BY_OTHER_MEANS):
        return None
    file = Path(
        environment.get("AWS_SHARED_CREDENTIALS_FILE", Path.home() / ".aws" / "credentials")
    )
    profile = environment.get("AWS_PROFILE")
    if profile is None and _read(file, "default") is None:
        return None

    def provide() -> SharedCredential:
        credential = _read(file, profile or "default")
        if credential is None:
            raise StorageError(f"{file} has no keys for the profile {profile or 'default'}")
        return credential

    provide()
    return provide


def _read(file: Path, profile: str) -> SharedCredential | None:
    profiles = configparser.RawConfigParser()
    try:
        profiles.read(file, encoding="utf-8")
        keys = profiles[profile]
        return {
            "access_key_id": keys["aws_access_key_id"],
            "secret_access_key": keys["aws_secret_access_key"],
            "token": keys.get("aws_session_token"),
            "expires_at": datetime.now(UTC) + _REREAD_AFTER,
        }
    except KeyError:
        return None
    except (OSError, UnicodeDecodeError, configparser.Error) as error:
        raise StorageError(f"The credentials in {file} cannot be read") from error
