"""Signing in to the pages, and out."""
