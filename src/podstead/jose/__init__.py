"""Signed tokens and the keys they are signed with: the one place that knows the JOSE library."""
