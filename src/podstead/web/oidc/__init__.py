"""The endpoints of the identity provider for applications."""
