"""The TLS listener that passes client certificates to the application (A-160)."""
