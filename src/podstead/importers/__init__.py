"""Reads the data of other Solid servers, WebDAV servers and file systems."""
