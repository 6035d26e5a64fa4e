"""The provider over HTTP: protocol endpoints for applications, pages for people."""
