"""Links Nostr keys to accounts, and signs in with them."""
