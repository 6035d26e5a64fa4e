"""Notifications: delivers the change log to the subscribers of channels."""
