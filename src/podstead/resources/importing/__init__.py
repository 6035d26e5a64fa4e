"""Imports a tree of resources from elsewhere into a pod."""
