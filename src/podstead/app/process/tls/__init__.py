"""The TLS listener that passes client certificates to the application (WebID-TLS, A-160)."""
