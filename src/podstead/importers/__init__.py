"""Reading what other Solid servers, WebDAV servers and file systems have stored."""
