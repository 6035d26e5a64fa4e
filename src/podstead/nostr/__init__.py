"""Signed Nostr events: parsing them, and checking them against a request. Pure."""
