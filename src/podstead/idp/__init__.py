"""The built-in Solid-OIDC provider: accounts, sign-in, and tokens that act as a WebID."""
