"""Nostr keys of accounts: linking them, and signing in with them."""
