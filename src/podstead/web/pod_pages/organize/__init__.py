"""Renaming, moving, copying, deleting and downloading resources on pages."""
