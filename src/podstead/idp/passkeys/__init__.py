"""Passkeys: adding them to an account, keeping them, and signing in with them (WebAuthn Level
3)."""
