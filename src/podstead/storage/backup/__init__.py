"""Backups: what one consists of, and writing, verifying and restoring it."""
