"""Signing people in at providers elsewhere: this server as a relying party (Solid-OIDC)."""
