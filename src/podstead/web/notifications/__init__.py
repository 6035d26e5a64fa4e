"""Endpoints to subscribe to notifications and to receive them."""
