"""Containers as repositories of git, over its smart HTTP protocol."""
