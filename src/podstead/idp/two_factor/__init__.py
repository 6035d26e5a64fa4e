"""Second factors besides passwords: codes of authenticator apps, and recovery codes."""
