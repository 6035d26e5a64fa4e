"""Containers as git repositories, over git's smart HTTP protocol."""
