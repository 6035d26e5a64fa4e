"""How does one hear of changes at any Solid server? The other end of notifications."""
