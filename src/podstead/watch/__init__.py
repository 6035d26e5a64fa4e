"""A client for notifications from any Solid server, for ``podstead watch``."""
