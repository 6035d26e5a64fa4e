"""Passkeys: how they are added to an account, kept, and signed in with (WebAuthn Level 3)."""
