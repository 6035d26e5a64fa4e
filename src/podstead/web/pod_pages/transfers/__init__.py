"""Uploads of files and folders to the pages."""
