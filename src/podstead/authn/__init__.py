"""Authentication: verifies the credentials of requests."""
