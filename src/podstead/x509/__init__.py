"""X.509 certificates: what they say, and making them. The only layer that knows their library."""
