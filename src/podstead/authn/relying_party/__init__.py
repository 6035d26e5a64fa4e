"""Signs people in at other providers: this server as a relying party (Solid-OIDC)."""
