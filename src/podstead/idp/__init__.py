"""The built-in Solid-OIDC provider: accounts, sign-in, and the tokens that speak for a WebID."""
