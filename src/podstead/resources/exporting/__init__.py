"""Exports a whole pod as one archive: an RO-Crate in a ZIP file."""
