"""The TLS listener that shows the certificates of clients to the application (WebID-TLS, A-160)."""
