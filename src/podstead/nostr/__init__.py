"""Signed events of Nostr: reading them, and what they say of a request. Pure."""
