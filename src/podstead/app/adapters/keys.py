"""The keys that sign pod tokens and notifications (A-32, A-43).

The first start creates ``token.key``, and later starts use it. In a data root, a rotation renames
the file to ``token.previous.key``; tokens signed with the previous key remain valid until they
expire. Notifications are signed with the keys of the provider; a server without one creates such
keys when it sends the first message.
"""

import secrets
from collections.abc import Mapping, Sequence

from podstead.app.adapters.engine import key_storage
from podstead.authn.credentials import MIN_KEY_BYTES, SigningKey
from podstead.config import Settings
from podstead.core.errors import StorageError
from podstead.pods.provision import TokenPolicy
from podstead.storage.keys import DamagedKey, KeyStorage

PROVIDER = "provider"
"""The folder of the provider's keys."""

TOKEN_KEY = "token.key"  # noqa: S105 - the name of a file
"""The file of the key that signs tokens."""

PREVIOUS_TOKEN_KEY = "token.previous.key"  # noqa: S105 - the name of a file


def ensure_token_key(keys: KeyStorage) -> None:
    """Create the signing key if there is none. Raises StorageError.

    Several processes may call this at the same time: all of them use the key that the first one
    creates.
    """
    if keys.read(TOKEN_KEY) is None:
        keys.add(TOKEN_KEY, secrets.token_bytes(MIN_KEY_BYTES))


def load_token_keys(keys: KeyStorage) -> Sequence[SigningKey]:
    """The signing key and, after a rotation, the previous one. Raises StorageError."""
    current, previous = keys.read(TOKEN_KEY), keys.read(PREVIOUS_TOKEN_KEY)
    if current is None:
        raise StorageError("The signing key is missing")
    loaded = [each for each in (current, previous) if each is not None]
    for name, content in ((TOKEN_KEY, current), (PREVIOUS_TOKEN_KEY, previous)):
        if content is not None:
            check_token_key(content, keys.where(name))
    return [SigningKey(each) for each in loaded]


def signing_keys(settings: Settings) -> Sequence[SigningKey]:
    """The keys that sign pod tokens, the newest first: those of the settings, or the stored ones.
    Raises StorageError."""
    return settings.token_keys or load_token_keys(key_storage(settings))


def token_policy(settings: Settings) -> TokenPolicy | None:
    """How pod tokens are issued; ``None`` if they are off. Raises StorageError."""
    if not settings.simple_tokens:
        return None
    return TokenPolicy(key=signing_keys(settings)[0], lifetime_s=settings.token_lifetime_s)


def check_token_key(content: bytes, where: str) -> None:
    """Raise DamagedKey for a key that is too short."""
    if len(content) < MIN_KEY_BYTES:
        raise DamagedKey(f"The key {where} is damaged: it has less than {MIN_KEY_BYTES} bytes")


def adopt_keys(keys: KeyStorage, former: KeyStorage) -> None:
    """Take over the keys of a data root whose servers kept them in files, unless there are keys
    already. Raises StorageError."""
    if keys.read(TOKEN_KEY) is not None or keys.has_folder(PROVIDER):
        return
    for name, content in read_all_keys(former).items():
        keys.add(name, content)


def read_all_keys(keys: KeyStorage) -> Mapping[str, bytes]:
    """Every key, by its name. Raises StorageError."""
    named = {name: keys.read(name) for name in (TOKEN_KEY, PREVIOUS_TOKEN_KEY)}
    found = {name: content for name, content in named.items() if content is not None}
    if keys.has_folder(PROVIDER):
        found.update(keys.read_folder(PROVIDER))
    return found
