"""The server's certificate by ACME (RFC 8555), without a reverse proxy."""
