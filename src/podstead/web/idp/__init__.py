"""The identity provider's addresses: protocol endpoints for applications, pages for people."""
