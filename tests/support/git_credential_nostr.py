"""A credential helper of git that signs what it is asked about, as git-credential-nostr does.

``get`` reads what git knows of the server and gives the name ``nostr`` and, as its password, an
event for any method below the server's root, or below the repository where git tells its path.
"""

from __future__ import annotations

import sys
import time

from tests.support.nostr import NostrKey, packed


def main() -> None:
    secret, action = sys.argv[1:3]
    asked = dict(line.rstrip("\n").split("=", 1) for line in sys.stdin if "=" in line)
    if action != "get":
        return
    url = f"{asked['protocol']}://{asked['host']}/{asked.get('path', '')}"
    event = NostrKey.of(int(secret, 16)).event("*", url, int(time.time()))
    sys.stdout.write(f"username=nostr\npassword={packed(event)}\n")


if __name__ == "__main__":
    main()
