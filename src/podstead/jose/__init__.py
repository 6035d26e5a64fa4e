"""Signed tokens and their keys. The only layer that uses the JOSE library."""
